"""Results that are kept: a file for each benchmark, a folder for each machine.

benchmarks/results/MACHINE/machine.json   what the machine is
benchmarks/results/MACHINE/NAME.json      command, date, commit and printed tables
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.show import Sheet
from nanoloom.errors import InputError
from nanoloom.target.host import host

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results")
MACHINE = "machine.json"
LIST = re.compile(r"\[\n *([^\[\]{}]*?)\n *\]")  # of plain values
BREAK = re.compile(r"\n *")


@dataclass(frozen=True)
class Result:
    """What a command printed.

    commit: of the code that was measured.  stated: it stated the figures in a page, and
    the code that was measured is its own or an earlier one.
    """

    command: str
    date: str
    commit: str
    tables: tuple[Sheet, ...]
    stated: bool = False


@dataclass(frozen=True)
class Machine:
    """Its results by name.  facts: what decides about speed, for the reader."""

    key: str
    title: str
    facts: str
    results: dict[str, Result]


def read_machines(folder: Path = RESULTS) -> list[Machine]:
    """All machines with results, by their titles."""
    found = [read_machine(path.parent) for path in folder.glob(f"*/{MACHINE}")]
    return sorted(found, key=lambda machine: machine.title)


def read_machine(folder: Path) -> Machine:
    facts = json.loads((folder / MACHINE).read_text("utf-8"))
    paths = [path for path in sorted(folder.glob("*.json")) if path.name != MACHINE]
    found = {
        path.stem: result_of(json.loads(path.read_text("utf-8"))) for path in paths
    }
    return Machine(folder.name, facts["title"], facts["facts"], found)


def result_of(record: dict[str, Any]) -> Result:
    """The inverse of `asdict`."""
    tables = [
        Sheet(
            each["title"],
            tuple(each["columns"]),
            tuple(tuple(row) for row in each["rows"]),
            tuple(each["notes"]),
        )
        for each in record["tables"]
    ]
    rest = {key: value for key, value in record.items() if key != "tables"}
    return Result(**rest, tables=tuple(tables))


def write_result(
    name: str, words: Sequence[str], tables: Sequence[Sheet], folder: Path = RESULTS
) -> Path:
    """Keep what `python -m benchmarks WORDS` printed on this machine."""
    machine = folder / host().name.removeprefix("host-")
    machine.mkdir(parents=True, exist_ok=True)
    if not (machine / MACHINE).exists():
        facts = f"{host().vector.bits} bits a vector, LLVM's {machine.name}"
        dump(machine / MACHINE, {"title": cpu_name(), "facts": facts})
    command = " ".join(("python -m benchmarks", *words))
    today = date.today().isoformat()
    path = machine / f"{name}.json"
    dump(path, asdict(Result(command, today, commit(), tuple(tables))))
    return path


def dump(path: Path, record: object) -> None:
    """JSON with a row of a table in a line, so that differences can be read."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    text = LIST.sub(lambda found: f"[{BREAK.sub(' ', found[1])}]", text)
    path.write_text(text + "\n", "utf-8")


def commit() -> str:
    """The commit that is measured, which has to hold all of the package."""
    if git("status", "--porcelain", "--", "nanoloom"):
        raise InputError(
            "nanoloom/ has changes without a commit: a kept result names the commit "
            "it was measured at, so commit them first"
        )
    return git("rev-parse", "--short=7", "HEAD")


def git(*words: str) -> str:
    """What git says of this repository."""
    done = subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def cpu_name() -> str:
    """The CPU as Linux calls it."""
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return host().name
