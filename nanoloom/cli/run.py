"""nanoloom run: a model, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanoloom.cli import options as words
from nanoloom.cli.failures import DONE, say

if TYPE_CHECKING:
    from nanoloom.cli.arrays import Array
    from nanoloom.cli.progress import Watch
    from nanoloom.program import Loaded, Program
    from nanoloom.source import Interface

EXAMPLE = "Example: nanoloom run bert.onnx -d batch=1 -i ids=ids.npy -o results/"
SHOWN = 3  # values of an output in the table

Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="NAME=FILE.npy",
        help="Write an output to a file, or all to a FOLDER; may be repeated.",
    ),
]
Precision = Annotated[
    str, typer.Option("--precision", metavar="TYPE", help="Of arithmetic on floats.")
]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="An ONNX file, or a library of `nanoloom compile`."
    ),
]


@dataclass(frozen=True)
class Ran:
    """What a run gave.  random: inputs that were made up; taken: seconds by part."""

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    random: Sequence[str]
    taken: Mapping[str, float]


def run(
    model: Model,
    inputs: words.Inputs = None,
    outputs: Outputs = None,
    dims: words.Dims = None,
    threads: words.Threads = None,
    precision: Precision = "f32",
    seed: words.Seed = 0,
    json: words.Json = False,
    cache: words.CacheFolder = None,
    no_cache: words.NoCache = False,
    time_report: words.TimeReport = False,
    debug: words.Debug = False,
) -> int:
    """Run a model once, compiling what is not compiled yet, and say what comes out."""
    del debug
    from nanoloom.cli import session
    from nanoloom.cli.arrays import Destinations, as_json, load_inputs
    from nanoloom.cli.progress import Watch

    bound = words.dimensions(dims)
    files = words.pairs(inputs, "--input", "NAME=FILE.npy")
    check_precision(precision)
    with Watch() as watch:
        if session.is_library(model):
            refuse_dims(bound)
            program = session.open_library(model, threads)
        else:
            store = session.open_cache(cache, no_cache)
            chosen = session.compile_options(session.target_named(None, store))
            program = session.open_program(
                model, chosen, store, watch, threads=threads, dims=bound
            )
        given = load_inputs(files, program.inputs)
        names = [x.name for x in program.outputs]
        destinations = Destinations.of(outputs, names)
        ran = once(program, given, bound, seed, watch)
    destinations.write(ran.outputs)
    paths = {name: destinations.path(name) for name in names}
    if json:
        print(as_json(answer(ran, paths, thread_count(program), seed)))
    else:
        show(ran, paths, seed)
    if time_report:
        show_times(watch, ran.taken)
    return DONE


def once(
    program: Program | Loaded,
    given: Mapping[str, Array],
    dims: Mapping[str, int],
    seed: int,
    watch: Watch,
) -> Ran:
    """Make up the inputs that are missing, compile if needed, run."""
    arrays, random = complete(program.inputs, given, dims, seed)
    started = time.perf_counter()
    call = ready(program, arrays)
    compiled = time.perf_counter()
    watch.say("running")
    outputs = call(arrays)
    end = time.perf_counter()
    taken = {"compile and load": compiled - started, "run": end - compiled}
    return Ran(arrays, outputs, random, taken)


def complete(
    specs: Sequence[Interface],
    given: Mapping[str, Array],
    dims: Mapping[str, int],
    seed: int,
) -> tuple[dict[str, Array], list[str]]:
    """All inputs, checked, and the names of those that were made up.

    Raises InputError for arrays or dimensions that do not fit.
    """
    from nanoloom.cli.session import bound_shapes
    from nanoloom.frontend.inputs import InputSpec, check_inputs, random_inputs

    shapes = bound_shapes(specs, {n: a.shape for n, a in given.items()}, dims)
    made = [InputSpec(x.name, shapes[x.name], x.dtype) for x in specs]
    missing = [x for x in made if x.name not in given]
    arrays = check_inputs(specs, {**random_inputs(missing, seed), **given})
    return arrays, [x.name for x in missing]


def ready(
    program: Program | Loaded, arrays: Mapping[str, Array]
) -> Callable[[Mapping[str, Array]], Mapping[str, Array]]:
    """The code for these shapes, compiled now if it is not in the cache."""
    from nanoloom.program import Program

    return program.variant(arrays) if isinstance(program, Program) else program


def thread_count(program: Program | Loaded) -> int:
    from nanoloom.program import Program

    if isinstance(program, Program):
        return program.threads
    return program.instance.threads


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
            "random": name in ran.random,
        }
        for name, array in ran.inputs.items()
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
    from nanoloom.cli.screen import out, plural, table

    if ran.random:
        noun = plural(len(ran.random), "input").partition(" ")[2]
        are = "is" if len(ran.random) == 1 else "are"
        say(f"nanoloom: {noun} {', '.join(ran.random)} {are} random (seed {seed})")
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


def show_times(watch: Watch, taken: Mapping[str, float]) -> None:
    """Where the time went, on stderr.  taken: seconds that passed, by part."""
    from nanoloom.cli.screen import err, plural, seconds, table

    rows = [[f"  {name}", seconds(value), ""] for name, value in watch.seconds.items()]
    if watch.kernels:
        rows[-1][2] = (
            f"{plural(watch.kernels, 'kernel')}, {watch.cached} from the cache"
        )
    rows += [[name, seconds(value), ""] for name, value in taken.items()]
    err().print(table("", ("stage", ">time", ""), rows))


def check_precision(precision: str) -> None:
    from typing import get_args

    from nanoloom.options import Precision as Known

    if precision not in get_args(Known):
        known = ", ".join(get_args(Known))
        raise typer.BadParameter(
            f"{precision} is none of {known}", param_hint="--precision"
        )


def refuse_dims(dims: Mapping[str, int]) -> None:
    if dims:
        reason = "the dimensions of a compiled library are numbers already"
        raise typer.BadParameter(reason, param_hint="--dim")
