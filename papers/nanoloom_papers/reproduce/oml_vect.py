"""Measurements of "Enabling Automatic Compiler-Driven Vectorization of Transformers".

Table I and Figure 7, reductions found by nanoloom and by MLIR in the same loops;
Figure 3, vectors across rows; Figure 8, the times of the paper's configurations beside
nanoloom's default, ONNX Runtime and OpenVINO, one thread each, checked and then in
turns, of layers and of whole models; Figure 9, what they execute on RISC-V, and cycles
of their inner loops; section VI-C, what they cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.errors import Error
from nanoloom.inspect.peers import open_peer
from nanoloom.inspect.timing import interleaved
from nanoloom.options import CompileOptions, Strategy
from nanoloom.target.by_name import by_name
from nanoloom.target.facts import Target
from nanoloom_papers.affine.strategies import strategy_named
from nanoloom_papers.reproduce.oml_case import Case, case_of, whole_case
from nanoloom_papers.reproduce.oml_costs import compilation, memory
from nanoloom_papers.reproduce.oml_cycles import inner_loops_of
from nanoloom_papers.reproduce.oml_models import LAYERS, QUICK, Array, Layer
from nanoloom_papers.reproduce.oml_reductions import found_in, kinds
from nanoloom_papers.reproduce.oml_results import BASE, OURS, WHOLE_MODELS, X86, Result
from nanoloom_papers.reproduce.oml_riscv import (
    LENGTHS,
    MOST_ROWS,
    QUICK_LENGTHS,
    emulated,
)
from nanoloom_papers.reproduce.oml_strides import strides
from nanoloom_papers.reproduce.oml_whole import QUICK_WHOLE, WHOLE

Say = Callable[[str], None]
Run = Callable[[], list[Array]]
CONFIGURATIONS: Mapping[str, Strategy | None] = {
    "plain": strategy_named("plain"),
    "oml": strategy_named("oml"),
    "onnx-mlir": strategy_named("onnx-mlir"),
    "oml-vect": strategy_named("affine"),  # which lays right operands along the sum
    "nanoloom": strategy_named("default"),
}
# Whose compilation and inner loops are compared; memory, without the two passes, too.
COMPARED: Mapping[str, Strategy | None] = {n: CONFIGURATIONS[n] for n in (BASE, OURS)}
MEASURED: Mapping[str, Strategy | None] = {"oml": CONFIGURATIONS["oml"], **COMPARED}
RISCV_512 = "rv64gcv-zvl512b"
PEERS = ("ort", "openvino")
TURNS, QUICK_TURNS = 11, 3


def run(target: Target, folder: Path, say: Say, *, quick: bool) -> Iterator[Result]:
    """Everything that is measured, layer by layer.  folder: for models meanwhile."""
    turns = QUICK_TURNS if quick else TURNS
    say("counting kinds of reductions")
    yield from kinds()
    for layer in QUICK if quick else LAYERS:
        yield from of_layer(layer, target, folder, say, turns, quick=quick)
    for whole in QUICK_WHOLE if quick else WHOLE:
        say(f"{whole.layer.name}: drawing the whole model")
        case = whole_case(whole, folder)
        yield from times(case, target, folder, say, QUICK_TURNS, WHOLE_MODELS)


def of_layer(
    layer: Layer, target: Target, folder: Path, say: Say, turns: int, *, quick: bool
) -> Iterator[Result]:
    """All figures of one layer."""
    case = case_of(layer, folder)
    say(f"{layer.name}: counting reductions")
    yield from found_in(layer, case.model, target)
    say(f"{layer.name}: vectors across rows")
    yield from strides(layer, target, turns)
    yield from times(case, target, folder, say, turns, X86)
    yield from memory(case, target, folder, MEASURED, say)
    say(f"{layer.name}: timing compilation")
    machines = {"x86-64": target, "riscv64": by_name(RISCV_512)}
    yield from compilation(case, machines, COMPARED)
    say(f"{layer.name}: simulating inner loops")
    yield from inner_loops_of(case, COMPARED)
    short = case_of(layer.shorter(MOST_ROWS), folder)
    lengths = QUICK_LENGTHS if quick else LENGTHS
    yield from emulated(short, CONFIGURATIONS, lengths, say)


def times(
    case: Case, target: Target, folder: Path, say: Say, turns: int, figure: str
) -> Iterator[Result]:
    """Figure 8: medians; a note in the place of one that is wrong or missing."""
    layer, notes = case.layer, dict.fromkeys((*CONFIGURATIONS, *PEERS), "")
    runs: dict[str, Run] = {}
    for name, strategy in CONFIGURATIONS.items():
        say(f"{layer.name}: compiling {name}")
        options = CompileOptions(target, strategy=strategy)
        cache = Cache.temporary()
        program = compile(case.model, threads=1, options=options, cache=cache)
        runs[name] = lambda program=program: list(program(case.feeds).values())
    path = folder / f"{layer.name}.onnx"
    for peer in PEERS:
        try:
            runs[peer] = open_peer(peer, path, case.feeds, 1).run
        except Error as error:
            notes[peer] = str(error)
    notes |= {name: case.wrong(each()[0]) for name, each in runs.items()}
    right = {name: each for name, each in runs.items() if not notes[name]}
    say(f"{layer.name}: measuring")
    measured = interleaved(list(right.values()), turns)
    found = {n: each.median for n, each in zip(right, measured, strict=True)}
    for name, note in notes.items():
        value = found.get(name)
        yield Result(figure, layer.name, layer.size, name, "seconds", value, note)
