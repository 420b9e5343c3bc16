"""nanoloom reproduce: the tables and figures of a paper, measured on this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanoloom.cli import options as words
from nanoloom.cli.failures import AT_FAULT, DONE
from nanoloom_papers.cli import oml_vect, scalable, yflows
from nanoloom_papers.cli.plot_note import said_undrawn
from nanoloom_papers.cli.yflows import Resume, Tvm

if TYPE_CHECKING:
    from nanoloom.target.facts import Target
    from nanoloom_papers.reproduce.measurement import Row
    from nanoloom_papers.reproduce.nanokernels import Plan

EXAMPLE = "Example: nanoloom reproduce nanokernels --sizes 1024 --threads 1,2"
NANOKERNELS, CHAPTER_H = "nanokernels", "chapter-h"
OML_VECT, YFLOWS, SCALABLE = "oml-vect", "yflows", "scalable"
SUITES = (NANOKERNELS, CHAPTER_H, OML_VECT, YFLOWS, SCALABLE)
NONE = "none"
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="What to reproduce: nanokernels, chapter-h, oml-vect, yflows, scalable.",
    ),
]
Threads = Annotated[
    str | None,
    typer.Option(
        "--threads", "-t", metavar="LIST", help="Numbers of threads, comma between."
    ),
]
Sizes = Annotated[
    str | None,
    typer.Option(
        "--sizes", metavar="LIST", help="Widths and edges (default: the paper's)."
    ),
]
Kinds = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="LIST",
        help="mlp, gemm; of chapter-h: nanoloom, early, late, vectors, late-copied, "
        "vectors-copied (default: all).",
    ),
]
Precisions = Annotated[
    str | None,
    typer.Option("--precision", metavar="LIST", help="f32, bf16, bf16-flat, int8."),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="LIST",
        help="onednn, pytorch, openvino, openblas, onnxruntime; or none.  Of "
        "chapter-h: halide, loops.",
    ),
]
TargetName = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="NAME",
        help="Compile for less than this machine has, as x86-64-v3 (AVX2).",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder", metavar="DIR", help="Where CSV, JSON and PNG are put (NAME)."
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Tiny sizes, hardly measured: does it work?")
]


def reproduce(
    name: Name,
    threads: Threads = None,
    sizes: Sizes = None,
    only: Kinds = None,
    precision: Precisions = None,
    against: Against = None,
    target: TargetName = "host",
    folder: Folder = None,
    tvm: Tvm = None,
    quick: Quick = False,
    resume: Resume = False,
    json: words.Json = False,
    debug: words.Debug = False,
) -> int:
    """Measure a paper's tables and figures on this machine, peers in the same run."""
    del debug
    from nanoloom.cli import output_files
    from nanoloom_papers.reproduce.contenders import PEER_KEYS
    from nanoloom_papers.reproduce.nanokernels import ARITHMETICS, KINDS, Plan

    listed(name, "NAME", SUITES)
    place = folder or Path(name)
    yflows.require(name == YFLOWS, name, tvm, resume=resume)
    if name == CHAPTER_H:
        refuse(name, {"--threads": threads, "--sizes": sizes, "--precision": precision})
        return chapter_h(only, against, target, place, quick, json)
    if name in (OML_VECT, YFLOWS, SCALABLE):
        given = {"--threads": threads, "--sizes": sizes, "--precision": precision}
        refuse(name, {**given, "--only": only, "--against": against})
        if name == SCALABLE:
            refuse(name, {"--target": None if target == "host" else target})
            return scalable.measure(place, quick=quick, json=json)
        if name == OML_VECT:
            return oml_vect.measure(machine(target), place, quick=quick, json=json)
        how = yflows.How(tvm, quick, resume)
        return yflows.measure(machine(target), place, how, json=json)
    chosen = [] if against == NONE else listed(against, "--against", PEER_KEYS)
    wanted = listed(precision, "--precision", ARITHMETICS)
    plan = Plan(
        tuple(listed(only, "--only", KINDS)),
        numbers(sizes, "--sizes"),
        tuple(each for each in ARITHMETICS if each in wanted),
        numbers(threads, "--threads") or default_counts(),
        quick,
    )
    output_files.folder(place)
    rows = measured(plan, tuple(chosen), machine(target), place)
    show(rows, target_name(rows, target), place, json)
    return AT_FAULT if any("nanoloom" in row.absent for row in rows) else DONE


def chapter_h(
    only: str | None,
    against: str | None,
    target: str,
    folder: Path,
    quick: bool,
    json: bool,
) -> int:
    """The convolution of MLIR's chapter H."""
    from nanoloom.cli import output_files
    from nanoloom_papers.cli.chapter_h import measure
    from nanoloom_papers.reproduce.channeled_peers import OTHER_KEYS
    from nanoloom_papers.reproduce.chapter_h import KINDS, Plan

    peers = [] if against == NONE else listed(against, "--against", OTHER_KEYS)
    plan = Plan(tuple(listed(only, "--only", KINDS)), quick)
    output_files.folder(folder)
    return measure(plan, tuple(peers), machine(target), folder, json)


def refuse(name: str, given: Mapping[str, str | None]) -> None:
    """Raises typer.BadParameter for an option that a measurement does not have."""
    for option, value in given.items():
        if value is not None:
            own = "has sizes, types and threads of its own"
            own = own if name == YFLOWS else "has machines and sizes of its own"
            one = "is measured in f32, with one thread"
            reason = f"{name} {own if name in (YFLOWS, SCALABLE) else one}"
            raise typer.BadParameter(reason, param_hint=option)


def listed(text: str | None, option: str, known: Sequence[str]) -> list[str]:
    """Words with commas between, all of them by default.

    Raises typer.BadParameter for an unknown one.
    """
    if text is None:
        return list(known)
    found = [word.strip() for word in text.split(",") if word.strip()]
    for word in found:
        if word not in known:
            reason = f"{word} is none of {', '.join(known)}"
            raise typer.BadParameter(reason, param_hint=option)
    return found


def numbers(text: str | None, option: str) -> tuple[int, ...]:
    """Whole numbers from 1 on, commas between; raises typer.BadParameter."""
    found = [word.strip() for word in (text or "").split(",") if word.strip()]
    for word in found:
        if not (word.isascii() and word.isdigit() and 0 < int(word) <= 1 << 16):
            reason = f"{word} is no whole number from 1 to {1 << 16}"
            raise typer.BadParameter(reason, param_hint=option)
    return tuple(int(word) for word in dict.fromkeys(found))


def default_counts() -> tuple[int, ...]:
    """One thread, and all that this process may use."""
    from nanoloom.runtime.threads import default_threads

    return tuple(sorted({1, default_threads()}))


def machine(name: str) -> Target:
    """The target to compile for, with this machine's caches."""
    from dataclasses import replace

    from nanoloom.target import by_name
    from nanoloom.target.host import host

    here = host()
    return here if name == "host" else replace(by_name(name), caches=here.caches)


def measured(
    plan: Plan, peers: tuple[str, ...], target: Target, folder: Path
) -> list[Row]:
    """All rows; files are written after each, so that little is lost."""
    from nanoloom.cli.progress import Watch
    from nanoloom_papers.reproduce.contenders import Company
    from nanoloom_papers.reproduce.measurement import Setting
    from nanoloom_papers.reproduce.nanokernels import run
    from nanoloom_papers.reproduce.timing import QUICK, Pace

    narrow = target.vector.bits < 512
    with (
        Watch(doing="measuring") as watch,
        tempfile.TemporaryDirectory(prefix="nanoloom-") as scratch,
        Company(peers, Path(scratch), avx2=narrow) as company,
    ):
        total, done = len(plan.chains()), 0

        def tell(doing: str, part: int, parts: int) -> None:
            del part, parts
            watch.say(doing, done, total)

        def keep(rows: Sequence[Row]) -> None:
            nonlocal done
            done += 1
            write(rows, target.name, folder, pictured=False)

        pace = QUICK if plan.quick else Pace()
        setting = Setting(target, company, Path(scratch), pace, tell)
        rows = run(plan, setting, keep)
    write(rows, target.name, folder, pictured=True)
    return rows


def write(rows: Sequence[Row], target: str, folder: Path, *, pictured: bool) -> None:
    """The files of a run."""
    from nanoloom.cli import output_files
    from nanoloom.cli.arrays import as_json
    from nanoloom_papers.reproduce import pictures, tables

    output_files.write_text(folder / "results.csv", tables.as_csv(rows))
    text = as_json(tables.as_dict(rows, target))
    output_files.write_text(folder / "results.json", text + "\n")
    if pictured and pictures.can_draw():
        for name, drawn in pictures.pictures(rows).items():
            with output_files.written(folder / name) as file:
                file.write(drawn)


def target_name(rows: Sequence[Row], name: str) -> str:
    """As the peaks know it."""
    return rows[0].limits.peaks.target if rows else name


def show(rows: Sequence[Row], target: str, folder: Path, json: bool) -> None:
    """JSON; or the tables, and under them what is needed to read them."""
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.terminal import indented, out, table
    from nanoloom_papers.reproduce import tables

    if json:
        print(as_json(tables.as_dict(rows, target)))
        return
    screen = out()
    for sheet in [*tables.speeds(rows), *tables.comparison_sheets(rows)]:
        screen.print(table(sheet.title, sheet.columns, sheet.rows))
        for note in sheet.notes:
            screen.print(indented(note, 2, "dim"))
        screen.print()
    versions = dict.fromkeys(name for row in rows for name in row.names.values())
    screen.print(indented(f"compiled for {target}; {', '.join(versions)}", 0, "dim"))
    screen.print(indented(f"results.csv, results.json and pictures: {folder}", 0))
    said_undrawn()
