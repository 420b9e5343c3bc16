"""nanoloom run: a model, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanoloom.cli import options as words
from nanoloom.cli.emulation import Emulation
from nanoloom.cli.failures import DONE, say
from nanoloom.cli.lowering_options import AS_IT_IS
from nanoloom.cli.request import Request, with_options

if TYPE_CHECKING:
    from nanoloom.api.loaded import Loaded
    from nanoloom.api.program import Program
    from nanoloom.cli.arrays import Array, Destinations
    from nanoloom.cli.model_inputs import Inputs
    from nanoloom.cli.progress import Watch

EXAMPLE = "Example: nanoloom run bert.onnx -d batch=1 -i ids=ids.npy -o results/"
SHOWN = 3  # values of an output in the table

Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="NAME=FILE.npy",
        help="Write an output to a file, the only one to FILE.npy, or all to FILE.npz "
        "or a FOLDER; may be repeated.",
    ),
]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="An ONNX file, a .pt2 of PyTorch, linalg in a file .mlir, or what "
        "`nanoloom compile` made.",
    ),
]


@dataclass(frozen=True)
class Ran:
    """What a run took and gave.  taken: seconds by part."""

    inputs: Inputs
    outputs: Mapping[str, Array]
    taken: Mapping[str, float]


@with_options(model=Model)
def run(
    request: Request,
    outputs: Outputs = None,
    json: words.Json = False,
    time_report: words.TimeReport = False,
    debug: words.Debug = False,
) -> int:
    """Run a model once, compiling what is not compiled yet, and say what comes out."""
    del debug
    from nanoloom.cli.arrays import Destinations
    from nanoloom.cli.model_inputs import inputs_for
    from nanoloom.cli.progress import Watch
    from nanoloom.cli.times import show_times

    with Watch() as watch:
        program = opened(request, watch)
        given = inputs_for(program, request)
        names = [x.name for x in program.outputs]
        destinations = Destinations.of(outputs, names, request.model)
        ran = once(program, given, watch)
    destinations.write(ran.outputs)
    tell(ran, destinations, request.seed, thread_count(program) if json else None)
    if time_report:
        show_times(watch)
    return DONE


def tell(ran: Ran, destinations: Destinations, seed: int, threads: int | None) -> None:
    """What came out: as JSON with a number of threads, for readers without."""
    from nanoloom.cli.arrays import as_json

    paths = {name: destinations.path(name) for name in ran.outputs}
    if threads is None:
        show(ran, paths, seed)
    else:
        print(as_json(answer(ran, paths, threads, seed)))


def opened(request: Request, watch: Watch) -> Program | Loaded | Emulation:
    """A model to be compiled, for this machine or another, or a library that is."""
    from nanoloom.cli import model_inputs, session

    if not session.is_library(request.model):
        program = model_inputs.open_program(request, watch)
        if request.emulate is None:
            return program
        return Emulation(program, request.emulate, watch)
    if request.emulate is not None:
        reason = "a model is emulated, not a compiled library"
        raise typer.BadParameter(reason, param_hint="--emulate")
    if request.unchecked:
        reason = "a compiled library has its checks, or was compiled without them"
        raise typer.BadParameter(reason, param_hint="--unchecked")
    if request.exact_conv:
        reason = "a compiled library has its convolutions already"
        raise typer.BadParameter(reason, param_hint="--exact-conv")
    if request.lowering != AS_IT_IS:
        reason = "the kernels of a compiled library are made"
        raise typer.BadParameter(reason, param_hint="--strategy")
    if request.schedule is not None:
        reason = "the kernels of a compiled library are made by their schedules"
        raise typer.BadParameter(reason, param_hint="--schedule")
    loaded = session.open_library(request.model, request.threads)
    if request.dims and not loaded.library.dims:
        reason = "the dimensions of this library are numbers already"
        raise typer.BadParameter(reason, param_hint="--dim")
    return loaded


def once(program: Program | Loaded | Emulation, inputs: Inputs, watch: Watch) -> Ran:
    """Compile if needed, and run."""
    started = time.perf_counter()
    call = ready(program, inputs.arrays)
    compiled = time.perf_counter()
    with watch.waiting("run"):
        outputs = call(inputs.arrays)
    end = time.perf_counter()
    taken = {"compile and load": compiled - started, "run": end - compiled}
    return Ran(inputs, outputs, taken)


def ready(
    program: Program | Loaded | Emulation, arrays: Mapping[str, Array]
) -> Callable[[Mapping[str, Array]], Mapping[str, Array]]:
    """The code for these shapes, compiled now if it is not in the cache."""
    from nanoloom.api.loaded import Loaded

    return program if isinstance(program, Loaded) else program.variant(arrays)


def thread_count(program: Program | Loaded | Emulation) -> int:
    from nanoloom.api.loaded import Loaded

    if isinstance(program, Loaded):
        return program.instance.threads
    return program.threads


def answer(
    ran: Ran, paths: Mapping[str, Path | None], threads: int, seed: int
) -> dict[str, Any]:
    """What `--json` prints."""
    from nanoloom.cli.arrays import described

    inputs = [
        {
            "name": name,
            "dtype": array.dtype.name,
            "shape": list(array.shape),
            "random": name in ran.inputs.random,
        }
        for name, array in ran.inputs.arrays.items()
    ]
    outputs: list[dict[str, Any]] = []
    for name, array in ran.outputs.items():
        file = paths[name]
        outputs.append(described(name, array) | {"file": str(file) if file else None})
    facts = {"threads": threads, "seed": seed, "seconds": ran.taken}
    return {**facts, "inputs": inputs, "outputs": outputs}


def show(ran: Ran, paths: Mapping[str, Path | None], seed: int) -> None:
    """The outputs as a table; on stderr, which inputs nobody gave."""
    from nanoloom.cli.arrays import dims_text, short, summary
    from nanoloom.cli.model_inputs import random_note
    from nanoloom.cli.terminal import out, table

    if ran.inputs.random:
        say(random_note(ran.inputs.random, seed))
    rows: list[list[str]] = []
    for name, array in ran.outputs.items():
        facts = summary(array)
        odd = [f"{facts[k]} {k}" for k in ("nan", "inf") if facts.get(k)]
        first = " ".join(short(v) for v in facts["first"][:SHOWN])
        more = " ..." if array.size > SHOWN else ""
        extremes = [short(facts[k]) for k in ("min", "max", "mean")]
        values = ", ".join([*odd, first + more])
        kind = f"{array.dtype.name} {dims_text(array.shape)}"
        rows.append([name, kind, *extremes, values])
    columns = ("~output", "type", ">min", ">max", ">mean", "-values")
    screen = out()
    screen.print(table("", columns, rows))
    for name, path in paths.items():
        if path is not None:
            screen.print(f"{name} -> {path}", markup=False, soft_wrap=True)
