"""nanoloom reproduce oml-vect: reductions found, and the times of strategies."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.cli.failures import AT_FAULT, DONE

if TYPE_CHECKING:
    from nanoloom.reproduce.oml_vect import Row
    from nanoloom.target.facts import Target


def measure(target: Target, folder: Path, *, quick: bool, json: bool) -> int:
    """Measure, write the files, print the tables; AT_FAULT for a wrong result."""
    from nanoloom.cli import places
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.progress import Watch
    from nanoloom.reproduce import oml_vect

    places.folder(folder)
    with (
        Watch("measuring") as watch,
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
    ):
        rows = oml_vect.run(target, Path(scratch), watch.say, quick=quick)
    text = as_json(oml_vect.as_dict(rows, target.name))
    places.write_text(folder / "results.csv", oml_vect.as_csv(rows))
    places.write_text(folder / "results.json", text + "\n")
    if json:
        print(text)
    else:
        show(rows, target, folder)
    missing = {name for row in rows for name in row.absent} - {oml_vect.PEER}
    return AT_FAULT if missing else DONE


def show(rows: Sequence[Row], target: Target, folder: Path) -> None:
    """Figures 7 and 8 as tables, and whether what the paper claims holds here."""
    from nanoloom.cli.screen import indented, out, table
    from nanoloom.reproduce.oml_vect import CONFIGURATIONS, PEER, claims

    screen, names = out(), (*CONFIGURATIONS, PEER)
    found = [(row.layer.name, str(row.reductions), str(row.by_mlir)) for row in rows]
    columns = ("layer", ">nanoloom", ">MLIR")
    screen.print(table("Figure 7: reductions found in the same loops", columns, found))
    screen.print()
    cells = [
        (row.layer.name, row.layer.size, *(milliseconds(row, name) for name in names))
        for row in rows
    ]
    heads = ("layer", "size", *(f">{name}" for name in names))
    screen.print(table("Figure 8: milliseconds with one thread", heads, cells))
    for row in rows:
        for name, reason in row.absent.items():
            screen.print(indented(f"{row.layer.name}, {name}: {reason}", 2, "dim"))
    screen.print()
    for claim in claims(rows):
        here = "not measured" if claim.here is None else f"{claim.here:.2f}"
        word = "" if claim.holds is None else ": holds" if claim.holds else ": does not"
        told = f"{claim.what}: {here} here, {claim.paper:g} in the paper{word}"
        screen.print(indented(told, 0))
    screen.print(indented(f"compiled for {target.name}", 0, "dim"))
    screen.print(indented(f"results.csv, results.json: {folder}", 0))


def milliseconds(row: Row, name: str) -> str:
    return f"{row.seconds[name] * 1e3:.3g}" if name in row.seconds else ""
