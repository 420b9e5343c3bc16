"""nanoloom analyze: what the compiler knows of a file of MLIR text."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanoloom.cli import options as words
from nanoloom.cli.failures import DONE

if TYPE_CHECKING:
    from nanoloom_papers.affine.report import Loop, Reduction

EXAMPLE = "Example: nanoloom analyze reductions loops.mlir"
ANALYSES = ("reductions",)
HINT = "write loops of MLIR's affine dialect"
Name = Annotated[
    str, typer.Argument(metavar="ANALYSIS", help="What to look for: reductions.")
]
File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="MLIR text with loops of the affine dialect."),
]


def analyze(
    name: Name, file: File, json: words.Json = False, debug: words.Debug = False
) -> int:
    """List the loops of an MLIR file and what each of them reduces."""
    del debug
    if name not in ANALYSES:
        reason = f"{name} is none of {', '.join(ANALYSES)}"
        raise typer.BadParameter(reason, param_hint="ANALYSIS")
    loops = find(file)
    if json:
        from dataclasses import asdict

        from nanoloom.cli.arrays import as_json

        print(as_json({"file": str(file), "loops": [asdict(loop) for loop in loops]}))
    else:
        show(file, loops)
    return DONE


def find(file: Path) -> tuple[Loop, ...]:
    """The reduction map of a file, which a worker reads: some texts make MLIR crash.

    Raises InputError, ModelError for a file that cannot be read or is no MLIR.
    """
    from nanoloom.errors import InputError, InternalError
    from nanoloom.notation.mlir_text import Text
    from nanoloom.workers.batch import Batch
    from nanoloom.workers.pool import pool
    from nanoloom_papers.affine.reduction_jobs import FindReductions

    text = Text.of_file(file)
    with Batch["tuple[Loop, ...]"](pool(), 1, lambda _: None) as batch:
        batch.ask(text.place, FindReductions(text))
        try:
            (loops,) = batch.answers().values()
        except InternalError as error:
            raise InputError("makes MLIR crash", where=text.place, hint=HINT) from error
    return loops


def show(file: Path, loops: Sequence[Loop]) -> None:
    """The same for readers: the loops with reductions only."""
    from nanoloom.cli.terminal import indented, out, plural

    reducing = [loop for loop in loops if loop.reductions]
    count = sum(len(loop.reductions) for loop in loops)
    among = f"in {len(reducing)} of {plural(len(loops), 'affine loop')}"
    screen = out()
    told = f"{file}: {plural(count, 'reduction')} {among}"
    screen.print(told, markup=False, style="bold", soft_wrap=True)
    for loop in reducing:
        trips = f", {plural(loop.trips, 'step')}" if loop.trips else ""
        screen.print()
        where = f"line {loop.line}: " if loop.line else ""
        screen.print(indented(f"{where}@{loop.function}, loop {loop.name}{trips}", 0))
        for reduction in loop.reductions:
            head, *others = lines(reduction)
            screen.print(indented(head, 2))
            for line in others:
                screen.print(indented(line, 4))


def lines(reduction: Reduction) -> Generator[str]:
    """A reduction: what, what it is made of, what it reads, what is in the way."""
    memory = " in memory" if reduction.form == "memory" else ""
    kind = f"{reduction.kind}, {reduction.meaning}"
    with_place = f" {reduction.pair}" if reduction.pair else ""
    yield f"{reduction.carried}{memory} ({reduction.type}): {kind}{with_place}"
    if reduction.decomposition:
        made = ", ".join(reduction.decomposition)
        yield f"{', '.join(reduction.operations)} as {made}"
    for read in reduction.reads:
        yield f"reads {read.element}, {read.way}"
    if reduction.obstacle:
        yield f"not vectorized: {reduction.obstacle}"
