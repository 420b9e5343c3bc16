"""Averages of an image that a product makes, inside of the kernel that makes it.

    t[r, f] = product, with what follows it at the same places
    p[n, f] = sum of t over all pixels of image n
      ->  one kernel:  a task has some columns of an image in its cache, and adds up

Nothing is computed twice, and the image is never in memory: the average in front of a
classifier, behind the last layer of 1x1 filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from nanoloom.kernels.follow_products import EXPAND, ends_product, shape_of, with_body
from nanoloom.kernels.fuse_product_chain import only_reader, product
from nanoloom.kernels.fuse_winograd_pool import is_pool
from nanoloom.kernels.group import Group, group_of, is_view, users
from nanoloom.kernels.linalg_query import (
    Kind,
    Op,
    base,
    body,
    inputs,
    is_fill,
    is_generic,
    is_identity,
    iterators,
    kind,
    map_dims,
    maps,
    outputs,
)
from nanoloom.kernels.nest import alone
from nanoloom.mlir import ir, operations, tensor
from nanoloom.nest.global_pool import is_sum_of_rows, makes_rows


def fuse_global_pools(module: ir.Module) -> None:
    """Let sums over pixels read a product's result in the shape that it has there."""
    for op in operations(module, sums_pixels):
        source = inputs(op)[0]
        owner = source.owner
        assert not isinstance(owner, ir.Block), "a product makes it"
        view = owner.opview
        groups = [[d] for d in range(len(ir.RankedTensorType(source.type).shape))]
        if is_view(view):
            groups = [list(group) for group in shape_of(view).groups]
            source = view.operation.operands[0]
        replace_sum(op, source, groups)


def sums_pixels(op: Op) -> bool:
    """Whether an operation adds up what a product makes for it alone, columns apart."""
    if not is_generic(op) or kind(op) is not Kind.REDUCTION or len(inputs(op)) != 1:
        return False
    if len(op.operation.results) != 1 or not is_identity(maps(op)[0]):
        return False
    begin, written = outputs(op)[0].owner, map_dims(maps(op)[-1])
    if isinstance(begin, ir.Block) or not is_fill(begin.opview):
        return False
    kinds = iterators(op)
    parallel = [d for d, word in enumerate(kinds) if word == "parallel"]
    if written != parallel or not parallel or parallel[-1] != len(kinds) - 1:
        return False
    return is_made_alone(inputs(op)[0], kinds)


def is_made_alone(source: ir.Value, kinds: list[str]) -> bool:
    """Whether a product, maybe seen with more axes, makes a value for one reader."""
    owner = source.owner
    if isinstance(owner, ir.Block) or len(users(source)) != 1:
        return False
    if owner.name == EXPAND:
        if shape_of(owner.opview).groups[-1] != (len(kinds) - 1,):
            return False
        source = owner.operands[0]
        owner = source.owner
        if isinstance(owner, ir.Block) or len(users(source)) != 1:
            return False
    element = str(ir.RankedTensorType(source.type).element_type)
    return element == "f32" and ends_product(owner.opview)


def replace_sum(op: Op, source: ir.Value, groups: list[list[int]]) -> None:
    """The same sum of what a product makes; groups: the pixels' axes of each of its."""
    loops = pixel_loops(op, groups)
    if loops is None:
        return
    (begin,) = outputs(op)
    element = ir.RankedTensorType(begin.type).element_type
    with ir.InsertionPoint(op), op.operation.location:
        window = [tensor.empty(loops.window, element)] if loops.window else []
        operands = [source, *window, begin]
        made = with_body(op, operands, loops.indexings, loops.reduced)
        if window:
            read_window(made)
    op.operation.results[0].replace_all_uses_with(made)
    op.operation.erase()


def read_window(made: ir.Value) -> None:
    """Give a sum of one operand a second one, whose numbers it ignores."""
    op = made.owner
    assert not isinstance(op, ir.Block), "a sum makes it"
    op.attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([2, 1])
    block = body(op.opview)
    so_far = block.arguments[1]
    block.add_argument(so_far.type, ir.Location.current)
    so_far.replace_all_uses_with(block.arguments[2])


@dataclass(frozen=True)
class PixelLoops:
    """The loops of a sum over rows of a product: results, then `reduced` of pixels.

    window: extents of the loops of pixels that are no index by themselves: an operand
    of this shape tells them, as that of a pool does.  indexings: of all operands.
    """

    reduced: int
    window: list[int]
    indexings: list[ir.AffineMap]


def pixel_loops(op: Op, groups: list[list[int]]) -> PixelLoops | None:
    """One loop for the pixels of each axis of a product.

    None where those of one result are not side by side: a task would compute what lies
    between them as well.
    """
    kinds, sizes = iterators(op), ir.RankedTensorType(inputs(op)[0].type).shape
    kept = [d for d, word in enumerate(kinds) if word == "parallel"]
    pixels = [[d for d in group if d not in kept] for group in groups]
    reduced = sum(bool(found) for found in pixels)
    rank = len(kept) + reduced
    dims = [ir.AffineDimExpr.get(d) for d in range(rank)]
    behind = iter(dims[len(kept) :])
    read: list[ir.AffineExpr] = []
    window: list[tuple[ir.AffineExpr, int]] = []
    for group, found in zip(groups, pixels, strict=True):
        if group[len(group) - len(found) :] != found:
            return None
        terms = [(dims[kept.index(d)], sizes[d]) for d in group if d in kept]
        if found:
            terms.append((next(behind), prod(sizes[d] for d in found)))
        (index, _), *others = terms
        for dim, size in others:
            index = index * size + dim
        read.append(index)
        if found and others:
            window.append(terms[-1])
    ways = [read, *([[dim for dim, _ in window]] if window else []), dims[: len(kept)]]
    indexings = [ir.AffineMap.get(rank, 0, each) for each in ways]
    return PixelLoops(reduced, [size for _, size in window], indexings)


def fuse_pixel_sums(groups: list[Group], weights: Sequence[ir.Value]) -> list[Group]:
    """Join sums over pixels with the products that make them for nobody else.

    weights: the arguments that are parameters, of which panels can be packed.
    """
    owner = {op.operation: group for group in groups for op in group.ops}
    gone: set[int] = set()
    for group in groups:
        first = group.ops[0]
        if not is_pool(first) or not are_followed(group):
            continue
        source = group_of(inputs(first)[0], owner)
        made = None if source is None else product(source)
        if source is None or made is None or id(source) in gone:
            continue
        end = source.ops[-1].operation.results[0]
        if end != inputs(first)[0] or not only_reader(source, group):
            continue
        shape = makes_rows(alone(made))
        if shape is None or base(inputs(made)[shape.right]) not in weights:
            continue
        if is_sum_of_rows(alone(first)):
            group.ops = [*source.ops, *group.ops]
            group.root, group.rows = Kind.CONTRACTION, 0
            gone.add(id(source))
    return [group for group in groups if id(group) not in gone]


def are_followed(group: Group) -> bool:
    """Whether all behind a group's sums is elementwise, at the places of the sums."""
    first, *behind = group.ops
    rank = iterators(first).count("parallel")
    return all(
        kind(op) is Kind.ELEMENTWISE
        and len(iterators(op)) == rank
        and is_identity(maps(op)[-1])
        for op in behind
    )
