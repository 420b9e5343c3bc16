"""Elementwise operations behind a product that is read in another shape.

    f(expand_shape(product), y)   ->  expand_shape(f(product, collapse_shape(y)))
    f(collapse_shape(product), y) ->  collapse_shape(f(product, expand_shape(y)))

They have the product's own loops then and are a part of its kernel.  The shape sinks
behind all of them, or behind as many as leave the product with one result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from nanoloom.fusion.group import Group, users, waits_for
from nanoloom.ir.linalg_query import (
    Kind,
    Op,
    extents,
    inputs,
    is_contraction,
    is_generic,
    map_dims,
    maps,
    outputs,
)
from nanoloom.ir.loop_nest import alone, indices, names_of
from nanoloom.ir.make_generic import remade
from nanoloom.ir.mlir import ir, made_by, named, tensor
from nanoloom.ir.statement_names import NAME

EXPAND, COLLAPSE = "tensor.expand_shape", "tensor.collapse_shape"
Groups = tuple[tuple[int, ...], ...]


def follow_products(module: ir.Module) -> None:
    """Let what follows a product at the same places have the product's shape."""
    for view in [*named(module, EXPAND), *named(module, COLLAPSE)]:
        owner = made_by(view.operation.operands[0])
        if owner is None or not ends_product(owner.opview):
            continue
        if len(users(owner.results[0])) == 1:
            sink(owner.opview, view)


def ends_product(op: Op) -> bool:
    """Whether an operation is a product, or follows one at the same places."""
    waiting, seen = [op], set[ir.Operation]()
    while waiting:
        each = waiting.pop()
        if not is_generic(each) or each.operation in seen:
            continue
        if is_contraction(each):
            return True
        seen.add(each.operation)
        same = ir.AffineMap.get_identity(maps(each)[-1].n_dims)
        if alone(each).follows(indices(same, names_of(each))):
            read = zip(inputs(each), maps(each), strict=False)
            owners = [value.owner for value, m in read if m == same]
            waiting += [o.opview for o in owners if not isinstance(o, ir.Block)]
    return False


def sink(product: Op, view: Op) -> None:
    """Rewrite what is behind a product and the shape that it is read in.

    product: or what follows it.
    """
    shape = shape_of(view)
    chain: list[Op] = []
    members = [product, view]
    while (found := next_of(members, shape)) is not None:
        chain.append(found)
        members.append(found)
    while chain and not is_closed([view, *chain]):
        chain.pop()
    flat = {view.operation.results[0]: product.operation.results[0]}
    for op in chain:
        made = flattened(op, shape, flat)
        with ir.InsertionPoint(op), op.operation.location:
            shown = shape.show(made)
        op.operation.results[0].replace_all_uses_with(shown)
        flat[shown] = made
        op.operation.erase()


@dataclass(frozen=True)
class Split:
    """How a tensor is shown: which of the new axes each of its own becomes."""

    groups: Groups
    sizes: tuple[int, ...]

    @property
    def flat(self) -> list[int]:
        """The extents of the tensor itself."""
        return [prod(self.sizes[d] for d in group) for group in self.groups]

    def show(self, value: ir.Value) -> ir.Value:
        return split(value, self.groups, self.sizes)

    def read(self, indexing: ir.AffineMap) -> list[tuple[int, tuple[int, ...]]] | None:
        """The tensor's axes that an operand has, each with its places in the operand.

        None if it has one of them in part, or not as it is.
        """
        dims, place = map_dims(indexing), 0
        found: list[tuple[int, tuple[int, ...]]] = []
        while place < len(dims):
            axis = next((a for a, g in enumerate(self.groups) if dims[place] in g), -1)
            count = len(self.groups[axis])
            if axis < 0 or dims[place : place + count] != list(self.groups[axis]):
                return None
            found.append((axis, tuple(range(place, place + count))))
            place += count
        return found

    def own(
        self, value: ir.Value, indexing: ir.AffineMap
    ) -> tuple[ir.Value, list[int]]:
        """An operand as the tensor's loops read it, and the axes that it has."""
        read = self.read(indexing) or []
        return joined(value, [places for _, places in read]), [axis for axis, _ in read]


@dataclass(frozen=True)
class Joined:
    """How a tensor is shown: which of its own axes are one of the new ones."""

    groups: Groups
    flat: list[int]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The extents of what is shown."""
        return tuple(prod(self.flat[d] for d in group) for group in self.groups)

    def show(self, value: ir.Value) -> ir.Value:
        return joined(value, self.groups)

    def read(self, indexing: ir.AffineMap) -> list[int] | None:
        """The new axes that an operand has; None if it has one not as it is."""
        dims = map_dims(indexing)
        return None if None in dims else [d for d in dims if d is not None]

    def own(
        self, value: ir.Value, indexing: ir.AffineMap
    ) -> tuple[ir.Value, list[int]]:
        """An operand as the tensor's loops read it, and the axes that it has."""
        parts = [self.groups[d] for d in self.read(indexing) or []]
        places, count = list[tuple[int, ...]](), 0
        for part in parts:
            places.append(tuple(range(count, count + len(part))))
            count += len(part)
        axes = [axis for part in parts for axis in part]
        return split(value, places, [self.flat[axis] for axis in axes]), axes


Shape = Split | Joined


def shape_of(view: Op) -> Shape:
    operation = view.operation
    groups = tuple(
        tuple(d.value for d in group)  # type: ignore[attr-defined]
        for group in operation.attributes["reassociation"]
    )
    if operation.name == EXPAND:
        sizes = ir.RankedTensorType(operation.results[0].type).shape
        return Split(groups, tuple(sizes))
    return Joined(groups, list(ir.RankedTensorType(operation.operands[0].type).shape))


def split(
    value: ir.Value, groups: Sequence[Sequence[int]], sizes: Sequence[int]
) -> ir.Value:
    """A tensor with each of its dimensions as some."""
    if not isinstance(value.type, ir.RankedTensorType) or is_same(groups):
        return value
    kind = ir.RankedTensorType(value.type)
    made = ir.RankedTensorType.get(list(sizes), kind.element_type)
    parts = [list(group) for group in groups]
    return tensor.ExpandShapeOp(made, value, parts, [], list(sizes)).result


def joined(value: ir.Value, groups: Sequence[Sequence[int]]) -> ir.Value:
    """A tensor with some of its dimensions as one each."""
    if not isinstance(value.type, ir.RankedTensorType) or is_same(groups):
        return value
    kind = ir.RankedTensorType(value.type)
    sizes = [prod(kind.shape[d] for d in group) for group in groups]
    made = ir.RankedTensorType.get(sizes, kind.element_type)
    return tensor.CollapseShapeOp(made, value, [list(group) for group in groups]).result


def is_same(groups: Sequence[Sequence[int]]) -> bool:
    return all(len(group) == 1 for group in groups)


def next_of(members: list[Op], shape: Shape) -> Op | None:
    """The first reader of some operations that can have the product's shape."""
    inside = {op.operation for op in members}
    made = [op.operation.results[0] for op in members[1:]]
    readers = {user.operation: user for value in made for user in users(value)}
    fitting = [
        op
        for operation, op in readers.items()
        if operation not in inside and can_follow(op, shape, members)
    ]
    first: Op | None = None
    for op in fitting:
        if first is None or op.operation.is_before_in_block(first.operation):
            first = op
    return first


def can_follow(op: Op, shape: Shape, members: list[Op]) -> bool:
    """Whether an operation goes over a shape once, just behind some others."""
    if not is_generic(op) or NAME in op.operation.attributes:
        return False
    block = members[0].operation.block
    if len(op.operation.results) != 1 or op.operation.block != block:
        return False
    same = ir.AffineMap.get_identity(len(shape.sizes))
    if extents(op) != [*shape.sizes]:
        return False
    if not alone(op).follows(indices(same, names_of(op))):
        return False
    made = [each.operation.results[0] for each in members]
    read = list(zip(inputs(op), maps(op), strict=False))
    if any(shape.read(m) is None for _, m in read):
        return False
    at_place = all(m == same for value, m in read if value in made)
    (target,) = outputs(op)
    empty = made_by(target, "tensor.empty") is not None
    return at_place and empty and not waits_for(op, Group(members, Kind.CONTRACTION, 0))


def is_closed(ops: list[Op]) -> bool:
    """Whether others read the last one's result only."""
    inside = {op.operation for op in ops}
    results = [op.operation.results[0] for op in ops[:-1]]
    return all(user.operation in inside for value in results for user in users(value))


def flattened(op: Op, shape: Shape, flat: dict[ir.Value, ir.Value]) -> ir.Value:
    """What an operation makes, in the product's shape.

    flat: values in that shape that show others.
    """
    rank = len(shape.flat)
    operands: list[ir.Value] = []
    indexings: list[ir.AffineMap] = []
    with ir.InsertionPoint(op), op.operation.location:
        for value, indexing in zip(inputs(op), maps(op), strict=False):
            if value in flat:
                operands.append(flat[value])
                indexings.append(ir.AffineMap.get_identity(rank))
                continue
            own, axes = shape.own(value, indexing)
            operands.append(own)
            places = [ir.AffineDimExpr.get(axis) for axis in axes]
            indexings.append(ir.AffineMap.get(rank, 0, places))
        kind = ir.RankedTensorType(op.operation.results[0].type)
        operands.append(tensor.empty(shape.flat, kind.element_type))
        indexings.append(ir.AffineMap.get_identity(rank))
        return remade(op, operands, indexings, ["parallel"] * rank)
