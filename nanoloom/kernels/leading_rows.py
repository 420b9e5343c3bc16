"""A kernel for some of the rows of its leading axis, and how far its arguments go on.

    for y in 0..56: v[y, ...] = f(x[4 y + ...], w)
      ->  for y in 0..7: v[y, ...] = f(x[4 y + ...], w)      of any seven rows

Rows that lie behind each other are made by as many calls, each a part further in what
it reads and writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from nanoloom.ir.access import coefficient
from nanoloom.ir.linalg_query import (
    VIEWS,
    Op,
    body,
    dims_of,
    element_bytes,
    extents,
    is_generic,
    is_pad,
    iterators,
    maps,
)
from nanoloom.ir.mlir import ir, sign

EXPAND, COLLAPSE = "tensor.expand_shape", "tensor.collapse_shape"
CUT, PUT = "tensor.extract_slice", "tensor.insert_slice"
FREE = ("tensor.empty", "arith.constant", "func.return")
PLACES = ("linalg.index", "tensor.extract")  # a body that computes with places


@dataclass(frozen=True)
class Moved:
    """How a tensor goes along with the rows: so many of a dimension's indices a row."""

    count: int
    dim: int = 0
    plain: bool = False  # the dimension is the axis itself

    def bytes(self, kind: ir.RankedTensorType) -> int:
        """From one row to the next."""
        return self.count * prod(kind.shape[self.dim + 1 :]) * element_bytes(kind)


WHOLE = Moved(0)


class NoRows(Exception):
    """A kernel has no leading axis that can be cut."""


@dataclass
class LeadingRows:
    """The leading axis of a kernel's module; `of` raises NoRows where it has none.

    extent: how many rows.  moved: how each tensor goes along with them.
    """

    module: ir.Module
    extent: int = 0
    moved: dict[ir.Value, Moved] = field(default_factory=dict[ir.Value, Moved])

    @classmethod
    def of(cls, module: ir.Module) -> LeadingRows:
        made = cls(module)
        ops = list(made.block.operations)
        for op in ops:
            made.read(op)
        if not made.extent:
            raise NoRows
        for op in reversed(ops):
            made.read_view(op)
        for op in ops:
            made.read_view(op)
        return made

    @property
    def block(self) -> ir.Block:
        return self.module.body.operations[0].operation.regions[0].blocks[0]

    @property
    def arguments(self) -> list[Moved]:
        return [self.moved.get(argument, WHOLE) for argument in self.block.arguments]

    @property
    def bytes(self) -> list[int]:
        """Of each argument, from one row to the next."""
        pairs = zip(self.block.arguments, self.arguments, strict=True)
        return [x.bytes(ir.RankedTensorType(value.type)) for value, x in pairs]

    def note(self, value: ir.Value, moved: Moved) -> None:
        if self.moved.setdefault(value, moved) != moved:
            raise NoRows

    def read(self, op: Op) -> None:
        """A generic's tensors; of other operations, that they are known."""
        name = op.operation.name
        if not is_generic(op):
            if name not in (*VIEWS, CUT, PUT, *FREE):
                raise NoRows
            return
        inner = {each.operation.name for each in body(op).operations}
        extent = next(iter(extents(op)), 0)
        same = self.extent in (0, extent) and iterators(op)[:1] == ["parallel"]
        if is_pad(op) or inner & {*PLACES} or not same:
            raise NoRows
        self.extent = extent
        values = [*op.operation.operands, *op.operation.results]
        ways = maps(op)
        ways += ways[len(ways) - len(op.operation.results) :]
        for value, way in zip(values, ways, strict=True):
            if isinstance(value.type, ir.RankedTensorType):
                self.note(value, moved_by(way))
        if any(not moved_by(way).plain for way in ways[-len(op.operation.results) :]):
            raise NoRows

    def read_view(self, op: Op) -> None:
        """What a view shows of another tensor, in whichever direction that is known."""
        name = op.operation.name
        if name in VIEWS:
            (source,), (result,) = op.operation.operands, op.operation.results
            split, joined = (result, source) if name == EXPAND else (source, result)
            if split in self.moved:
                self.note(joined, self.as_one(op, split))
        elif name in (CUT, PUT):
            part, whole = part_and_whole(op)
            if part in self.moved:
                self.note(whole, self.in_whole(op, part))

    def as_one(self, op: Op, split: ir.Value) -> Moved:
        """How a tensor moves that shows axes of another one as one."""
        moved = self.moved[split]
        if moved.count and not moved.plain:
            raise NoRows
        first = len(op.operation.attributes["reassociation"][0])  # type: ignore[index, arg-type] - MLIR's stubs know no kinds of attributes
        inner = prod(ir.RankedTensorType(split.type).shape[1:first])
        return Moved(inner) if moved.count else WHOLE

    def in_whole(self, op: Op, part: ir.Value) -> Moved:
        """How a tensor moves of which rows are a part."""
        count, sizes = self.moved[part].count, sizes_of(op)
        rows = ir.RankedTensorType(part.type).shape[0]
        dim = next((d for d, size in enumerate(sizes) if size != 1), 0)
        if not count or rows != sizes[dim] or rows == 1:
            raise NoRows
        return Moved(count, dim)

    def cut(self, parts: int) -> None:
        """Leave one of so many equal parts of the rows, in place."""
        less = self.extent - self.extent // parts
        ops = list(self.block.operations)
        slices = [op for op in ops if op.operation.name in (CUT, PUT)]
        wholes = set[ir.Value]()
        for op in slices:
            part, whole = part_and_whole(op)
            sizes = sizes_of(op)
            sizes[self.moved[whole].dim] -= self.moved[part].count * less
            op.operation.attributes["static_sizes"] = ir.DenseI64ArrayAttr.get(sizes)
            wholes.add(whole)
        for value, moved in self.moved.items():
            if moved.count and value not in wholes:
                kind = ir.RankedTensorType(value.type)
                shape = [kind.shape[0] - moved.count * less, *kind.shape[1:]]
                value.set_type(ir.RankedTensorType.get(shape, kind.element_type))
        for op in ops:
            if op.operation.name == EXPAND:
                shape = ir.RankedTensorType(op.operation.results[0].type).shape
                word = ir.DenseI64ArrayAttr.get(shape)
                op.operation.attributes["static_output_shape"] = word
        returned = [value.type for value in ops[-1].operation.operands]
        sign(self.module.body.operations[0], returned)
        self.module.operation.verify()


def moved_by(way: ir.AffineMap) -> Moved:
    """How an operand goes along with the first one of an operation's axes."""
    using = [place for place, expr in enumerate(way.results) if 0 in dims_of(expr)]
    if not using:
        return WHOLE
    expr = way.results[0]
    count = coefficient(expr, 0)
    if using != [0] or not count or count < 0:
        raise NoRows
    return Moved(count, plain=isinstance(expr, ir.AffineDimExpr))


def part_and_whole(op: Op) -> tuple[ir.Value, ir.Value]:
    """Of a slice: what is a part of what.  Raises NoRows where a run knows of which."""
    given, is_cut = list(op.operation.operands), op.operation.name == CUT
    if len(given) != (1 if is_cut else 2):
        raise NoRows
    return (op.operation.results[0], given[0]) if is_cut else (given[0], given[1])


def sizes_of(op: Op) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.operation.attributes["static_sizes"]))
