"""nanoloom reproduce yflows: the dataflows of a paper, and what it finds of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.cli.failures import AT_FAULT, DONE, say

if TYPE_CHECKING:
    from nanoloom.reproduce import flow_figures
    from nanoloom.reproduce.yflows import Row
    from nanoloom.target.facts import Target

Say = Callable[[str, int, int], None]


def measure(target: Target, folder: Path, tvm: str, *, quick: bool, json: bool) -> int:
    """Measure, write the files, print the tables; AT_FAULT for a wrong result.

    tvm: the Python that has TVM, "" for this one.
    """
    from nanoloom.cli import places
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.progress import Watch
    from nanoloom.reproduce import flow_figures, yflows

    places.folder(folder)
    rows: list[Row] = []
    with Watch("measuring") as watch:
        for row in yflows.run(target, watch.say, quick=quick):
            rows.append(row)
            places.write_text(folder / "results.csv", yflows.as_csv(rows))
        networks = measured(target, folder, tvm, watch.say, quick=quick)
    made = yflows.as_dict(rows, target.name) | flow_figures.as_dict(networks)
    text = as_json(made)
    places.write_text(folder / "results.json", text + "\n")
    draw(rows, networks, folder)
    if json:
        print(text)
    else:
        show(rows, target)
        show_networks(networks, folder)
    wrong = any(x.absent for row in rows for x in row.ranked)
    missed = any("nanoloom" in row.absent for row in networks)
    return AT_FAULT if wrong or missed else DONE


def measured(
    target: Target, folder: Path, tvm: str, say: Say, *, quick: bool
) -> list[flow_figures.Row]:
    """Figures 8 and 9; files are written after each row."""
    from nanoloom.cli import places
    from nanoloom.reproduce import flow_figures, flow_peers
    from nanoloom.reproduce.contenders import Company

    peers = flow_peers.peers(tvm)
    keys = tuple(peer.key for peer in peers)
    rows: list[flow_figures.Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
        Company(keys, Path(scratch), known=peers) as company,
    ):
        for row in flow_figures.run(target, company, Path(scratch), say, quick=quick):
            rows.append(row)
            places.write_text(folder / "networks.csv", flow_figures.as_csv(rows))
    return rows


def draw(
    rows: Sequence[Row], networks: Sequence[flow_figures.Row], folder: Path
) -> None:
    """The figures, where they can be drawn."""
    from nanoloom.cli import places
    from nanoloom.cli.reproduce import EXTRA
    from nanoloom.reproduce.pictures import can_draw

    if not can_draw():
        say(f"nanoloom: no pictures without matplotlib; {EXTRA}")
        return
    from nanoloom.reproduce.yflows_pictures import network_pictures, pictures

    for name, data in (pictures(rows) | network_pictures(networks)).items():
        with places.written(folder / name) as file:
            file.write(data)


def show(rows: Sequence[Row], target: Target) -> None:
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


def show_networks(rows: Sequence[flow_figures.Row], folder: Path) -> None:
    """Figures 8 and 9 as tables of milliseconds, and who is missing."""
    from nanoloom.cli.screen import indented, out, table
    from nanoloom.reproduce.flow_figures import binary_gain

    screen = out()
    for figure, title in ((8, "int8 networks"), (9, "binary layers")):
        own = [row for row in rows if row.subject.figure == figure]
        keys = list(dict.fromkeys(key for row in own for key in row.seconds))
        cells = [
            (
                row.subject.name,
                row.subject.element,
                str(row.threads),
                *(milliseconds(row.seconds.get(key)) for key in keys),
            )
            for row in own
        ]
        columns = ("of", "element", ">thr", *(f">{key}" for key in keys))
        screen.print(table(f"Figure {figure}: {title}, ms", columns, cells))
        screen.print()
    for name, gain in binary_gain(rows).items():
        told = f"{name}: bits are {gain:.1f} times as fast as bytes"
        screen.print(indented(told, 0))
    missing = (f"{key}: {why}" for row in rows for key, why in row.absent.items())
    for told in dict.fromkeys(missing):
        screen.print(indented(f"not measured: {told}", 2, "dim"))
    names = dict.fromkeys(name for row in rows for name in row.names.values())
    screen.print(indented(", ".join(names), 0, "dim"))
    files = "results.csv, networks.csv, results.json, pictures"
    screen.print(indented(f"{files}: {folder}", 0))


def milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3g}"
