"""What operators that only move numbers read, axis by axis.

    Transpose(x), Slice(x), Gather(x, c)   y[i, j, ...] = x[f(...), g(...), ...]

Each index of the source goes by some indices of the value.  Reshape and Concat, which
have no such form, are each reader's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import inverse, transpose_order
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.quantization import known_array
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin, numbers


@dataclass(frozen=True, eq=False)
class SourceAxis:
    """The indices of a source's axis, an array over these axes of the value."""

    of: tuple[int, ...]
    indices: np.ndarray

    def is_all(self, size: int) -> bool:
        return np.array_equal(self.indices, np.arange(size))


Axes = Sequence[SourceAxis]


def source_axes(node: ir.Node, value: ir.Value) -> Axes | None:
    """How a value, of a node, has the numbers of the node's first input; or None."""
    source = node.inputs[0] if node.inputs else None
    if source is None or not is_tensor_op(node, MOVES.keys()):
        return None
    if not all(x is None or is_static(x) for x in (*node.inputs, value)):
        return None
    return MOVES[node.op_type](node, value, shape_of(source))


def moved(array: np.ndarray, axes: Axes, rank: int) -> np.ndarray:
    """An array of the source's axes as the value, of this rank, has it."""
    found: list[np.ndarray] = []
    for axis in axes:
        shape = [1] * rank
        for d, size in zip(axis.of, axis.indices.shape, strict=True):
            shape[d] = size
        found.append(axis.indices.reshape(shape))
    return array[tuple(found)]


def whole(size: int, axis: int) -> SourceAxis:
    return SourceAxis((axis,), np.arange(size))


def transpose(node: ir.Node, value: ir.Value, shape: Sequence[int]) -> Axes:
    order = transpose_order(value)
    assert order is not None, "the node is a Transpose"
    return [whole(*x) for x in zip(shape, inverse(order), strict=True)]


def given_axes(node: ir.Node, rank: int) -> list[int] | None:
    """Axes of Squeeze and Unsqueeze, of an attribute or an input; None: not known."""
    given = known_array(node.inputs[1]) if len(node.inputs) > 1 else None
    found = numbers(node, "axes") if given is None else given.reshape(-1)
    known = given is not None or "axes" in node.attributes
    return [int(a) % rank for a in found] if known else None


def squeeze(node: ir.Node, value: ir.Value, shape: Sequence[int]) -> Axes:
    axes = given_axes(node, len(shape))
    if axes is None:
        axes = [d for d, size in enumerate(shape) if size == 1]
    left = iter(range(len(shape)))
    return [
        SourceAxis((), np.array(0)) if d in axes else whole(size, next(left))
        for d, size in enumerate(shape)
    ]


def unsqueeze(node: ir.Node, value: ir.Value, shape: Sequence[int]) -> Axes | None:
    rank = len(shape_of(value))
    axes = given_axes(node, rank)
    if axes is None:
        return None
    kept = [d for d in range(rank) if d not in axes]
    return [whole(*x) for x in zip(shape, kept, strict=True)]


def gather(node: ir.Node, value: ir.Value, shape: Sequence[int]) -> Axes | None:
    indices, axis = known_array(node.inputs[1]), Origin.of(node).int("axis", 0)
    if indices is None:
        return None
    axis, wide = axis % len(shape), indices.ndim
    chosen = SourceAxis(tuple(range(axis, axis + wide)), indices % shape[axis])
    return [
        chosen if d == axis else whole(size, d if d < axis else d + wide - 1)
        for d, size in enumerate(shape)
    ]


def sliced(node: ir.Node, value: ir.Value, shape: Sequence[int]) -> Axes | None:
    given = [known_array(x) for x in node.inputs[1:]]
    wanted = [x is not None for x in node.inputs[1:]]
    if len(given) < 2 or [x is not None for x in given] != wanted:
        return None
    cuts = [None if x is None else [int(n) for n in x] for x in (*given, None, None)]
    starts, ends = cuts[0] or [], cuts[1] or []
    axes, steps = cuts[2] or range(len(starts)), cuts[3] or [1] * len(starts)
    found = [whole(size, d) for d, size in enumerate(shape)]
    for axis, *cut in zip(axes, starts, ends, steps, strict=True):
        d = axis % len(shape)
        found[d] = SourceAxis((d,), found[d].indices[slice(*cut)])
    return found


def split(node: ir.Node, value: ir.Value, shape: Sequence[int]) -> Axes:
    axis = Origin.of(node).int("axis", 0) % len(shape)
    before = node.outputs[: node.outputs.index(value)]
    start = sum(shape_of(x)[axis] for x in before)
    found = [whole(size, d) for d, size in enumerate(shape)]
    part = np.arange(start, start + shape_of(value)[axis])
    found[axis] = SourceAxis((axis,), part)
    return found


Move = Callable[[ir.Node, ir.Value, Sequence[int]], Axes | None]
MOVES: dict[str, Move] = {
    "Gather": gather,
    "Identity": lambda node, value, shape: [whole(n, d) for d, n in enumerate(shape)],
    "Slice": sliced,
    "Split": split,
    "Squeeze": squeeze,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
