"""nanoloom explain: what became of a model, kernel by kernel, and what limits each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanoloom.cli import options as words
from nanoloom.cli.bench import Repeat
from nanoloom.cli.compile import TargetName
from nanoloom.cli.failures import DONE, say
from nanoloom.cli.request import Request, with_options

if TYPE_CHECKING:
    from nanoloom.cli.progress import Watch
    from nanoloom.explain.report import Explanation

EXAMPLE = "Example: nanoloom explain model.onnx --layer Conv_0"
REPORT, PAGES = ".json", (".html", ".htm")
Explained = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="An ONNX file, a .pt2 of PyTorch, or a report (.json)."
    ),
]
Other = Annotated[
    Path | None,
    typer.Argument(
        metavar="OTHER", help="Another of them: list what got slower in it."
    ),
]
Layer = Annotated[
    str,
    typer.Option(
        "--layer",
        metavar="NAME",
        help="All of one layer: loops, schedule, assembly. A kernel, or a pattern.",
    ),
]

Page = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE.html", help="Write one page, for any browser."
    ),
]


@with_options("emulate", "schedule", model=Explained)
def explain(
    request: Request,
    other: Other = None,
    layer: Layer = "",
    target: TargetName = None,
    repeat: Repeat = None,
    out: Page = None,
    json: words.Json = False,
    debug: words.Debug = False,
) -> int:
    """Say what became of a model: its kernels, how fast they are and why.

    With --target nothing is measured.
    """
    del debug
    request = replace(request, target=target)
    check_page(out, other)
    if other is not None:
        compare(request, replace(request, model=other), layer, repeat, json=json)
        return DONE
    found = report_of(request, layer, repeat)
    write_page(out, found)
    if json or out is None:
        tell(found, whole=bool(layer), json=json)
    return DONE


def write_page(path: Path | None, found: Explanation) -> None:
    """The report for a browser, if it is wanted."""
    if path is not None:
        from nanoloom.cli.output_files import write_text
        from nanoloom.explain.page import page

        write_text(path, page(found))


def compare(
    one: Request, other: Request, layer: str, runs: int | None, *, json: bool
) -> None:
    """What got slower from one model or report to another."""
    from nanoloom.cli.compared_reports import show_comparison
    from nanoloom.cli.progress import Watch

    with Watch() as watch:  # a mistake in either is told before anything is measured
        taken = [take(each, watch) for each in (one, other)]
        reports = [each(layer, runs) for each in taken]
    show_comparison(*reports, json=json)


def check_page(path: Path | None, other: Path | None) -> None:
    """Refuse now what could not be written after the measurement."""
    from nanoloom.cli.output_files import check_replaceable

    if path is None:
        return
    if other is not None:
        reason = "a comparison is no page; leave -o out"
        raise typer.BadParameter(reason, param_hint="--out")
    if path.suffix not in PAGES:
        reason = f"{path} does not end in {PAGES[0]}"
        raise typer.BadParameter(reason, param_hint="--out")
    check_replaceable(path, PAGES[0])


def report_of(request: Request, layer: str, runs: int | None) -> Explanation:
    """A report that is read, or made of a model."""
    from nanoloom.cli.progress import Watch

    with Watch() as watch:
        return take(request, watch)(layer, runs)


def take(request: Request, watch: Watch) -> Callable[[str, int | None], Explanation]:
    """A report or a model with its inputs, read and checked; nothing is compiled yet.

    What is returned takes a layer and a number of runs, and gives the report.
    """
    from nanoloom.cli.model_inputs import inputs_for, open_program, random_note
    from nanoloom.explain.report import read
    from nanoloom.fork_lock import wait_for_compiler

    if request.model.suffix == REPORT:
        kept = read(request.model)
        return lambda *_: kept
    program = open_program(request, watch)
    given = inputs_for(program, request)
    arrays = program.checked(given.arrays)

    def made(layer: str, runs: int | None) -> Explanation:
        with wait_for_compiler():
            from nanoloom.explain.explain import explain as explained
        shapes = {name: array.shape for name, array in arrays.items()}
        measured = request.target is None
        found = explained(
            program, shapes, arrays, layer=layer, runs=runs, measured=measured
        )
        if given.random and measured:
            say(random_note(given.random, request.seed))
        return found

    return made


def tell(found: Explanation, *, whole: bool, json: bool) -> None:
    """The report on stdout."""
    from rich.text import Text

    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.failures import printable
    from nanoloom.cli.terminal import out
    from nanoloom.explain.text import lines_of

    if json:
        print(as_json(found.to_dict()))
        return
    screen = out()
    for text, style in lines_of(found, whole=whole):
        screen.print(Text(printable(text), style), soft_wrap=True)
