"""The border of the command: help, exit status, reports of bugs, pipes, interrupts."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import nanoloom as package
from nanoloom.cache import store
from nanoloom.cli import run as run_verb
from nanoloom.cli.main import verbs
from tests.cli import models
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused

HEAVY = ("numpy", "onnx", "onnx_ir", "onnxruntime", "torch_mlir", "llvmlite", "torch")
MODULE = [sys.executable, "-m", "nanoloom"]


def imported(*words: str, cache: Path) -> set[str]:
    """The heavy packages that a command imports, in a process of its own."""
    code = (
        "import sys; from nanoloom.cli.main import main; status = main(sys.argv[2:]);"
        "names = {name.split('.')[0] for name in sys.modules};"
        "print(*(names & set(sys.argv[1].split())), file=sys.stderr); sys.exit(status)"
    )
    command = [sys.executable, "-c", code, " ".join(HEAVY), *words]
    environment = {**os.environ, "NANOLOOM_CACHE": str(cache)}
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    return set(ran.stderr.splitlines()[-1].split())


def test_help_lists_every_verb(nanoloom: Command) -> None:
    said = nanoloom("--help")
    assert said.status == 0 and said.err == ""
    for verb in verbs():
        assert re.search(rf"^│ {verb.name} ", said.out, re.MULTILINE), verb.name


@pytest.mark.parametrize("verb", verbs(), ids=lambda verb: verb.name)
def test_help_of_a_verb_ends_with_an_example(nanoloom: Command, verb: object) -> None:
    name = verb.name  # type: ignore[attr-defined]
    said = nanoloom(name, "--help")
    assert said.status == 0 and said.err == ""
    assert f"Example: nanoloom {name}" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


def test_examples_fit_on_a_line() -> None:
    assert all(len(verb.example) <= 78 for verb in verbs())


def test_the_version(nanoloom: Command) -> None:
    assert nanoloom("--version").out == f"nanoloom {package.__version__}\n"


def test_help_imports_nothing_heavy(cache: Path) -> None:
    assert imported("--help", cache=cache) == set()


def test_a_compiled_model_runs_without_the_compiler(
    tmp_path: Path, nanoloom: Command, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of this second would be read again: it may still change."""
    monkeypatch.setattr(store, "SETTLED_SECONDS", 0)
    model = models.write(tmp_path, models.RELU)
    words = ("run", str(model), "--dim", "batch=2")
    assert nanoloom(*words).status == 0
    assert imported(*words, cache=cache) == {"numpy"}


# ---- bugs


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model; running it finds a bug of nanoloom's."""

    def fail(*_: object) -> None:
        raise AssertionError("a secret of the compiler")

    monkeypatch.setattr(run_verb, "once", fail)
    return models.write(tmp_path, models.NO_INPUT)


def test_a_bug_is_one_sentence_and_a_report(broken: Path, nanoloom: Command) -> None:
    said = nanoloom("run", broken)
    refused_as_bug = re.fullmatch(
        r"nanoloom: this is a bug of nanoloom \(AssertionError\), not of your model;"
        r" a report is in (.*)\n",
        said.err,
    )
    assert said.status == 1 and refused_as_bug, said.err
    report = Path(refused_as_bug[1]).read_text()
    assert "a secret of the compiler" in report and "Traceback" in report
    assert f"command: nanoloom run {broken}" in report
    assert f"nanoloom {package.__version__}" in report and "llvmlite" in report


def test_reports_are_in_the_cache_folder(
    tmp_path: Path, broken: Path, nanoloom: Command
) -> None:
    for words in (("--cache", tmp_path / "a"), (f"--cache={tmp_path / 'b'}",)):
        nanoloom("run", broken, *words)
    for name in ("a", "b"):
        assert len(list((tmp_path / name / "reports").iterdir())) == 1


def test_a_report_finds_another_place(
    tmp_path: Path, broken: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NANOLOOM_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert f"a report is in {tmp_path}/bug-" in nanoloom("run", broken).err


@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_traceback_only_on_demand(
    broken: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    assert "Traceback" not in nanoloom("run", broken).err
    if way == "variable":
        monkeypatch.setenv("NANOLOOM_DEBUG", "1")
    said = nanoloom("run", broken, *(["--debug"] if way == "option" else []))
    assert "Traceback" in said.err and "a secret of the compiler" in said.err


def test_no_memory(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(run_verb, "once", fail)
    said = nanoloom("run", models.write(tmp_path, models.NO_INPUT))
    refused(said, "memory", "smaller dimensions")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, ("/x/y: No space left on device",)),
        (errno.EROFS, ("Read-only file system",)),
        (errno.EACCES, ("Permission denied",)),
        (errno.EINVAL, ("bug of nanoloom (OSError)",)),
    ],
)
def test_what_the_system_refuses(
    tmp_path: Path,
    nanoloom: Command,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    words: tuple[str, ...],
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number), "/x/y")

    monkeypatch.setattr(run_verb, "once", fail)
    said = nanoloom("run", models.write(tmp_path, models.NO_INPUT))
    assert said.status == 1 and "Traceback" not in said.err
    assert all(word in said.told for word in words), said.err


def test_names_cannot_command_the_terminal(tmp_path: Path, nanoloom: Command) -> None:
    said = nanoloom("run", tmp_path / "\x1b[31mred\n.onnx")
    assert said.status == 1 and "\x1b" not in said.err and said.err.count("\n") == 1


# ---- processes


def test_the_module_is_the_command() -> None:
    ran = subprocess.run([*MODULE, "--version"], capture_output=True, check=True)
    assert ran.stdout.startswith(b"nanoloom ")
    wrong = subprocess.run([*MODULE, "run"], capture_output=True, check=False)
    assert wrong.returncode == 2


@pytest.mark.parametrize("words", ["targets --json", "targets", "--help", "run -h"])
def test_a_closed_pipe_is_quiet(cache: Path, words: str) -> None:
    """Its status is what shells say of programs that a closed pipe ends: 128 + 13."""
    environment = {**os.environ, "NANOLOOM_CACHE": str(cache)}
    child = subprocess.Popen(
        [*MODULE, *words.split()],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout and child.stderr
    child.stdout.close()  # before anything is written
    said = child.stderr.read()
    child.wait()
    child.stderr.close()
    assert said == b"" and child.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_files_are_empty_ones(cache: Path, closed: str) -> None:
    """No file that is opened afterwards gets what is printed."""
    environment = {**os.environ, "NANOLOOM_CACHE": str(cache)}
    words = f'exec "$@" {closed}'
    command = ["sh", "-c", words, "sh", *MODULE, "targets"]
    ran = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert bool(ran.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_an_interrupt_is_quiet(tmp_path: Path, cache: Path) -> None:
    """While it works: the model is a pipe's name away, so a script holds it up."""
    code = (
        "import sys, os, signal; from nanoloom.cli import main, run\n"
        "def once(*_):\n"
        "    os.kill(os.getpid(), signal.SIGINT); signal.pause()\n"
        "run.once = once\n"
        # A shell's background job ignores it, and so do its children.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.exit(main.main(sys.argv[1:]))"
    )
    model = models.write(tmp_path, models.NO_INPUT)
    environment = {**os.environ, "NANOLOOM_CACHE": str(cache)}
    ran = subprocess.run(
        [sys.executable, "-c", code, "run", str(model)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 130
    assert "Traceback" not in ran.stderr and "bug" not in ran.stderr
    assert ran.stdout == ""
