"""CumSum and CumProd: loops along the axis whose totals stay in registers.

    for row in front of the axis:  for columns behind it:   a vector of them, or one
        for i along the axis:  total = step(total, x[i]);  out[i] = total

Each element comes from those before it in their order, whatever the target's vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from nanoloom.ir.mlir import arith, ir
from nanoloom.linalg.builder.builder import Builder, computed_as
from nanoloom.linalg.builder.lanes import each, lanes_of, load, stored
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.numbered_loops import State, repeat, when
from nanoloom.linalg.builder.scalar import Number, Scalar, constant, from_index
from nanoloom.linalg.builder.slices import element, index, with_element
from nanoloom.linalg.builder.sort import each_row
from nanoloom.linalg.builder.tensor import Tensor

Step = Callable[[Scalar, Scalar], Scalar]


@dataclass(frozen=True)
class Scan:
    """out[i] = step(... step(start, x[0]) ..., x[i]) along the middle axis of x.

    exclusive: x[i] itself is left out.  reverse: from the last place to the first.
    The total stays f32 for f16 and bf16.
    """

    x: Tensor
    step: Step
    start: Number
    exclusive: bool = False
    reverse: bool = False

    def of_columns(self, b: Builder, row: ir.Value, out: Tensor) -> Tensor:
        """Of all columns of a row [n, columns], vectors of them where there are any."""
        columns, lanes = self.x.shape[-1], lanes_of(self.x.dtype)
        if columns < lanes or computed_as(self.x.dtype) != self.x.dtype:

            def one(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
                return [self.of_column(b, row, i, now[0])], []

            return repeat(b, index(columns), ([out], []), one)[0][0]
        last, end = index(columns), from_index(index(columns))

        def block(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
            whole = from_index(i) + lanes <= end
            for within, condition in ((True, whole), (False, ~whole)):
                step = partial(self.of_lanes, b, row, i, within)
                now, _ = when(b, condition, (now, []), step)
            return now, []

        return repeat(b, last, ([out], []), block, by=lanes)[0][0]

    def of_column(
        self, b: Builder, row: ir.Value, column: ir.Value, out: Tensor
    ) -> Tensor:
        def read(place: ir.Value) -> Scalar:
            return element(b, self.x, [row, place, column])

        def write(new: Scalar, out: Tensor, place: ir.Value) -> Tensor:
            return with_element(b, out, [row, place, column], new)

        start = constant(self.start, computed_as(self.x.dtype))
        return self.along(b, start, read, write, out)

    def of_lanes(
        self,
        b: Builder,
        row: ir.Value,
        begin: ir.Value,
        within: bool,
        now: list[Tensor],
        _: list[Scalar],
    ) -> State:
        """Of a vector of columns; within: none of its lanes is behind the last one."""

        def read(place: ir.Value) -> Scalar:
            return load(b, self.x, [row, place, begin], within=within)

        def write(new: Scalar, out: Tensor, place: ir.Value) -> Tensor:
            return stored(b, new, out, [row, place, begin], within=within)

        start = each(self.start, self.x.dtype)
        return [self.along(b, start, read, write, now[0])], []

    def along(
        self,
        b: Builder,
        start: Scalar,
        read: Callable[[ir.Value], Scalar],
        write: Callable[[Scalar, Tensor, ir.Value], Tensor],
        out: Tensor,
    ) -> Tensor:
        extent = self.x.shape[1]

        def trip(i: ir.Value, now: list[Tensor], totals: list[Scalar]) -> State:
            place = arith.subi(index(extent - 1), i) if self.reverse else i
            before = totals[0]
            after = self.step(before, read(place))
            made = before if self.exclusive else after
            return [write(made, now[0], place)], [after]

        return repeat(b, index(extent), ([out], [start]), trip)[0][0]


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
    """A scan along an axis, in x's own shape."""
    if x.size == 0:
        return x
    rows, columns = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    flat = b.reshape(x, (rows, x.shape[axis], columns))
    source = b.tensor(b.value(flat), x.dtype)
    scan = Scan(source, step, start, exclusive, reverse)
    out = b.tensor(b.empty(source.shape, x.dtype), x.dtype)

    def of_row(row: ir.Value, now: list[Tensor]) -> list[Tensor]:
        return [scan.of_columns(b, row, now[0])]

    return b.reshape(each_row(b, rows, [out], of_row)[0], x.shape)


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
