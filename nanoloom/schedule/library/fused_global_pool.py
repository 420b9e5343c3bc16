"""Products whose pixels are added up in the cache (nest/global_pool.py).

for image, panel of columns (a task):
    t = product by register tiles, with what follows at the same places
    p = sum of the rows of t
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import bits
from nanoloom.nest.global_pool import Summed
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule import register_tile
from nanoloom.schedule.families import FMA_FAMILY
from nanoloom.schedule.language import ALL, Parallel, Schedule, StoreAt, Tile
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.schedule.library.family import step_cost
from nanoloom.schedule.library.fused_product_chain import epilogue
from nanoloom.schedule.library.fused_product_chain import sizes as sizes_of
from nanoloom.schedule.library.nanokernels import Operands, nanokernel_of
from nanoloom.schedule.library.panels import row_of, weight_packing
from nanoloom.schedule.library.vectors import vectors
from nanoloom.target.facts import Target


def fused_global_pool(nest: LoopNest, found: Summed, target: Target) -> Schedule:
    """A task for each image and panel of columns."""
    root, shape, sums = found.product, found.shape, found.sums
    row = row_of(shape)
    rows = [a.extent for a in sums.axes if a.is_reduction]
    pixels = prod(extent for extent in rows if isinstance(extent, int))
    most = pixels if row is None else min(shape.extents[row], pixels)
    width = bits(root.writes[0].element)
    cost = step_cost(FMA_FAMILY, root, shape, target, packed=True)
    columns = shape.extents[shape.column]
    tile = register_tile.of_panels(most, columns, width, target, cost)[0]
    wide = tile.vectors * (target.vector.bits // width)
    plan = nanokernel_of(tile, Operands(root, shape, FMA_FAMILY, packed=True), target)
    last = found.last
    images = len(sums.writes[0].plain) - 1
    sizes = (1,) * images + (wide,) + (0,) * (len(last.axes) - images - 1)
    inner = dict.fromkeys(shape.rows, 1) | ({} if row is None else {row: tile.rows})
    behind = epilogue(nest, root, found.end)
    words = (
        *weight_packing(nest, root, shape, wide, FMA_FAMILY),
        Parallel(last.name, sizes, ALL),
        *(StoreAt(pad.name, "task") for pad in nest.pads),
        Tile(
            found.end.name,
            sizes_of(shape, root, found.end, inner),
            tuple(stage.name for stage in reversed(behind[:-1])),
        ),
        plan,
        *vectors([s for s in nest.stages if s != root], target),
    )
    reason = f"tiles of {tile.rows} x {tile.vectors} vectors, added up in the cache"
    return schedule_of(nest, target, (words, reason))
