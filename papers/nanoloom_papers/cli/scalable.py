"""nanoloom reproduce scalable: the RFC's example, its table, and forms of loops."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.cli.failures import AT_FAULT, DONE
from nanoloom_papers.cli.plot_note import said_undrawn

if TYPE_CHECKING:
    from nanoloom_papers.reproduce.scalable_attempts import Attempt
    from nanoloom_papers.reproduce.scalable_results import Found, Result

SHOWN = ("tiled.mlir", "vectorized-masked.mlir", "vectorized-peeled.mlir")


def measure(folder: Path, *, quick: bool, json: bool) -> int:
    """Try and count, write the files, print the tables; AT_FAULT for a wrong result."""
    from nanoloom.cli import output_files
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.progress import Watch
    from nanoloom_papers.reproduce import scalable, scalable_results

    output_files.folder(folder)
    tried: list[Attempt] = []
    results: list[Result] = []
    with Watch(doing="measuring") as watch:
        files = scalable.example(watch.say)
        for name, text in files.items():
            output_files.write_text(folder / name, text)
        for attempt in scalable.operations(watch.say):
            tried.append(attempt)
        table = scalable_results.attempts_csv(tried)
        output_files.write_text(folder / "operations.csv", table)
        for each in scalable.measured(watch.say, quick=quick):
            results.append(each)
            text = scalable_results.as_csv(results)
            output_files.write_text(folder / "results.csv", text)
    found = scalable_results.Found(files, tried, results)
    text = as_json(scalable_results.as_dict(found))
    output_files.write_text(folder / "results.json", text + "\n")
    draw(results, folder)
    if json:
        print(text)
    else:
        show(found, folder)
    return AT_FAULT if any("wrong" in each.note for each in results) else DONE


def draw(results: Sequence[Result], folder: Path) -> None:
    """The figures, where they can be drawn."""
    from nanoloom.cli import output_files

    if said_undrawn():
        return
    from nanoloom_papers.reproduce.scalable_pictures import pictures

    for name, data in pictures(results).items():
        with output_files.written(folder / name) as file:
            file.write(data)


def show(found: Found, folder: Path) -> None:
    """The example's steps, the tables, and whether the claims hold here."""
    from nanoloom.cli.terminal import indented, out
    from nanoloom_papers.reproduce.scalable_results import claims

    screen = out()
    for name in SHOWN:
        screen.print(f"{name}:")
        for line in found.files[name].splitlines():
            screen.print(indented(line, 2))
    lines = ((name, len(text.splitlines())) for name, text in found.files.items())
    told = ", ".join(f"{name} ({count})" for name, count in lines)
    screen.print(indented(f"files of the example, and their lines: {told}", 0, "dim"))
    screen.print()
    show_operations(found.attempts)
    show_forms(found.results)
    words = {None: "not measured", True: "holds", False: "does not hold"}
    for claim in claims(found):
        screen.print(indented(f"{claim.what}: {words[claim.holds]}; {claim.here}", 0))
    written = "operations.csv, results.csv, results.json, pictures"
    screen.print(indented(f"the example's files, {written}: {folder}", 0))


def show_operations(attempts: Sequence[Attempt]) -> None:
    """What works on scalable vectors; beneath it why the others do not."""
    from nanoloom.cli.terminal import indented, out, table

    columns = [(by, at) for by in ("mlir", "nanoloom") for at in ("sve", "rvv")]
    cells: list[tuple[str, ...]] = []
    for name in dict.fromkeys(x.name for x in attempts):
        own = [x for x in attempts if x.name == name]
        works = {(x.by, x.machine): "yes" if x.works else "no" for x in own}
        cells.append((name, own[0].rfc, *(works.get(each, "") for each in columns)))
    titles = ("", "RFC", *(f"{by}, {at}" for by, at in columns))
    screen = out()
    screen.print(table("Operations on scalable vectors, each tried", titles, cells))
    for x in attempts:
        if x.reason:
            reason = f"{x.name}, {x.by}, {x.machine}: {x.reason}"
            screen.print(indented(reason, 2, "dim"))
    screen.print()


def show_forms(results: Sequence[Result]) -> None:
    """A table for each quantity, a column for each form."""
    from nanoloom.cli.terminal import indented, out, table

    screen = out()
    for quantity in dict.fromkeys(x.quantity for x in results):
        own = [x for x in results if x.quantity == quantity and x.value is not None]
        forms = list(dict.fromkeys(x.form for x in own))
        values = {(x.kernel, x.size, x.machine, x.form): x.value for x in own}
        rows = list(dict.fromkeys((x.kernel, x.machine, x.size) for x in own))
        cells = [
            (kernel, machine, f"{size}",
             *(number(values.get((kernel, size, machine, form))) for form in forms))
            for kernel, machine, size in rows
        ]  # fmt: skip
        columns = ("kernel", "machine", ">size", *(f">~{form}" for form in forms))
        if cells:
            screen.print(table(f"Forms of loops: {quantity}", columns, cells))
    notes = (f"{x.kernel}, {x.machine} {x.form}: {x.note}" for x in results if x.note)
    for note in dict.fromkeys(notes):
        screen.print(indented(note, 2, "dim"))
    screen.print()


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"
