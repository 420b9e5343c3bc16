"""nanoloom reproduce chapter-h: a convolution by schedules from MLIR's tutorial."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.cli.failures import AT_FAULT, DONE
from nanoloom_papers.cli.plot_note import said_undrawn

if TYPE_CHECKING:
    from nanoloom.target.facts import Target
    from nanoloom_papers.reproduce.chapter_h import Plan
    from nanoloom_papers.reproduce.measurement import Row


def measure(
    plan: Plan, peers: tuple[str, ...], target: Target, folder: Path, json: bool
) -> int:
    """Measure, write the files, print the table; AT_FAULT if nanoloom is."""
    from nanoloom_papers.reproduce.chapter_h import KINDS

    row = measured(plan, peers, target, folder)
    write(row, target, folder)
    show(row, target, folder, json)
    return AT_FAULT if set(KINDS) & set(row.absent) else DONE


def measured(plan: Plan, peers: tuple[str, ...], target: Target, folder: Path) -> Row:
    """Everybody's times; what each of nanoloom's schedules makes is written before."""
    from nanoloom.cli import output_files
    from nanoloom.cli.progress import Watch
    from nanoloom_papers.reproduce.channeled_peers import FORM_PEERS, OTHERS
    from nanoloom_papers.reproduce.chapter_h import listings, run
    from nanoloom_papers.reproduce.contenders import Company
    from nanoloom_papers.reproduce.measurement import Setting
    from nanoloom_papers.reproduce.timing import QUICK, Pace

    narrow = target.vector.bits < 512
    keys = (*plan.forms, *peers)
    with (
        Watch(doing="measuring") as watch,
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
        Company(keys, Path(scratch), narrow, (*FORM_PEERS, *OTHERS)) as company,
    ):
        for form in plan.forms:
            watch.say(f"{form}: loops, script and assembly", 0, 0)
            for ending, text in listings(form, plan.sizes, target).items():
                output_files.write_text(folder / f"{form}.{ending}", text)
        pace = QUICK if plan.quick else Pace()
        return run(plan, Setting(target, company, Path(scratch), pace, watch.say))


def write(row: Row, target: Target, folder: Path) -> None:
    """The files of a run."""
    from nanoloom.cli import output_files
    from nanoloom.cli.arrays import as_json
    from nanoloom_papers.reproduce import channeled_tables, pictures

    output_files.write_text(folder / "results.csv", channeled_tables.as_csv(row))
    text = as_json(channeled_tables.as_dict(row, target.name))
    output_files.write_text(folder / "results.json", text + "\n")
    if pictures.can_draw():
        with output_files.written(folder / "chapter-h.png") as file:
            file.write(channeled_tables.picture(row))


def show(row: Row, target: Target, folder: Path, json: bool) -> None:
    """JSON; or the table, and under it what is needed to read it."""
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.terminal import indented, out, table
    from nanoloom_papers.reproduce import channeled_tables

    if json:
        print(as_json(channeled_tables.as_dict(row, target.name)))
        return
    screen, made = out(), channeled_tables.sheet(row)
    screen.print(table(made.title, made.columns, made.rows))
    for note in made.notes:
        screen.print(indented(note, 2, "dim"))
    screen.print()
    versions = ", ".join(dict.fromkeys(row.names.values()))
    screen.print(indented(f"compiled for {target.name}; {versions}", 0, "dim"))
    told = "results.csv, results.json, a picture; loops, script and assembly of each"
    screen.print(indented(f"{told} schedule: {folder}", 0))
    said_undrawn()
