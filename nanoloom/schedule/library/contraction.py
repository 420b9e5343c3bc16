"""Contractions: panels of columns and blocks of rows in parallel, register tiles."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from nanoloom.nest.contraction import Contraction, bits, roles
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.stage import Stage
from nanoloom.schedule import register_tile
from nanoloom.schedule.families import (
    FAMILIES,
    FMA_FAMILY,
    TILE_ROWS,
    TILE_STEPS,
    Family,
)
from nanoloom.schedule.language import (
    ALL,
    Directive,
    Nanokernel,
    Parallel,
    Prefetch,
    Schedule,
    Tile,
)
from nanoloom.schedule.library.copies import pays_to_copy
from nanoloom.schedule.library.family import (
    column_sums,
    family_of,
    nanokernel_of,
    step_cost,
)
from nanoloom.schedule.library.row_block import (
    TILES,
    VECTORS,
    WOVEN,
    most_rows,
    row_block,
)
from nanoloom.schedule.library.sum_chunks import (
    in_chunks,
    may_be_cut,
    sum_chunks,
)
from nanoloom.schedule.library.task_panel import task_panel
from nanoloom.schedule.library.vectors import vectors
from nanoloom.schedule.packing import Packing
from nanoloom.schedule.step_cost import FMA
from nanoloom.target.facts import Target

AMX_COLUMNS = 32
# Bytes of a step in the first-level cache: two tiles of each operand, as much for sums.
STEP_BYTES = 3 * 2048


def contraction(
    nest: LoopNest, root: Stage, last: Stage, target: Target
) -> Schedule | None:
    """Panels of columns (and blocks of rows) in parallel, register tiles inside.

    None where no nanokernel takes this form.
    """
    shape = roles(root)
    if shape is None or not suits(root, last, shape):
        return None
    packed = is_parameter(nest, root, shape)
    family = family_of(nest, root, shape, target, packed)
    if family is None:
        return None
    if family.tiles:
        return matrix_tiles(nest, root, last, shape, family, target)
    return multiply_adds(nest, root, last, shape, family, target)


def multiply_adds(
    nest: LoopNest,
    root: Stage,
    last: Stage,
    shape: Contraction,
    family: Family,
    target: Target,
) -> Schedule | None:
    """The family's register tile, or that of a panel which every task copies.

    None for a right operand that can neither be packed nor read in vectors.
    """
    packed, row = is_parameter(nest, root, shape), row_of(shape)
    m = 1 if row is None else shape.extents[row]
    n = shape.extents[shape.column]
    width = bits(root.writes[0].element)
    cost = step_cost(family, root, shape, target, packed)
    tile = register_tile.choose(m, n, width, target.vector, cost)
    copied = not packed and pays_to_copy(root, shape, family, m, tile, target)
    if copied and (family.flat_cost or family is FMA_FAMILY):  # the copy is of f32
        family = FMA_FAMILY
        cost = step_cost(family, root, shape, target, packed, copied)
        tile = register_tile.choose(m, n, width, target.vector, cost)
    columns = tile.vectors * (target.vector.bits // width)
    sums = column_sums(family, root, shape, target)
    packings = weight_packing(nest, root, shape, columns, family, sums)
    if not packings and not shape.contiguous:
        return None
    fetched = prefetches(nest, root, shape)
    reason = f"register tile {tile}: {tile.cost:.2f} cycles a multiply-add, 1 at best"
    nanokernel = replace(
        nanokernel_of(tile, family, root.name), packed=bool(packings), copied=copied
    )
    behind = other_vectors(nest, root, target)
    if row is not None and family is FMA_FAMILY and may_be_cut(root, last):
        chunks = None
        if copied:
            chunks = task_panel(shape, row, nanokernel, width, target)
        elif packings and cost == FMA:
            chunks = sum_chunks(shape, row, nanokernel, width, target)
        if chunks is not None:
            if chunks.depth < shape.extents[shape.reduced[-1]]:
                reason += f"; sums in chunks of {chunks.depth}"
            loops = in_chunks(root, shape, row, nanokernel, columns, chunks, last.name)
            return Schedule((*packings, *fetched, *loops, *behind), reason)
    loops = tiled(root, last, shape, nanokernel, columns, target)
    return Schedule((*packings, *fetched, *loops, *behind), reason)


def other_vectors(nest: LoopNest, root: Stage, target: Target) -> tuple[Directive, ...]:
    """Vectors of what the nanokernel does not take along."""
    return vectors([stage for stage in nest.stages if stage != root], target)


def tiled(
    root: Stage,
    last: Stage,
    shape: Contraction,
    nanokernel: Nanokernel,
    columns: int,
    target: Target,
) -> tuple[Directive, ...]:
    """Tasks of panels, register tiles inside them."""
    outer, inner = loop_sizes(root, last, shape, nanokernel, columns, target)
    tile = any(inner) and not nanokernel.depth
    return (
        Parallel(last.name, outer, ALL),
        *([Tile(last.name, inner, ALL)] if tile else []),
        nanokernel,
    )


def matrix_tiles(
    nest: LoopNest,
    root: Stage,
    last: Stage,
    shape: Contraction,
    family: Family,
    target: Target,
) -> Schedule:
    """Four tile registers of sums: 32 x 32 results (paper, Fig. 2c)."""
    row = row_of(shape)
    m = 1 if row is None else shape.extents[row]
    packings = weight_packing(nest, root, shape, AMX_COLUMNS, family)
    fetched = prefetches(nest, root, shape)
    depth = chunk(shape, m, family, target)
    rows = min(m, TILE_ROWS)
    nanokernel = Nanokernel(
        rows, 2, bool(packings), family.name, root.name, depth=depth
    )
    twice = "each operand" if m > TILE_ROWS // 2 else "the left operand"
    reason = f"{rows} x 32 sums: tile registers of 16 x 16 at most, {twice} used twice"
    loops = tiled(root, last, shape, nanokernel, AMX_COLUMNS, target)
    behind = other_vectors(nest, root, target)
    return Schedule((*packings, *fetched, *loops, *behind), reason)


def chunk(shape: Contraction, m: int, family: Family, target: Target) -> int:
    """So much of a sum at a time that its panel stays in the first-level cache.

    0 for all of it: where the panel fits, or a single tile reads it.
    """
    depth = target.caches.l1d // STEP_BYTES * TILE_STEPS * family.group
    large = shape.extents[shape.reduced[-1]] > depth
    return depth if large and len(shape.reduced) == 1 and m > TILE_ROWS else 0


def is_parameter(nest: LoopNest, root: Stage, shape: Contraction) -> bool:
    """Whether the right operand can be packed while compiling."""
    name = root.reads[shape.right].buffer
    known = nest.buffer(name).role is Role.CONSTANT
    return known and not shape.other_columns and len(nest.readers(name)) == 1


def suits(root: Stage, last: Stage, shape: Contraction) -> bool:
    """Whether the nanokernels take this form."""
    if 0 in shape.extents or None in root.reads[shape.right].plain:
        return False
    written = last.writes[-1].plain
    return root == last or written == last.names[: len(shape.result)]


def row_of(shape: Contraction) -> int | None:
    """The axis along which a register tile has its rows."""
    long = [d for d in shape.rows if shape.extents[d] > 1]
    return long[-1] if long else None


def row_bytes(root: Stage, shape: Contraction) -> int:
    """Bytes of a row of the left operand."""
    depth = prod(shape.extents[d] for d in shape.reduced)
    return max(1, depth * bits(root.reads[shape.left].element) // 8)


def loop_sizes(
    root: Stage,
    last: Stage,
    shape: Contraction,
    plan: Nanokernel,
    columns: int,
    target: Target,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tile sizes of the tasks, and of the register tile inside a task."""
    rows, tiles = plan.rows, FAMILIES[plan.family].tiles
    row = row_of(shape)
    outer: dict[int, int] = dict.fromkeys(shape.result, 1)
    outer[shape.column] = columns
    inner: dict[int, int] = {}
    if row is not None:
        panels = -(-shape.extents[shape.column] // columns)
        limits = (TILES if plan.packed else WOVEN) if tiles else VECTORS
        most = most_rows(row_bytes(root, shape), panels, limits, target)
        block = row_block(shape.extents[row], rows, most)
        outer[row] = 0 if block >= shape.extents[row] else block
        inner[row] = rows
    dims = range(len(shape.extents)) if root == last else shape.result
    return (
        tuple(outer.get(d, 0) for d in dims),
        tuple(inner.get(d, 0) for d in dims),
    )


def prefetches(nest: LoopNest, root: Stage, shape: Contraction) -> tuple[Prefetch, ...]:
    """The right operand comes panel by panel, each before it is read."""
    buffer = nest.buffer(root.reads[shape.right].buffer)
    return (Prefetch(buffer.argument),) if buffer.argument >= 0 else ()


def weight_packing(
    nest: LoopNest,
    root: Stage,
    shape: Contraction,
    columns: int,
    family: Family,
    sums: int = 0,
) -> tuple[Packing, ...]:
    """How the right operand is packed, if it is a parameter."""
    if not is_parameter(nest, root, shape):
        return ()
    read = root.reads[shape.right]
    dims = [root.place(axis) for axis in read.plain if axis is not None]
    return (
        Packing(
            nest.buffer(read.buffer).argument,
            tuple(dims.index(d) for d in shape.shared),
            dims.index(shape.column),
            tuple(dims.index(d) for d in shape.reduced),
            columns,
            family.group,
            sums,
            family.steps,
        ),
    )
