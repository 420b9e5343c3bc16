"""Workers begin and end with the process that asks, whatever that is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nanoloom.workers import fork_server
from tests.sources import ROOT
from tests.workers.waiting import LONG, is_alive, until

PARENT = """
import os, signal, sys, threading
from nanoloom.workers import fork_server
from nanoloom.workers.pool import pool
from tests.workers.stand_ins import LIGHT, Echo
fork_server.PROGRAM = LIGHT
number = pool().submit(Echo(), 0.0, 1).result().value[1]
busy = pool().submit(Echo(seconds=100), 0.0, 1)
while not busy.running(): pass
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(file, str(number).encode())
print("only once", flush=True)
"""


@pytest.mark.parametrize(
    "end",
    [
        "",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os._exit(0)",
        "os.fork() or os._exit(0)",
        "os.execv('/bin/true', ['true'])",
        "raise KeyboardInterrupt",
    ],
)
def test_workers_end_with_their_process(tmp_path: Path, end: str) -> None:
    """Started from a script that protects nothing from being run twice."""
    script, told = tmp_path / "script.py", tmp_path / "number"
    script.write_text(PARENT + end)
    ran = run_script(script, told)
    assert ran.stdout.splitlines() == ["only once"]
    assert until(lambda: not is_alive(int(told.read_text())))


def test_a_process_without_standard_files(tmp_path: Path) -> None:
    script, told = tmp_path / "script.py", tmp_path / "number"
    script.write_text(PARENT.replace("fork_server.PROGRAM = LIGHT", ""))
    command = f'"{sys.executable}" "{script}" "{told}" <&- >&- 2>&-'
    run_script(Path("-c"), told, "sh", command)
    assert until(lambda: not is_alive(int(told.read_text())))


def run_script(
    script: Path, told: Path, program: str = sys.executable, *more: str
) -> subprocess.CompletedProcess[str]:
    words = more or (str(told),)
    return subprocess.run(
        [program, str(script), *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )


def test_workers_know_their_program() -> None:
    """Nothing but the path is told on the command line."""
    words = fork_server.command()
    assert words[0] == sys.executable
    assert "-c" in words and "__main__" not in "".join(words)


def test_workers_load_the_nanoloom_of_their_parent(tmp_path: Path) -> None:
    """Not another one that the path names first."""
    package = tmp_path / "nanoloom"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('another nanoloom')")
    script = (
        "import sys, nanoloom\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from nanoloom.workers.pool import Pool\n"
        "from tests.workers.stand_ins import Package\n"
        "answer = Pool().submit(Package(), 0.0, 1).result(60)\n"
        "assert answer.failure is None, answer.failure\n"
        "assert answer.value[0] != __import__('os').getpid()\n"
        "assert answer.value[1:] == (nanoloom.__file__, [*nanoloom.__path__])\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
