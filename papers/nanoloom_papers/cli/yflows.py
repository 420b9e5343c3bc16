"""nanoloom reproduce yflows: the dataflows of a paper, and what it finds of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanoloom.cli.failures import AT_FAULT, DONE
from nanoloom_papers.cli.plot_note import said_undrawn

if TYPE_CHECKING:
    from nanoloom.target.facts import Target
    from nanoloom_papers.reproduce import flow_figures
    from nanoloom_papers.reproduce.yflows import Row

Say = Callable[[str, int, int], None]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Of yflows: what the folder's CSV files have stays as it is."
    ),
]
Tvm = Annotated[
    Path | None,
    typer.Option(
        "--tvm",
        metavar="PYTHON",
        exists=True,
        dir_okay=False,
        help="Of yflows: the Python that has TVM, if not ours.",
    ),
]
WRONG = "wrong result"  # unlike what is refused


@dataclass(frozen=True)
class How:
    """tvm: the Python that has TVM, None for this one.  quick: tiny layers.  resume:
    what the files in the folder have is not measured again."""

    tvm: Path | None
    quick: bool
    resume: bool


def require(own: bool, name: str, tvm: Path | None, *, resume: bool) -> None:
    """Raises typer.BadParameter where a measurement has no such words."""
    if own:
        return
    if tvm is not None:
        raise typer.BadParameter(f"{name} has no TVM", param_hint="--tvm")
    if resume:
        reason = f"{name} is always measured whole"
        raise typer.BadParameter(reason, param_hint="--resume")


def measure(target: Target, folder: Path, how: How, *, json: bool) -> int:
    """Measure, write the files, print the tables; AT_FAULT for a wrong result."""
    from nanoloom.cli import output_files
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.progress import Watch
    from nanoloom_papers.reproduce import flow_figures, yflows_files

    output_files.folder(folder)
    with Watch(doing="measuring") as watch:
        rows = searched(target, folder, watch.say, how)
        networks = measured(target, folder, watch.say, how)
    made = yflows_files.as_dict(rows, target.name) | flow_figures.as_dict(networks)
    text = as_json(made)
    output_files.write_text(folder / "results.json", text + "\n")
    draw(rows, networks, folder)
    if json:
        print(text)
    else:
        show(rows, target)
        show_networks(networks, folder)
    wrong = any(x.absent.startswith(WRONG) for row in rows for x in row.ranked)
    missed = any("nanoloom" in row.absent for row in networks)
    return AT_FAULT if wrong or missed else DONE


def searched(target: Target, folder: Path, say: Say, how: How) -> list[Row]:
    """Figures 2 and 7; the file is written after each layer."""
    from nanoloom.cli import output_files
    from nanoloom_papers.reproduce import yflows, yflows_files

    path = folder / "results.csv"
    done = yflows_files.from_csv(read(path) if how.resume else "")
    rows: list[Row] = []
    for row in yflows.run(target, say, quick=how.quick, done=done):
        rows.append(row)
        if row not in done:
            left = [x for x in done if x.layer not in {y.layer for y in rows}]
            output_files.write_text(path, yflows_files.as_csv([*rows, *left]))
    return rows


def measured(
    target: Target, folder: Path, say: Say, how: How
) -> list[flow_figures.Row]:
    """Figures 8 and 9; files are written after each row."""
    from nanoloom.cli import output_files
    from nanoloom_papers.reproduce import flow_figures, flow_peers
    from nanoloom_papers.reproduce.contenders import Company

    peers = flow_peers.peers(str(how.tvm or ""))
    keys = tuple(peer.key for peer in peers)
    rows: list[flow_figures.Row] = []
    kept = read(folder / "networks.csv") if how.resume else ""
    done = flow_figures.from_csv(kept)
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
        Company(keys, Path(scratch), known=peers) as company,
    ):
        for row in flow_figures.run(
            target, company, Path(scratch), say, quick=how.quick, done=done
        ):
            rows.append(row)
            output_files.write_text(folder / "networks.csv", flow_figures.as_csv(rows))
    return rows


def read(path: Path) -> str:
    """A file of an earlier run, "" if there is none."""
    return path.read_text() if path.is_file() else ""


def draw(
    rows: Sequence[Row], networks: Sequence[flow_figures.Row], folder: Path
) -> None:
    """The figures, where they can be drawn."""
    from nanoloom.cli import output_files

    if said_undrawn():
        return
    from nanoloom_papers.reproduce.yflows_pictures import network_pictures, pictures

    for name, data in (pictures(rows) | network_pictures(networks)).items():
        with output_files.written(folder / name) as file:
            file.write(data)


def show(rows: Sequence[Row], target: Target) -> None:
    """The figures as tables, and the findings."""
    from nanoloom.cli.terminal import indented, out, table
    from nanoloom.schedule.dataflow.dataflow import KINDS
    from nanoloom_papers.reproduce.yflows import (
        findings,
        gain,
        shown,
        to_basic_output,
        to_output,
    )

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
            f"Finding {found.number}, {found.element}: {found.what}: "
            f"{words[found.holds]}; {found.here}"
        )
        screen.print(indented(told, 0))
    screen.print(indented(f"compiled for {target.name}, one thread", 0, "dim"))


def show_networks(rows: Sequence[flow_figures.Row], folder: Path) -> None:
    """Figures 8 and 9 as tables of milliseconds, and who is missing."""
    from nanoloom.cli.terminal import indented, out, table
    from nanoloom_papers.reproduce.flow_figures import binary_gain

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
