"""nanoloom explain: what became of a model, kernel by kernel, and what limits each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanoloom.cli import options as words
from nanoloom.cli.bench import Repeat
from nanoloom.cli.compile import TargetName
from nanoloom.cli.failures import DONE, say
from nanoloom.cli.lowering_options import AS_IT_IS, Lowering, with_lowering

if TYPE_CHECKING:
    from nanoloom.cli.model_inputs import Request
    from nanoloom.explain.report import Explanation

EXAMPLE = "Example: nanoloom explain model.onnx --layer Conv_0"
REPORT = ".json"
Explained = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="An ONNX file, a .pt2 of PyTorch, or a report (.json)."
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


@with_lowering
def explain(
    model: Explained,
    layer: Layer = "",
    inputs: words.Inputs = None,
    dims: words.Sizes = None,
    target: TargetName = None,
    threads: words.Threads = None,
    precision: words.Precision = "f32",
    unchecked: words.Unchecked = False,
    exact_conv: words.ExactConv = False,
    lowering: Lowering = AS_IT_IS,
    repeat: Repeat = None,
    seed: words.Seed = 0,
    json: words.Json = False,
    cache: words.CacheFolder = None,
    no_cache: words.NoCache = False,
    debug: words.Debug = False,
) -> int:
    """Say what became of a model: its kernels, how fast they are and why.

    With --target nothing is measured.
    """
    del debug
    from nanoloom.cli.model_inputs import Request

    request = Request(
        model,
        words.sizes(dims),
        words.pairs(inputs, "--input", "NAME=FILE.npy"),
        seed,
        threads,
        words.known_precision(precision),
        cache,
        no_cache,
        unchecked,
        exact_conv=exact_conv,
        lowering=lowering,
        target=target,
    )
    found = report_of(request, layer, repeat)
    tell(found, whole=bool(layer), json=json)
    return DONE


def report_of(request: Request, layer: str, runs: int | None) -> Explanation:
    """A report that is read, or made of a model."""
    from nanoloom.cli.model_inputs import inputs_for, open_program, random_note
    from nanoloom.cli.progress import Watch
    from nanoloom.explain.report import read
    from nanoloom.fork_lock import wait_for_compiler

    if request.model.suffix == REPORT:
        return read(request.model)
    with Watch() as watch:
        program = open_program(request, watch)
        given = inputs_for(program, request)
        with wait_for_compiler():
            from nanoloom.explain.explain import explain as explained
        arrays = program.checked(given.arrays)
        shapes = {name: array.shape for name, array in arrays.items()}
        measured = request.target is None
        found = explained(
            program, shapes, arrays, layer=layer, runs=runs, measured=measured
        )
    if given.random and measured:
        say(random_note(given.random, request.seed))
    return found


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
