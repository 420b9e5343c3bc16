"""nanoloom bench: a model beside what else runs it, in one table from one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanoloom.cli import options as words
from nanoloom.cli.bench_table import (
    BenchTable,
    Entry,
    answer,
    draw,
    require_matplotlib,
    show,
)
from nanoloom.cli.failures import DONE, say
from nanoloom.cli.request import Request, with_options

if TYPE_CHECKING:
    from nanoloom.api.program import Program
    from nanoloom.cli.arrays import Array
    from nanoloom.cli.progress import Watch
    from nanoloom.inspect.peers import Contender

EXAMPLE = "Example: nanoloom bench model.onnx --against ort,openvino --dim batch=1"
DRAWN = (".png", ".svg", ".pdf")
KINDS = ("ort", "openvino", "torch")
Against = Annotated[
    str,
    typer.Option(
        "--against",
        metavar="LIST",
        help="ort, openvino, torch (runs MODEL.pt2 beside the model), comma between;"
        ' "" for none.',
    ),
]
Repeat = Annotated[
    int | None,
    typer.Option(
        "--repeat",
        min=1,
        max=100_000,
        metavar="N",
        help="Repetitions (default: what fits into ten seconds).",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE.png", help="Draw the table (matplotlib)."),
]


@with_options("emulate")
def bench(
    request: Request,
    against: Against = "ort,openvino",
    repeat: Repeat = None,
    json: words.Json = False,
    plot: Plot = None,
    debug: words.Debug = False,
) -> int:
    """Time a model beside its peers, in turns, with the machine's peak measured too."""
    del debug
    from nanoloom.cli.model_inputs import inputs_for, open_program
    from nanoloom.cli.progress import Watch

    kinds = peers_named(against)
    check_plot(plot)
    with Watch() as watch:
        program = open_program(request, watch)
        given = inputs_for(program, request)
        board = race(program, request.model, given.arrays, kinds, repeat, watch)
    if plot is not None:
        draw(board, plot)
    tell(board, given.random, request.seed, json=json)
    return DONE


def tell(board: BenchTable, random: Sequence[str], seed: int, *, json: bool) -> None:
    """The board, and which inputs nobody gave."""
    from nanoloom.cli.arrays import as_json
    from nanoloom.cli.model_inputs import random_note

    if json:
        print(as_json(answer(board)))
        return
    show(board)
    if random:
        say(random_note(random, seed))


def check_plot(path: Path | None) -> None:
    """Refuse now what could not be drawn after the measurement."""
    from nanoloom.cli import output_files

    if path is None:
        return
    if path.suffix not in DRAWN:
        reason = f"{path} ends in none of {', '.join(DRAWN)}"
        raise typer.BadParameter(reason, param_hint="--plot")
    output_files.check_replaceable(path, ".png")
    require_matplotlib()


def peers_named(text: str) -> list[str]:
    """The words after `--against`; raises BadParameter for one that is no peer."""
    found = list(
        dict.fromkeys(word.strip() for word in text.split(",") if word.strip())
    )
    for word in found:
        if word not in KINDS:
            reason = f"{word} is none of {', '.join(KINDS)}"
            raise typer.BadParameter(reason, param_hint="--against")
    return found


def race(
    program: Program,
    model: Path,
    arrays: Mapping[str, Array],
    kinds: Sequence[str],
    repeat: int | None,
    watch: Watch,
) -> BenchTable:
    """Compile, load the peers, measure."""
    from nanoloom.inspect.timing import interleaved

    board = BenchTable(model, program.threads, flops_of(program, arrays))
    ours = own(program, arrays)
    contenders = [ours]
    for kind in kinds:
        watch.say(f"loading {kind}", 0, 0)
        found = peer(kind, board, arrays)
        contenders += [found] if found else []
    before = peak(program)
    times = interleaved(
        [each.run for each in contenders],
        repeat,
        lambda done, total: watch.say("measuring", done, total),
    )
    # The clock may change meanwhile: what was reached at all is the peak.
    board.peak = max(before, peak(program))
    expected = ours.run()
    for each, seconds in zip(contenders, times, strict=True):
        far = None if each is ours else largest_difference(expected, each.run())
        board.entries.append(Entry(each.name, seconds, far))
    return board


def flops_of(program: Program, arrays: Mapping[str, Array]) -> int | None:
    """Of the model's contractions; None where shapes depend on values, or in loops."""
    from nanoloom.errors import DataDependent
    from nanoloom.inspect.flops import contraction_flops

    shapes = {name: array.shape for name, array in arrays.items()}
    try:
        return contraction_flops(program.source.bound(shapes, {})) or None
    except DataDependent:
        return None


def own(program: Program, arrays: Mapping[str, Array]) -> Contender:
    """nanoloom as a contender; raises what compiling raises."""
    from nanoloom import __version__
    from nanoloom.inspect.peers import Contender

    variant = program.variant(arrays)
    return Contender(f"nanoloom {__version__}", lambda: list(variant(arrays).values()))


def peer(kind: str, board: BenchTable, arrays: Mapping[str, Array]) -> Contender | None:
    """A peer ready to run; None, with the reason on the board, if it is not."""
    from nanoloom.errors import Error
    from nanoloom.inspect.peers import open_peer

    try:
        return open_peer(kind, board.model, arrays, board.threads)
    except Error as error:
        board.absent[kind] = str(error)
        return None


def peak(program: Program) -> float:
    """GFLOP/s that this machine reaches on f32 with the program's threads."""
    from nanoloom.target.peaks import measure

    measured = measure(program.options.target, program.threads)
    return measured.best("f32", program.threads) or 0.0


def largest_difference(ours: Sequence[Array], theirs: Sequence[Any]) -> float:
    """max |ours - theirs| over all outputs; infinity where shapes differ."""
    import numpy as np

    if len(ours) != len(theirs):
        return float("inf")
    found = 0.0
    for one, other in zip(ours, map(np.asarray, theirs), strict=True):
        if one.shape != other.shape:
            return float("inf")
        with np.errstate(invalid="ignore"):
            gap = np.abs(one.astype(np.float64) - other.astype(np.float64))
        same = (one == other) | ((one != one) & (other != other))  # NaN is not itself
        gap = np.nan_to_num(np.where(same, 0.0, gap), nan=np.inf)
        found = max(found, float(gap.max(initial=0.0)))
    return found
