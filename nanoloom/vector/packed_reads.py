"""Weights in panels that a stage with vectors of its own reads.

    y[i, j] += x[i, k] * w[k, j]   ->   y[i, j] += x[i, k] * w'[k / 4, 4 j + k % 4]

Nanokernels read panels themselves.  For any other stage a slice of the packed weight
takes the place of the weight's, and the stage's map says where in it a number lies: so
many steps of a column together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.ir.access import add, constant_of, divide, index, multiply
from nanoloom.ir.linalg_query import inputs, maps
from nanoloom.ir.mlir import ir, made_by, named
from nanoloom.linalg.builder.tensor_slices import Number, extents_of, sliced, static
from nanoloom.schedule.packing import Pack
from nanoloom.vector.index_multiples import is_multiple
from nanoloom.vector.nanokernel.tile.extents import dynamic_size, most_number
from nanoloom.vector.nanokernel.tile.tile import is_packed, origin, packed_argument


def read_packed(module: ir.Module, packings: Sequence[Pack]) -> None:
    """Let stages read their packed weights, where groups of steps lie together.

    Error where a part of one begins inside of a group, or reaches into another panel.
    """
    known = {packing.argument: packing for packing in packings}
    for op in named(module, "linalg.generic"):
        for number, value in enumerate(inputs(op)):
            if not isinstance(value.type, ir.RankedTensorType):
                continue
            if not is_packed(whole(value)):
                continue
            logical, offsets = origin(value)
            argument = packed_argument(logical)
            packing = known[ir.BlockArgument(argument).arg_number]
            if packing.group > 1 and not packing.bits:
                with ir.InsertionPoint(op), op.operation.location:
                    made = PackedPart(packing, value, offsets).of(argument)
                read_instead(op, number, packing, made)


def whole(value: ir.Value) -> ir.Value:
    """The tensor that a chain of slices shows a part of; they may drop dimensions."""
    while (part := made_by(value, "tensor.extract_slice")) is not None:
        value = part.operands[0]
    return value


def read_instead(op: ir.OpView, number: int, packing: Pack, panels: ir.Value) -> None:
    """Let an operand of a stage be a part of panels."""
    every, group = maps(op), packing.group
    exprs = list(every[number].results)
    *outer, last = packing.reduced
    places = [exprs[d] for d in (*packing.shared, *outer)]
    within = exprs[last] % group
    places.append(ir.AffineExpr.get_floor_div(exprs[last], group))
    places.append(exprs[packing.column] * group + within)
    every[number] = ir.AffineMap.get(every[number].n_dims, 0, places)
    op.operation.operands[number] = panels
    op.operation.attributes["indexing_maps"] = ir.ArrayAttr.get(
        [ir.AffineMapAttr.get(each) for each in every]
    )


@dataclass(frozen=True)
class PackedPart:
    """What a stage reads of a weight: a slice of the logical one.

    offsets: where it begins in each dimension.
    """

    packing: Pack
    value: ir.Value
    offsets: Sequence[Number]

    def of(self, argument: ir.Value) -> ir.Value:
        """The same of the packed weight: [shared..., reduced..., columns * group]."""
        packing, group = self.packing, self.packing.group
        *outer, last = packing.reduced
        lead = list(packing.shared)
        panel, column = self.panel(ir.RankedTensorType(argument.type).shape[len(lead)])
        self.require(self.offsets[last], group, "begins inside of a group of steps")
        row = over(self.offsets[last], group)
        rows = over(plus(self.size(last), group - 1), group)
        columns = times(self.size(packing.column), group)
        begins = [self.offsets[d] for d in lead], [self.offsets[d] for d in outer]
        sizes = [self.size(d) for d in lead], [self.size(d) for d in outer]
        kept = [*sizes[0], *sizes[1], rows, columns]
        return sliced(
            argument,
            [*begins[0], panel, *begins[1], row, times(column, group)],
            [*sizes[0], 1, *sizes[1], rows, columns],
            shape=static(kept),
        )

    def panel(self, count: int) -> tuple[Number, Number]:
        """Which of so many panels it is in, and the first column there."""
        begin, columns = self.offsets[self.packing.column], self.packing.columns
        if count == 1:
            return 0, begin
        self.require(begin, columns, "begins inside of a panel")
        most = self.most(self.packing.column)
        if most is None or most > columns:
            read = most or "any number of"
            raise Error(f"a stage reads {read} columns of panels that have {columns}")
        return over(begin, columns), 0

    def most(self, place: int) -> int | None:
        """How far it goes in a dimension at most, None if that is not known."""
        size = self.size(place)
        if isinstance(size, int):
            return size
        part = made_by(self.value, "tensor.extract_slice")
        return None if part is None else most_number(dynamic_size(part, place))

    def require(self, begin: Number, group: int, otherwise: str) -> None:
        if not is_multiple(begin, group):
            number = self.packing.argument
            raise Error(
                f"what a stage reads of argument {number} {otherwise} of {group}",
                hint="tiles have sizes that whole groups and panels fill",
            )

    def size(self, place: int) -> Number:
        return extents_of(self.value)[place]


def over(number: Number, by: int) -> Number:
    """number / by, rounded down."""
    if isinstance(number, int):
        return number // by
    return known(divide(number, index(by)))


def times(number: Number, by: int) -> Number:
    if isinstance(number, int):
        return number * by
    return known(multiply(number, index(by)))


def plus(number: Number, more: int) -> Number:
    if isinstance(number, int):
        return number + more
    return known(add(number, index(more)))


def known(value: ir.Value) -> Number:
    """A number where it is one."""
    number = constant_of(value)
    return value if number is None else number
