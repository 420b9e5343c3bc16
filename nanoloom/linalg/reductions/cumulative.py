"""CumSum and CumProd: a loop along the axis carries the total and the result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nanoloom.ir.mlir import arith, ir
from nanoloom.linalg.builder.builder import PARALLEL, Builder, Map, computed_as
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Number, Scalar
from nanoloom.linalg.builder.slices import index, read_at, write_at
from nanoloom.linalg.builder.tensor import Tensor

Step = Callable[[Scalar, Scalar], Scalar]


def accumulate(
    b: Builder,
    x: Tensor,
    axis: int,
    step: Step,
    start: Number,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> Tensor:
    """out[i] = step(... step(start, x[0]) ..., x[i]) along an axis.

    exclusive: x[i] itself is left out.  reverse: from the last place to the first.
    The total stays f32 for f16 and bf16.
    """
    if x.size == 0:
        return x
    extent = x.shape[axis]
    source = b.tensor(b.value(x), x.dtype)
    rest = x.shape[:axis] + x.shape[axis + 1 :]
    total = b.full(rest, start, computed_as(x.dtype))
    out = b.tensor(b.empty(x.shape, x.dtype), x.dtype)

    def trip(i: ir.Value, carried: list[Tensor]) -> list[Tensor]:
        made, before = carried
        place = arith.subi(index(extent - 1), i) if reverse else i
        if exclusive:
            made = write_at(b, b.cast(before, x.dtype), made, axis, place)
        after = advance(b, read_at(b, source, axis, place), before, step)
        if not exclusive:
            made = write_at(b, b.cast(after, x.dtype), made, axis, place)
        return [made, after]

    return repeat(b, extent, [out, total], trip)[0]


def advance(b: Builder, element: Tensor, total: Tensor, step: Step) -> Tensor:
    """The next total, in the total's own place."""
    identity = Map.get_identity(element.rank)
    return b.generic(
        [(element, identity)],
        [(total, identity)],
        [PARALLEL] * element.rank,
        lambda s, before: step(before, s),
    )[0]


def scanning(step: Step, start: Number) -> Callable[[Builder, Node], Tensor]:
    def lower(b: Builder, node: Node) -> Tensor:
        x, axis = node.input(0), node.known(1)
        assert axis is not None
        return accumulate(
            b,
            x,
            int(np.reshape(axis, -1)[0]) % x.rank,
            step,
            start,
            exclusive=bool(node.int("exclusive")),
            reverse=bool(node.int("reverse")),
        )

    return lower


OPERATORS = {
    "CumProd": scanning(lambda total, x: total * x, 1),
    "CumSum": scanning(lambda total, x: total + x, 0),
}
