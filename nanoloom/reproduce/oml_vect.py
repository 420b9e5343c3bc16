"""Measurements of "Enabling Automatic Compiler-Driven Vectorization of Transformers".

Table I and Figure 7, reductions found by nanoloom and by MLIR in the same loops;
Figure 3, vectors across rows; Figure 8, the times of the paper's configurations beside
nanoloom's default and ONNX Runtime, one thread each, checked and then in turns; Figure
9, what they execute on RISC-V.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.inspect.peers import open_peer
from nanoloom.inspect.timing import interleaved
from nanoloom.options import CompileOptions, Strategy
from nanoloom.program import compile
from nanoloom.reproduce.oml_case import Case, case_of
from nanoloom.reproduce.oml_models import LAYERS, QUICK, Array
from nanoloom.reproduce.oml_reductions import found_in, kinds
from nanoloom.reproduce.oml_results import X86, Result
from nanoloom.reproduce.oml_riscv import LENGTHS, MOST_ROWS, QUICK_LENGTHS, emulated
from nanoloom.reproduce.oml_strides import strides
from nanoloom.target.facts import Target

Say = Callable[[str], None]
Run = Callable[[], list[Array]]
CONFIGURATIONS: Mapping[str, Strategy] = {
    "plain": "plain",
    "oml": "oml",
    "onnx-mlir": "onnx-mlir",
    "oml-vect": "affine",  # which lays right operands along the sum
    "nanoloom": "default",
}
PEER = "ort"
TURNS, QUICK_TURNS = 11, 3


def run(target: Target, folder: Path, say: Say, *, quick: bool) -> Iterator[Result]:
    """Everything that is measured, layer by layer.  folder: for models meanwhile."""
    turns = QUICK_TURNS if quick else TURNS
    say("counting kinds of reductions")
    yield from kinds()
    for layer in QUICK if quick else LAYERS:
        case = case_of(layer, folder)
        say(f"{layer.name}: counting reductions")
        yield from found_in(layer, case.model, target)
        say(f"{layer.name}: vectors across rows")
        yield from strides(layer, target, turns)
        yield from times(case, target, folder, say, turns)
        short = case_of(layer.shorter(MOST_ROWS), folder)
        lengths = QUICK_LENGTHS if quick else LENGTHS
        yield from emulated(short, CONFIGURATIONS, lengths, say)


def times(
    case: Case, target: Target, folder: Path, say: Say, turns: int
) -> Iterator[Result]:
    """Figure 8: medians; a note in the place of one that is wrong or missing."""
    layer, notes = case.layer, dict.fromkeys((*CONFIGURATIONS, PEER), "")
    runs: dict[str, Run] = {}
    for name, strategy in CONFIGURATIONS.items():
        say(f"{layer.name}: compiling {name}")
        options = CompileOptions(target, strategy=strategy)
        cache = Cache.temporary()
        program = compile(case.model, threads=1, options=options, cache=cache)
        runs[name] = lambda program=program: list(program(case.feeds).values())
    try:
        path = folder / f"{layer.name}.onnx"
        runs[PEER] = open_peer(PEER, path, case.feeds, 1).run
    except Error as error:
        notes[PEER] = str(error)
    notes |= {name: case.wrong(each()[0]) for name, each in runs.items()}
    right = {name: each for name, each in runs.items() if not notes[name]}
    say(f"{layer.name}: measuring")
    measured = interleaved(list(right.values()), turns)
    found = {n: each.median for n, each in zip(right, measured, strict=True)}
    for name, note in notes.items():
        value = found.get(name)
        yield Result(X86, layer.name, layer.size, name, "seconds", value, note)
