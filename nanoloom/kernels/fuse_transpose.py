"""Results that are written in another order by the kernel that makes them.

    t[i, j, f] = product, with what follows it at the same places
    y[f, i, j] = t[i, j, f]
      ->  one kernel:  a task has its block of t in its cache, and turns it there

So is the image that a network returns, or that a single layer makes: no pass over all
of it, and no second place for it in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.kernels.follow_products import (
    COLLAPSE,
    Joined,
    ends_product,
    joined,
    shape_of,
    with_body,
)
from nanoloom.kernels.fuse_product_chain import only_reader, product
from nanoloom.kernels.group import LIMIT, Group, group_of, users
from nanoloom.kernels.linalg_query import (
    Kind,
    Op,
    base,
    inputs,
    is_copy,
    kind,
    map_dims,
    maps,
)
from nanoloom.kernels.nest import alone
from nanoloom.mlir import ir, named, tensor
from nanoloom.nest.transposed_result import is_transpose, may_transpose


def transpose_shapes(module: ir.Module) -> None:
    """Let turns of a product whose axes are shown as fewer have all of them.

    The channels of a layer in groups, which are one axis of the image.
    """
    for view in named(module, COLLAPSE):
        source, shown = view.operation.operands[0], view.operation.results[0]
        owner, readers = source.owner, users(shown)
        if isinstance(owner, ir.Block) or len(readers) != 1 or len(users(source)) != 1:
            continue
        if ends_product(owner.opview) and is_alone(readers[0]):
            shape = shape_of(view)
            assert isinstance(shape, Joined), "it collapses axes"
            replace_transpose(readers[0], source, shape)


def is_alone(op: Op) -> bool:
    """Whether an operation turns what it reads, and does nothing else."""
    return is_copy(op) and is_transpose(alone(op))


def replace_transpose(op: Op, source: ir.Value, shape: Joined) -> None:
    """The same turn of all axes, shown as it was."""
    reading = map_dims(maps(op)[0])
    groups = [shape.groups[reading.index(d)] for d in range(len(reading))]
    axes = [axis for group in groups for axis in group]
    rank, sizes = len(axes), [shape.flat[axis] for axis in axes]
    dims = [ir.AffineDimExpr.get(axes.index(axis)) for axis in range(rank)]
    read = ir.AffineMap.get(rank, 0, dims)
    with ir.InsertionPoint(op), op.operation.location:
        kind = ir.RankedTensorType(source.type).element_type
        made = with_body(
            op,
            [source, tensor.empty(sizes, kind)],
            [read, ir.AffineMap.get_identity(rank)],
        )
        places = [[axes.index(axis) for axis in group] for group in groups]
        shown = joined(made, places)
    op.operation.results[0].replace_all_uses_with(shown)
    op.operation.erase()


def fuse_transposes(groups: list[Group], weights: Sequence[ir.Value]) -> list[Group]:
    """Join turns with the products that make what they read for nobody else.

    weights: the arguments that are parameters, of which panels can be packed.
    """
    owner = {op.operation: group for group in groups for op in group.ops}
    gone: set[int] = set()
    for group in groups:
        source = source_of(group, owner, weights)
        if source is not None and id(source) not in gone:
            group.ops = [*source.ops, *group.ops]
            group.root, group.rows = Kind.CONTRACTION, 0
            gone.add(id(source))
    return [group for group in groups if id(group) not in gone]


def source_of(
    group: Group, owner: dict[ir.Operation, Group], weights: Sequence[ir.Value]
) -> Group | None:
    """The product whose result is all that a group turns, None if it is none."""
    first, *others = group.ops
    if others or not is_alone(first):
        return None
    source = group_of(inputs(first)[0], owner)
    made = None if source is None else product(source)
    if source is None or made is None or len(source.ops) >= LIMIT:
        return None
    if any(kind(op) is not Kind.ELEMENTWISE for op in source.ops[1:]):
        return None
    end = source.ops[-1].operation.results[0]
    if end != inputs(first)[0] or not only_reader(source, group):
        return None
    if str(ir.RankedTensorType(end.type).element_type) != "f32":
        return None
    shape = may_transpose(alone(made), plain=len(source.ops) == 1)
    known = shape is not None and base(inputs(made)[shape.right]) in weights
    return source if known else None
