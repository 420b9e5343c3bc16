"""nanoloom reproduce yflows: the dataflows of a paper, and what it finds of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.cli.failures import AT_FAULT, DONE, say

if TYPE_CHECKING:
    from nanoloom.reproduce.yflows import Row
    from nanoloom.target.facts import Target


def measure(target: Target, folder: Path, *, quick: bool, json: bool) -> int:
    """Measure, write the files, print the tables; AT_FAULT for a wrong result."""
    from nanoloom.cli import places
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.progress import Watch
    from nanoloom.reproduce import yflows

    places.folder(folder)
    rows: list[Row] = []
    with Watch("measuring") as watch:
        for row in yflows.run(target, watch.say, quick=quick):
            rows.append(row)
            places.write_text(folder / "results.csv", yflows.as_csv(rows))
    text = as_json(yflows.as_dict(rows, target.name))
    places.write_text(folder / "results.json", text + "\n")
    draw(rows, folder)
    if json:
        print(text)
    else:
        show(rows, target, folder)
    return AT_FAULT if any(x.absent for row in rows for x in row.ranked) else DONE


def draw(rows: Sequence[Row], folder: Path) -> None:
    """The figures, where they can be drawn."""
    from nanoloom.cli import places
    from nanoloom.cli.reproduce import EXTRA
    from nanoloom.reproduce.pictures import can_draw

    if not can_draw():
        say(f"nanoloom: no pictures without matplotlib; {EXTRA}")
        return
    from nanoloom.reproduce.yflows_pictures import pictures

    for name, data in pictures(rows).items():
        with places.written(folder / name) as file:
            file.write(data)


def show(rows: Sequence[Row], target: Target, folder: Path) -> None:
    """The figures as tables, and the findings."""
    from nanoloom.cli.screen import indented, out, table
    from nanoloom.reproduce.yflows import (
        findings,
        gain,
        shown,
        to_basic_output,
        to_output,
    )
    from nanoloom.schedule.dataflow.dataflow import KINDS

    screen = out()
    for title, value in (
        ("Figure 2: time of the basic dataflows, of output's", to_basic_output),
        ("Figure 7a: best extended, times as fast as basic", gain),
        ("Figure 7b: time of the best extended, of output's", to_output),
    ):
        cells = [
            (r.layer.name, *(shown(value(r, kind)) for kind in KINDS)) for r in rows
        ]
        screen.print(table(title, ("layer", *(f">{kind}" for kind in KINDS)), cells))
        screen.print()
    for row in rows:
        for x in row.ranked:
            if x.absent:
                screen.print(
                    indented(f"{row.layer.name}, {x.flow}: {x.absent}", 2, "dim")
                )
    words = {None: "not measured", True: "holds", False: "does not hold"}
    for found in findings(rows):
        told = (
            f"Finding {found.number}: {found.what}: {words[found.holds]}; {found.here}"
        )
        screen.print(indented(told, 0))
    screen.print(indented(f"compiled for {target.name}, one thread, f32", 0, "dim"))
    screen.print(indented(f"results.csv, results.json, pictures: {folder}", 0))
