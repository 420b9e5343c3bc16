"""Measurements of "Enabling Automatic Compiler-Driven Vectorization of Transformers".

Table I and Figure 7, reductions found by nanoloom and by MLIR in the same loops;
Figure 3, vectors across rows; Figure 8, the times of the paper's configurations beside
nanoloom's default and ONNX Runtime, one thread each, checked and then in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.inspect.peers import open_peer
from nanoloom.inspect.references import open_reference
from nanoloom.inspect.timing import interleaved
from nanoloom.options import CompileOptions, Strategy
from nanoloom.program import compile
from nanoloom.reproduce.oml_models import LAYERS, QUICK, Array, Layer, draw, model_of
from nanoloom.reproduce.oml_reductions import found_in, kinds
from nanoloom.reproduce.oml_results import X86, Result
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
ROOM = 1e-4  # of the largest number, that results may differ by
TURNS, QUICK_TURNS = 11, 3


@dataclass(frozen=True)
class Case:
    """A layer, its numbers, its model and what that gives."""

    layer: Layer
    numbers: Mapping[str, Array]
    model: onnx.ModelProto
    wanted: Array

    @property
    def feeds(self) -> dict[str, Array]:
        return {"x": self.numbers["x"]}

    def right(self, got: Array) -> str:
        """What is wrong with a result; "" if nothing is."""
        exact = self.wanted.astype(np.float64)
        error = abs(got - exact).max()
        right = error <= ROOM * abs(exact).max()
        return "" if right else f"wrong result: off by {error:.2g}"


def case_of(layer: Layer, folder: Path) -> Case:
    """The layer's numbers by ONNX's reference; the model is a file in folder, too."""
    numbers = draw(layer)
    model, path = model_of(layer, numbers), folder / f"{layer.name}.onnx"
    onnx.save(model, path)
    (wanted,) = open_reference("reference", path, 1)({"x": numbers["x"]})
    return Case(layer, numbers, model, wanted)


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
    notes |= {name: case.right(each()[0]) for name, each in runs.items()}
    right = {name: each for name, each in runs.items() if not notes[name]}
    say(f"{layer.name}: measuring")
    measured = interleaved(list(right.values()), turns)
    found = {n: each.median for n, each in zip(right, measured, strict=True)}
    for name, note in notes.items():
        value = found.get(name)
        yield Result(X86, layer.name, layer.size, name, "seconds", value, note)
