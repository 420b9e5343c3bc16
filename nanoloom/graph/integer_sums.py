"""Sums of two 8-bit numbers between quantizations are two products and a rounding.

    Quantize(f(Dequantize(a) + Dequantize(b)))  ->  nanoloom.integer.Sum(a, b)

    round(clip(a * by_a + (b * by_b + start), least, most))        in f32

f: nothing, Relu or Clip.  ONNX divides, and rounds five times.  There are 65,536 pairs
of numbers: its reference gives the result of each, and the formula is taken only where
it has all of them, with and without fused multiply and add.  Where one of the rounded
constants puts a pair on the wrong side of a tie, its neighbours are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.lookup_tables import BITS, computed, steps_behind
from nanoloom.graph.quantization import (
    BYTES,
    DOMAIN,
    Quantized,
    quantization,
    quantizes_alike,
)
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin

NAME = "Sum"
BETWEEN = {"Relu", "Clip"}
RANGE = 2.0**-16, 2.0**8  # of factors: float64 holds the formula's sums as they are
FARTHEST = 2.0**15  # what `start` is at most
GRID = 2.0**18  # and of what it is a whole part
NEAR = 2.0**-9  # of a tie: what f32 may put on its other side
STEPS = range(-4, 5)  # of units in the last place


@dataclass(frozen=True)
class Formula:
    """round(clip(a * by_a + (b * by_b + start), least, most)) in f32."""

    by_a: np.float32
    by_b: np.float32
    start: np.float32
    least: int
    most: int

    def of(self, a: np.ndarray, b: np.ndarray, fused: Sequence[bool]) -> np.ndarray:
        """Results for whole numbers in float64, which holds products and their sums.

        fused: whether the product of a, and that of b, is not rounded by itself.
        """
        inner = plus(
            b * np.float64(self.by_b), np.asarray(self.start, np.float64), fused[1]
        )
        total = plus(a * np.float64(self.by_a), inner, fused[0])
        return np.rint(np.clip(total, self.least, self.most))


def plus(product: np.ndarray, more: np.ndarray, fused: bool) -> np.ndarray:
    """A product and a number, rounded to f32 once or twice."""
    whole = product if fused else product.astype(np.float32).astype(np.float64)
    return (whole + more).astype(np.float32).astype(np.float64)


@dataclass(frozen=True)
class Pairs:
    """All pairs of two 8-bit numbers, in float64, and the result that each must have.

    a, b: of what; wanted: in what.
    """

    a: Quantized
    b: Quantized
    wanted: Quantized
    results: np.ndarray

    def numbers(self) -> Sequence[np.ndarray]:
        kinds = [x.value.dtype for x in (self.a, self.b)]
        every = [BITS.view(k.numpy()).astype(np.float64) for k in kinds if k]
        return np.meshgrid(*every, indexing="ij")

    def formula(self) -> Formula | None:
        """One that gives all results, None if none is found."""
        by = [float(x.scale) / float(self.wanted.scale) for x in (self.a, self.b)]
        zeros = [0 if x.zero is None else int(x.zero) for x in (self.a, self.b)]
        last = 0 if self.wanted.zero is None else int(self.wanted.zero)
        start = last - sum(f * z for f, z in zip(by, zeros, strict=True))
        if not all(RANGE[0] < f < RANGE[1] for f in by) or abs(start) > FARTHEST:
            return None
        a, b = self.numbers()
        exact = a * by[0] + b * by[1] + start
        near = abs(abs(exact - np.floor(exact)) - 0.5) < NEAR
        limits = int(self.results.min()), int(self.results.max())
        for constants in adjacent_quantizations(by[0], by[1], start):
            found = Formula(*constants, *limits)
            if produces(found, a[near], b[near], self.results[near]):
                return found if produces(found, a, b, self.results) else None
        return None


def adjacent_quantizations(
    by_a: float, by_b: float, start: float
) -> Iterator[tuple[np.float32, np.float32, np.float32]]:
    """The constants in f32, and others beside them: the nearest first."""
    steps = sorted(product(STEPS, repeat=3), key=lambda s: sum(abs(x) for x in s))
    factors = np.float32(by_a), np.float32(by_b)
    for *ulps, shift in steps:
        moved = (f + np.spacing(f) * n for f, n in zip(factors, ulps, strict=True))
        first, second = (np.float32(f) for f in moved)
        yield first, second, np.float32((np.rint(start * GRID) + shift) / GRID)


def produces(
    formula: Formula, a: np.ndarray, b: np.ndarray, results: np.ndarray
) -> bool:
    ways = (formula.of(a, b, fused) for fused in product((True, False), repeat=2))
    return all(bool((way == results).all()) for way in ways)


def add_in_integers(graph: ir.Graph, opsets: Mapping[str, int]) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = Sums(graph, dict(opsets))
    for node in graph:
        if node.op_type == "QuantizeLinear" and quantizes_alike(node):
            rewriting.visit(node)


def is_sum(node: ir.Node) -> bool:
    """Whether a node adds 8-bit numbers in one step: it is elementwise."""
    return node.domain == DOMAIN and node.op_type == NAME


@dataclass
class Sums(GraphEditor):
    """The graph being rewritten."""

    opsets: dict[str, int]

    def visit(self, node: ir.Node) -> None:
        """Put the formula in the place of a Quantize behind the sum of two numbers."""
        out = node.outputs[0]
        if out.dtype not in BYTES or not is_static(out):
            return
        steps = steps_behind(node, shape_of(out))
        pairs = self.pairs(steps)
        formula = None if pairs is None else pairs.formula()
        if pairs is None or formula is None:
            return
        words = ("by_a", "by_b", "start")
        numbers = [ir.AttrFloat32(w, float(getattr(formula, w))) for w in words]
        limits = [ir.AttrInt64(w, getattr(formula, w)) for w in ("least", "most")]
        made = self.add(
            node,
            NAME,
            [pairs.a.value, pairs.b.value],
            [*numbers, *limits],
            shape_of(out),
            out,
            node.name or node.op_type,
            DOMAIN,
        )
        self.replace(node, made)

    def pairs(self, steps: Sequence[ir.Node]) -> Pairs | None:
        """What is added, if it is that: two numbers that are dequantized."""
        leaves = [s for s in steps if s.op_type == "DequantizeLinear"]
        others = [s for s in steps if s not in leaves]
        if len(leaves) != 2 or [s.op_type for s in others[:1]] != ["Add"]:
            return None
        if not all(is_tensor_op(s, BETWEEN) for s in others[1:-1]):
            return None
        found = [stored(leaf.inputs[0], leaf) for leaf in leaves]
        wanted = stored(others[-1].outputs[0], others[-1])
        results = self.results(steps, [leaf.inputs[0] for leaf in leaves])
        if wanted is None or results is None or None in found:
            return None
        a, b = (x for x in found if x is not None)
        return Pairs(a, b, wanted, results)

    def results(
        self, steps: Sequence[ir.Node], given: Sequence[ir.Value | None]
    ) -> np.ndarray | None:
        """What the last step gives for all pairs, None if the reference fails."""
        arrays = dict[ir.Value | None, np.ndarray]()
        for value, every in zip(
            given, np.meshgrid(BITS, BITS, indexing="ij"), strict=True
        ):
            if value is None or value.dtype is None:
                return None
            arrays[value] = every.view(value.dtype.numpy())
        if len(arrays) != 2:
            return None
        return computed(steps, self.opsets, arrays, (BITS.size, BITS.size))


def stored(value: ir.Value | None, node: ir.Node) -> Quantized | None:
    """Numbers of 8 bits with one positive scale, by the node that (de)quantizes."""
    if value is None or value.dtype not in BYTES:
        return None
    found = quantization(Origin.of(node), value)
    return found if found is not None and found.scale > 0 else None
