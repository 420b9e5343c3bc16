"""Pools of what Winograd's method makes, inside of the kernel that makes it.

    t = A m + bias, relu   [y, m, x, m, f]: tiles of m x m pixels
    p = max of s x s pixels of t, shown as an image [y m, x m, f]
      ->  one kernel:  a task has a tile of t in its cache, and writes m/s x m/s pixels

Where s divides m no window crosses an edge of a tile: nothing is computed twice, and
the image is never in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.kernels.follow_products import (
    COLLAPSE,
    ends_product,
    joined,
    shape_of,
    with_body,
)
from nanoloom.kernels.fuse_product_chain import only_reader, product
from nanoloom.kernels.group import Group, group_of, users
from nanoloom.kernels.linalg_query import (
    Kind,
    Op,
    inputs,
    is_fill,
    is_generic,
    is_prefix,
    kind,
    maps,
    outputs,
    yielded,
)
from nanoloom.kernels.nest import alone
from nanoloom.linalg.builder.pointwise import pointwise
from nanoloom.mlir import arith, ir, named, tensor
from nanoloom.nest.winograd_pool import (
    TiledWindow,
    is_tile_pool,
    makes_tiles,
    tiled_windows,
)


def fuse_winograd_pools(module: ir.Module) -> None:
    """Let pools of an image that tiles are shown as read the tiles themselves."""
    for view in named(module, COLLAPSE):
        tiles, image = view.operation.operands[0], view.operation.results[0]
        owner, readers = tiles.owner, users(image)
        if len(readers) != 1 or len(users(tiles)) != 1 or isinstance(owner, ir.Block):
            continue
        (pool,) = readers
        if not ends_product(owner.opview) or not is_pool(pool):
            continue
        kind_of_tiles = ir.RankedTensorType(tiles.type)
        shape = kind_of_tiles.shape
        if str(kind_of_tiles.element_type) != "f32":
            continue  # no kernel takes it (makes_tiles)
        extents = [tuple(shape[d] for d in g) for g in shape_of(view).groups]
        windows = tiled_windows(alone(pool), extents)
        if windows is not None and inputs(pool)[0] == image:
            replace_pool(pool, tiles, windows)


def is_pool(op: Op) -> bool:
    """A reduction of windows, which begins with a number, and is no product."""
    if not is_generic(op) or kind(op) is not Kind.REDUCTION:
        return False
    if len(op.operation.results) != 1 or not is_prefix(maps(op)[-1]):
        return False
    owner = outputs(op)[0].owner
    return not isinstance(owner, ir.Block) and is_fill(owner.opview)


def replace_pool(pool: Op, tiles: ir.Value, windows: Sequence[TiledWindow]) -> None:
    """The same pool over tiles, shown as the image that it was."""
    loops = Loops.of(pool, windows)
    (begin,) = outputs(pool)
    element = ir.RankedTensorType(begin.type).element_type
    fill = begin.owner
    assert not isinstance(fill, ir.Block), "a pool begins with a fill"
    number = yielded(fill.opview)[0].owner
    assert not isinstance(number, ir.Block), "a fill yields a constant"
    value = number.attributes["value"]
    with ir.InsertionPoint(pool), pool.operation.location:
        filled = pointwise(
            [],
            tensor.empty(loops.sizes, element),
            lambda: arith.constant(element, value),
        )
        operands = [tiles, *inputs(pool)[1:], filled]
        reduced = loops.indexings[0].n_dims - len(loops.sizes)
        made = with_body(pool, operands, loops.indexings, reduced)
        shown = joined(made, loops.groups)
    pool.operation.results[0].replace_all_uses_with(shown)
    pool.operation.erase()


@dataclass(frozen=True)
class Loops:
    """The loops of a pool over tiles.

    sizes: of the parallel ones.  groups: which of them are one axis of the image.
    indexings: of all operands.
    """

    sizes: list[int]
    groups: list[list[int]]
    indexings: list[ir.AffineMap]

    @classmethod
    def of(cls, pool: Op, windows: Sequence[TiledWindow]) -> Loops:
        """From those of a pool over an image; one window for each axis of it."""
        before = maps(pool)
        sizes: list[int] = []
        groups: list[list[int]] = []
        for window in windows:
            made = [window.count, *([window.inner] if window.inner > 1 else [])]
            groups.append(list(range(len(sizes), len(sizes) + len(made))))
            sizes += made
        first, parallel = len(sizes), len(windows)
        rank = first + before[0].n_dims - parallel
        dims = [ir.AffineDimExpr.get(d) for d in range(rank)]
        read: list[ir.AffineExpr] = []
        for window, group in zip(windows, groups, strict=True):
            read.append(dims[group[0]])
            if window.step:
                tap = dims[first + window.tap]
                within = [dims[d] * window.step + tap for d in group[1:]]
                read += within or [tap]
        moved = ir.AffineMap.get(rank, 0, [dims[0]] * parallel + dims[first:])
        taps = [
            ir.AffineMap.get(rank, 0, [e.compose(moved) for e in m.results])
            for m in before[1:-1]
        ]
        reading = ir.AffineMap.get(rank, 0, read)
        return cls(
            sizes, groups, [reading, *taps, ir.AffineMap.get(rank, 0, dims[:first])]
        )


def fuse_tile_pools(groups: list[Group]) -> list[Group]:
    """Join pools of tiles with the products that make them for nobody else."""
    owner = {op.operation: group for group in groups for op in group.ops}
    gone: set[int] = set()
    for group in groups:
        first, *others = group.ops
        if others or not is_pool(first) or not is_tile_pool(alone(first)):
            continue
        source = group_of(inputs(first)[0], owner)
        made = None if source is None else product(source)
        if source is None or made is None or id(source) in gone:
            continue
        if makes_tiles(alone(made)) is not None and only_reader(source, group):
            group.ops = [*source.ops, first]
            group.root, group.rows = Kind.CONTRACTION, 0
            gone.add(id(source))
    return [group for group in groups if id(group) not in gone]
