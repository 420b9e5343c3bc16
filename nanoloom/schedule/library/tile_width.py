"""How wide the vectors of a register tile are: as wide as the machine's, or a number.

Registers that can be grouped (LMUL of RVV) are one vector, as far as the tile's vectors
allow: the fewest instructions for the same sums.
"""

from __future__ import annotations

from math import gcd

from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule import register_tile
from nanoloom.schedule.families import BYTES, FLOATS
from nanoloom.schedule.library.finish_at_tile import lanes_at_tile
from nanoloom.schedule.library.k_groups import grouped
from nanoloom.schedule.library.vectors import lanes_of
from nanoloom.schedule.register_tile import RegisterTile
from nanoloom.schedule.step_cost import StepCost
from nanoloom.target.facts import LANE_BITS, WIDEST_BITS, Target, VectorUnit

# vscale that a task has columns for: 2048 bits of SVE, 1024 of RVV.
WIDEST = WIDEST_BITS // LANE_BITS
WEIGHED_WIDTH = 4  # times the least width, of those that a tile is weighed at
BEGUN = 0.1  # of a cycle, for each instruction beside what it computes


def is_of_any_width(nest: LoopNest, product: Statement, target: Target) -> bool:
    """Whether a product can have vectors as wide as the machine's, whatever it has.

    Nanokernels know how wide theirs are, and are for machines with that width alone.
    Of narrow numbers these are as fast where all registers have the same length.
    """
    if target.vector.vscale_max == 1:
        return False
    kinds = tuple(x.element for x in (*product.reads, *product.writes))
    wide = set(kinds) in ({"f32"}, {"f64"})
    narrow = target.vector.any_length and (kinds in FLOATS or kinds in BYTES)
    return (wide or narrow) and lanes_at_tile(nest, product, target).scalable


def lanes_of_tile(
    nest: LoopNest, stage: Statement, tile: RegisterTile, target: Target
) -> tuple[Lanes, int]:
    """The vectors of a tile, and how many of them are side by side.

    Registers that are one group, as RISC-V's can be, are one vector; so are those that
    rows of bytes are woven into.
    """
    count = lanes_of(stage, target)
    woven = grouped(stage, target)
    group = woven if woven > 1 else group_of(tile.vectors, target)
    lanes = lanes_at_tile(nest, stage, target, count * group)
    return lanes, tile.vectors // group


def group_of(vectors: int, target: Target) -> int:
    """How many of a tile's vectors are one group of registers."""
    return gcd(vectors, target.vector.grouped)


def panel_columns(lanes: Lanes, vectors: int, target: Target) -> int:
    """Columns of a task: of scalable vectors, as many as a tile of wide ones has.

    One number for all machines: those with narrow vectors have several tiles in it.
    """
    scale = min(target.vector.vscale_max, WIDEST) if lanes.scalable else 1
    return lanes.count * vectors * scale


def tile_cost(
    rows: int, vectors: int, columns: int, lanes: int, unit: VectorUnit, step: StepCost
) -> float:
    """Cycles of a step for a vector of sums, at some widths that a vector may have.

    Where registers are grouped, single instructions are counted, too: a core that runs
    in order begins two a cycle at most, and fewer are fewer.
    """
    most = max(unit.vscale_min, min(unit.vscale_max, unit.vscale_min * WEIGHED_WIDTH))
    widths = [n for n in (1, 2, 4, 8, 16) if unit.vscale_min <= n <= most]
    costs = [
        register_tile.cost(rows, vectors, rows, columns, lanes * n, unit, step)
        for n in widths or [1]
    ]
    cost = sum(costs) / len(costs)
    if unit.grouped == 1:
        return cost
    operands = vectors // gcd(vectors, unit.grouped)
    begun = rows * operands + rows + operands
    return cost + BEGUN * begun / (rows * vectors)
