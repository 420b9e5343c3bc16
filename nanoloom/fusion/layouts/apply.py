"""A network's tensors in the layouts that were chosen for them.

    y[p, f] += x[p, c] * w[f, c]
      ->  y[f / 16, p, f % 16] += x[c / 16, p, c % 16] * w[f, c]

An axis that goes over blocks becomes two.  Maps and types change, nothing is computed
otherwise; tensors that stay are read and written as the same bytes in another shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nanoloom.fusion.group import MOVABLE
from nanoloom.fusion.insert_in_place import COLLAPSE, INSERT, Insertion
from nanoloom.fusion.layouts.edges import Edges, is_free
from nanoloom.fusion.layouts.layout import LAST, Layout, Piece, Place
from nanoloom.fusion.layouts.links import Dim, axis, is_tensor, shape_of
from nanoloom.fusion.layouts.shapes import again, grouped, reassociation, reshaped
from nanoloom.fusion.slices import SLICE
from nanoloom.ir.linalg_query import (
    VIEWS,
    Op,
    inputs,
    is_copy,
    is_fill,
    is_generic,
    iterators,
    map_dims,
    maps,
)
from nanoloom.ir.make_generic import set_loops
from nanoloom.ir.mlir import ir


def lay_out(block: ir.Block, edges: Edges, chosen: Mapping[Dim, Layout]) -> None:
    """Give a function's tensors these layouts, in place."""
    ops = list(block.operations)
    laid = LaidOut(edges, chosen)
    for op in ops:
        for value in [*op.operation.operands, *op.operation.results]:
            if is_tensor(value) and value not in laid.lies:
                laid.lies[value] = laid.lie(value)
    for op in ops:
        laid.rewrite(op)
    for op in ops:
        forward(op)


def forward(op: Op) -> None:
    """A copy that has become one element for element is what it reads."""
    if is_generic(op) and is_copy(op):
        (source,), (result,) = inputs(op), op.operation.results
        reading, writing = maps(op)
        if source.type == result.type and reading == writing:
            result.replace_all_uses_with(source)
            op.operation.erase()


@dataclass(frozen=True)
class PlacedTensor:
    """How a tensor lies.

    before: its shape as it was.  layouts: of each dimension.  places: in which order
    they lie now.  is_moved: whether its readers take it so; else they take the same
    bytes in the shape that it had.
    """

    before: list[int]
    layouts: list[Layout]
    places: list[Place]
    is_moved: bool

    @property
    def shape(self) -> list[int]:
        return [self.layouts[d].size(self.before[d], piece) for d, piece in self.places]

    @property
    def is_changed(self) -> bool:
        return self.places != [(d, Piece.WHOLE) for d in range(len(self.before))]

    @property
    def groups(self) -> ir.ArrayAttr:
        """Which places are one dimension, of a tensor that is not moved."""
        numbered = list(enumerate(self.places))
        return reassociation(
            [
                [n for n, (d, _) in numbered if d == dim]
                for dim in range(len(self.before))
            ]
        )


@dataclass
class LaidOut:
    """The function while it is changed.  lies: of every tensor."""

    edges: Edges
    chosen: Mapping[Dim, Layout]
    lies: dict[ir.Value, PlacedTensor] = field(default_factory=dict)

    def layout(self, dim: Dim) -> Layout:
        return self.chosen.get(self.edges.links.find(dim), LAST)

    def lie(self, value: ir.Value) -> PlacedTensor:
        shape = shape_of(value)
        rank = len(shape)
        layouts = [self.layout((value, d)) for d in range(rank)]
        moved = rank > 0 and layouts[-1] != LAST
        moved = moved and self.edges.is_moved(value, rank - 1)
        if not moved:
            places = [place for d in range(rank) for place in layouts[d].split(d)]
            return PlacedTensor(shape, layouts, places, is_moved=False)
        places = []
        for d, piece in layouts[-1].places(rank, self.edges.front(value)):
            places += layouts[d].split(d) if d < rank - 1 else [(d, piece)]
        return PlacedTensor(shape, layouts, places, is_moved=True)

    def rewrite(self, op: Op) -> None:
        name = op.operation.name
        touched = [*op.operation.operands, *op.operation.results]
        lies = [self.lies[v] for v in touched if is_tensor(v)]
        if name in MOVABLE or not any(lie.is_changed for lie in lies):
            return
        if is_generic(op) and not is_fill(op):
            self.rewrite_generic(op)
        elif name in (*VIEWS, INSERT, SLICE):
            if not self.lies[op.operation.results[0]].is_moved:
                return  # it stays, and what it reads
            if name in (INSERT, SLICE):
                self.rewrite_slice(op)
            elif not is_free(op.operation.operands[0]):
                self.rewrite_view(op)

    # ---- operands and results

    def retyped(self, value: ir.Value) -> ir.RankedTensorType:
        element = ir.RankedTensorType(value.type).element_type
        return ir.RankedTensorType.get(self.lies[value].shape, element)

    def take(self, op: Op, number: int, like: ir.Value) -> None:
        """Let an operation read an operand in the order that it has now.

        like: the tensor whose order a new one gets, or the operand itself.
        """
        value, lie = op.operation.operands[number], self.lies[like]
        with ir.InsertionPoint(op), op.operation.location:
            if is_free(value):
                op.operation.operands[number] = again(value, self.retyped(like))
            elif lie.is_changed and not self.lies[value].is_moved:
                made = reshaped(value, self.retyped(value), lie.groups)
                op.operation.operands[number] = made

    def give(self, op: Op) -> None:
        """The types of what an operation makes; others go on reading what stays."""
        for result in op.operation.results:
            lie = self.lies[result]
            if not lie.is_changed:
                continue
            before = ir.RankedTensorType(result.type)
            result.set_type(self.retyped(result))
            if lie.is_moved:
                continue
            with ir.InsertionPoint.after(op), op.operation.location:
                made = reshaped(result, before, lie.groups)
            self.lies[made] = lie
            for use in list(result.uses):
                if use.owner.operation != made.owner:
                    use.owner.operands[use.operand_number] = made

    # ---- operations

    def rewrite_generic(self, op: Op) -> None:
        operands, results = list(op.operation.operands), list(op.operation.results)
        axes, count = self.axes(op, results[0]), len(inputs(op))
        like = [*operands[:count], *results]
        indexings = [
            self.map_of(value, way, axes)
            if is_tensor(value)
            else no_conversion(len(axes))
            for value, way in zip(like, maps(op), strict=True)
        ]
        for number, value in enumerate(like):
            if is_tensor(value):
                self.take(op, number, value)
        set_loops(op, indexings, [a for a, _ in axes])
        self.give(op)

    def axes(self, op: Op, result: ir.Value) -> list[Place]:
        """The loops: the result's in its order, then the others, blocks first."""
        dims = map_dims(maps(op)[len(inputs(op))])
        written = [(dims[d], piece) for d, piece in self.lies[result].places]
        pieces = [
            place
            for a in range(len(iterators(op)))
            for place in self.layout(axis(op, a)).split(a)
        ]
        order = (Piece.BLOCKS, Piece.WHOLE, Piece.INSIDE)
        left = [place for place in pieces if place not in written]
        left.sort(key=lambda place: order.index(place[1]))
        return [*((a, piece) for a, piece in written if a is not None), *left]

    def map_of(
        self, value: ir.Value, way: ir.AffineMap, axes: Sequence[Place]
    ) -> ir.AffineMap:
        """How the new loops go over a tensor in its new order."""
        number = {place: ir.AffineDimExpr.get(n) for n, place in enumerate(axes)}
        none = ir.AffineConstantExpr.get(0)  # for an axis in two: none but plain ones
        whole = [number.get((a, Piece.WHOLE), none) for a in range(way.n_dims)]
        replaced = ir.AffineMap.get(len(axes), 0, whole)
        made: list[ir.AffineExpr] = []
        for d, piece in self.lies[value].places:
            expr = way.results[d]
            plain = isinstance(expr, ir.AffineDimExpr)
            made.append(
                number[expr.position, piece] if plain else expr.compose(replaced)
            )
        return ir.AffineMap.get(len(axes), 0, made)

    def rewrite_view(self, op: Op) -> None:
        (source,), (result,) = op.operation.operands, op.operation.results
        narrow, wide = self.lies[source].shape, self.lies[result].shape
        if op.operation.name == COLLAPSE:
            narrow, wide = wide, narrow
        else:
            op.operation.attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(
                wide
            )
        op.operation.attributes["reassociation"] = reassociation(grouped(narrow, wide))
        self.give(op)

    def rewrite_slice(self, op: Op) -> None:
        operands, (result,) = list(op.operation.operands), op.operation.results
        inserts = op.operation.name == INSERT
        whole = self.lies[result if inserts else operands[0]]
        part = Insertion.of(op)
        words: dict[str, list[int]] = {"offsets": [], "sizes": []}
        for d, piece in whole.places:
            words["sizes"].append(whole.layouts[d].size(part.sizes[d], piece))
            begin = part.offsets[d] if piece is not Piece.INSIDE else 0
            step = whole.layouts[d].block if piece is Piece.BLOCKS else 1
            words["offsets"].append(begin // step)
        words["strides"] = [1] * len(whole.places)
        for word, numbers in words.items():
            name = f"static_{word}"
            op.operation.attributes[name] = ir.DenseI64ArrayAttr.get(numbers)
        self.take(op, 0, operands[0])
        if inserts:
            self.take(op, 1, result)
        self.give(op)


def no_conversion(count: int) -> ir.AffineMap:
    """Of an operand that is a number."""
    return ir.AffineMap.get(count, 0, [])
