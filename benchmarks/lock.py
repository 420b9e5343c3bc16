"""What each model is held to: time ratio, compile time and memory, by kind of machine.

    python -m benchmarks lock [--models bert-base,mlp1024] [--threads 1,2] [--write]

Measures as whole_models does, and says what got slower since benchmarks/lock.json was
written; status 1 where something did.  --write holds the models to what is found now;
the rest stays.  `benchmarks bisect MODEL` finds the commit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import commit
from benchmarks.whole_models import Row, measured_rows
from nanoloom.errors import Error
from nanoloom.target.host import host

LOCK = Path(__file__).with_name("lock.json")
# How much more is slower, beyond what measuring again changes.
ALLOWED = {"ratio": 1.08, "compile_seconds": 1.25, "megabytes": 1.05}
NAMES = {
    "ratio": ("time beside the fastest peer's", ""),
    "compile_seconds": ("time to compile", " s"),
    "megabytes": ("peak memory", " MB"),
}
Locked = dict[str, "Figures"]  # by model, precision and threads


@dataclass(frozen=True)
class Figures:
    """Of a model.  ratio: its time over that of the fastest peer; None without one.

    commit: at which they were measured.
    """

    ratio: float | None
    compile_seconds: float
    megabytes: float
    commit: str


def key_of(model: str, precision: str, threads: int) -> str:
    return f"{model} {precision}, threads: {threads}"


def figures_of(row: Row, commit: str) -> Figures:
    """Of what was measured, rounded to what is worth keeping."""
    ratio = row.measured.ratio
    return Figures(
        None if ratio is None else round(ratio, 3),
        round(row.cold, 2),
        round(row.megabytes.get("peak", float("nan"))),
        commit,
    )


def machine_kind() -> str:
    return host().name.removeprefix("host-")


def read_lock(path: Path = LOCK) -> dict[str, Locked]:
    """By kind of machine.  Raises Error for a file that is no lock."""
    if not path.exists():
        return {}
    try:
        kept: dict[str, dict[str, dict[str, Any]]] = json.loads(path.read_text("utf-8"))
        return {
            machine: {key: Figures(**figures) for key, figures in models.items()}
            for machine, models in kept.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        hint = "write it again: python -m benchmarks lock --write"
        raise Error(f"is no lock: {error}", where=str(path), hint=hint) from None


def write_lock(locked: Mapping[str, Locked], path: Path = LOCK) -> None:
    """A model a line, in order, so that differences can be read."""
    machines = [
        f" {json.dumps(machine)}: {{\n"
        + ",\n".join(
            f"  {json.dumps(key)}: {json.dumps(asdict(models[key]))}"
            for key in sorted(models)
        )
        + "\n }"
        for machine, models in sorted(locked.items())
    ]
    path.write_text("{\n" + ",\n".join(machines) + "\n}\n", "utf-8")


def slower(kept: Locked, found: Locked) -> list[str]:
    """A sentence for each figure that grew by more than is allowed."""
    said: list[str] = []
    for key in sorted({*kept} & {*found}):
        before, now = asdict(kept[key]), asdict(found[key])
        for figure, allowed in ALLOWED.items():
            old, new = before[figure], now[figure]
            if old is None or new is None or not new > allowed * old:
                continue
            what, unit = NAMES[figure]
            said.append(
                f"{key}: {what} was {old:g}{unit} and is {new:g}{unit} "
                f"({new / old:.2f} times) since {kept[key].commit}; "
                f"python -m benchmarks bisect {key.split()[0]} --figure {figure}"
            )
    return said


def compare(rows: Sequence[Row], write: bool, path: Path = LOCK) -> list[str]:
    """What got slower on this kind of machine; with `write`, rows are the lock now."""
    now = commit() if write else ""
    found = {
        key_of(row.measured.task.name, row.precision, row.measured.threads): figures_of(
            row, now
        )
        for row in rows
    }
    locked, kind = read_lock(path), machine_kind()
    said = slower(locked.get(kind, {}), found)
    if write:
        locked[kind] = locked.get(kind, {}) | found
        write_lock(locked, path)
    return said


def main(arguments: list[str] | None = None, *, ends: bool = True) -> None:
    """ends: whether the process does where something got slower."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    write = "--write" in given
    rows = measured_rows([word for word in given if word != "--write"])
    said = compare(rows, write)
    print("\n".join(said) or "nothing got slower", flush=True)
    if said and ends and not write:
        sys.exit(1)
