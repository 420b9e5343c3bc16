"""nanoloom reproduce oml-vect: a paper's table, figures and claims."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.cli.failures import AT_FAULT, DONE
from nanoloom_papers.cli.plot_note import said_undrawn

if TYPE_CHECKING:
    from nanoloom.target.facts import Target
    from nanoloom_papers.reproduce.oml_results import Result


def measure(target: Target, folder: Path, *, quick: bool, json: bool) -> int:
    """Measure, write the files, print the tables; AT_FAULT for a wrong result."""
    from nanoloom.cli import output_files
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.progress import Watch
    from nanoloom_papers.reproduce import oml_claims, oml_results, oml_vect

    output_files.folder(folder)
    results: list[Result] = []
    with (
        Watch(doing="measuring") as watch,
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
    ):
        for each in oml_vect.run(target, Path(scratch), watch.say, quick=quick):
            results.append(each)
            text = as_json(oml_claims.as_dict(results, target.name))
            output_files.write_text(folder / "results.csv", oml_results.as_csv(results))
            output_files.write_text(folder / "results.json", text + "\n")
    draw(results, folder)
    if json:
        print(as_json(oml_claims.as_dict(results, target.name)))
    else:
        show(results, target, folder)
    return AT_FAULT if any("wrong" in each.note for each in results) else DONE


def draw(results: Sequence[Result], folder: Path) -> None:
    """The figures, where they can be drawn."""
    from nanoloom.cli import output_files

    if said_undrawn():
        return
    from nanoloom_papers.reproduce.oml_pictures import pictures

    for name, data in pictures(results).items():
        with output_files.written(folder / name) as file:
            file.write(data)


def show(results: Sequence[Result], target: Target, folder: Path) -> None:
    """A table for each figure and quantity, and whether the claims hold here."""
    from nanoloom.cli.terminal import indented, out, table
    from nanoloom_papers.reproduce.oml_claims import claims

    screen = out()
    for figure, quantity in dict.fromkeys((x.figure, x.quantity) for x in results):
        own = [x for x in results if (x.figure, x.quantity) == (figure, quantity)]
        names = list(dict.fromkeys(each.contender for each in own))
        cells = [
            (layer, *(number(own, layer, name) for name in names))
            for layer in dict.fromkeys(each.layer for each in own)
        ]
        first = "reduction" if figure == "Table I" else "layer"
        columns = (first, *(f">{name}" for name in names))
        screen.print(table(f"{figure}: {quantity}", columns, cells))
        screen.print()
    for each in results:
        if each.note:
            told = f"{each.figure}, {each.layer}, {each.contender}: {each.note}"
            screen.print(indented(told, 2, "dim"))
    for claim in claims(results):
        here = "not measured" if claim.here is None else f"{claim.here:.3g}"
        word = {None: "", True: ": holds", False: ": does not hold"}[claim.holds]
        paper = f"{'at most ' if claim.most else ''}{claim.paper:g} in the paper"
        screen.print(indented(f"{claim.what}: {here} here, {paper}{word}", 0))
    screen.print(indented(f"compiled for {target.name}, one thread", 0, "dim"))
    screen.print(indented(f"results.csv, results.json, pictures: {folder}", 0))


def number(results: Sequence[Result], layer: str, contender: str) -> str:
    """Four digits, or nothing where nothing was measured."""
    for each in results:
        if (each.layer, each.contender) == (layer, contender):
            value = each.value
            if value is None:
                return ""
            return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return ""
