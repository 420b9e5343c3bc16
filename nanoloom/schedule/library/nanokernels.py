"""What a nanokernel of a product says beside its register tile, as was measured."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.nest.contraction import Contraction, bits, lhs_is_k_contiguous
from nanoloom.nest.extent import Lanes
from nanoloom.nest.index import Access
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.nanokernel import BETWEEN, FRONT, NOT
from nanoloom.schedule.families import (
    AMX,
    BF16_CONVERT,
    BF16_HALVES,
    BIT_TABLES,
    FAMILIES,
    FMA_FAMILY,
    INT8_INNER,
    INT8_LANES,
    INT8_PAIRS,
    INT16_PAIRS,
    SIDE,
    TILE_STEPS,
    Family,
)
from nanoloom.schedule.lane_factors import lane_factors, swaps_for_room
from nanoloom.schedule.language import Nanokernel, Prefetch
from nanoloom.schedule.library.copy_rhs import is_of_any_length
from nanoloom.schedule.library.instruction_order import in_order
from nanoloom.schedule.library.k_unrolling import ROUND, STEPS, steps_of_round
from nanoloom.schedule.register_tile import RegisterTile
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import widens_products
from nanoloom.target.masked_access import has_masked_loads

# Steps of the sum before its use that a row of the right operand is fetched: 16 to 64
# are alike, measured; without, 2048 x 2048 are slower by a tenth.  The same in lines of
# a single row's panel: more loads under way than the processor has by itself; 24 to 48
# gain 8 % of a token's time, 16 and 64 nothing, measured.
AHEAD = 32
# That are on their way at once: more, asked for in a round, keep its own loads waiting.
LINES = 8


@dataclass(frozen=True)
class Operands:
    """The product that a nanokernel is for.

    packed: the right operand comes in panels; copied: every task makes its panel.
    """

    root: Statement
    shape: Contraction
    family: Family
    packed: bool = False
    copied: bool = False

    @property
    def left(self) -> Access:
        return self.root.reads[self.shape.left]

    @property
    def right(self) -> Access:
        return self.root.reads[self.shape.right]

    @property
    def in_panel(self) -> bool:
        """Whether multiply-adds fill a panel between their products."""
        return self.copied and self.family is FMA_FAMILY

    @property
    def depth(self) -> int:
        """Steps of the sum."""
        return prod(self.shape.extents[d] for d in self.shape.reduced)


def nanokernel_of(tile: RegisterTile, product: Operands, target: Target) -> Nanokernel:
    """The nanokernel with this tile."""
    width = bits(product.root.writes[0].element)
    plan = Nanokernel(
        tile.rows,
        tile.vectors,
        Lanes(target.lanes(width)),
        product.packed,
        product.family.name,
        product.root.name,
        copy_rhs=copied(tile, product, target),
        hold_lhs=tile.hold_lhs or rows_held(tile, product, target),
        unroll=unroll(tile, product, target),
        convert_lhs=widened_values(tile, product, target),
    )
    columns = product.shape.extents[product.shape.column]
    return in_order(plan, product.family, columns, width, target)


def rows_held(tile: RegisterTile, product: Operands, target: Target) -> bool:
    """Whether a tile loads its columns one by one, for room for numbers of its rows."""
    sums, left = product.root.writes[0].element, product.left.element
    several = lane_factors(target, bits(sums)) > 1 and left == sums
    along = lhs_is_k_contiguous(product.root, product.shape)
    plain = product.family is FMA_FAMILY and not product.copied
    return several and along and plain and swaps_for_room(tile, target)


def unroll(tile: RegisterTile, product: Operands, target: Target) -> int:
    """Steps of the innermost sum in a round of its loop, or groups of steps.

    One of pairs of flat operands: two are 20 % slower on AVX-512, measured; and of
    int8-lanes, which are for Arm and RISC-V: two were not measured.
    """
    family = product.family
    if family is INT8_INNER:
        return max(1, groups_of_round(tile.rows, tile.vectors) // 2)
    if family in (INT8_PAIRS, INT16_PAIRS) and product.packed:
        return groups_of_round(tile.rows, tile.vectors)
    if family in (BIT_TABLES, INT8_LANES, INT8_PAIRS, INT16_PAIRS):
        return 1
    pairs = family in (BF16_CONVERT, BF16_HALVES) and not product.packed
    if family is not FMA_FAMILY and not pairs:
        return STEPS
    lanes = lane_factors(target, bits(product.root.writes[0].element))
    streams = product.packed and not has_several_tiles(tile, product)
    return max(lanes, steps_of_round(tile.rows, tile.vectors, target, streams=streams))


def has_several_tiles(tile: RegisterTile, product: Operands) -> bool:
    """Whether several tiles of rows read a panel, whatever sizes a run has."""
    rows = prod(product.shape.extents[d] for d in product.shape.rows)
    return rows > tile.rows and not any(x.is_sample for x in product.root.axes)


def groups_of_round(rows: int, vectors: int) -> int:
    """Of products and their additions, at most ROUND; a power of two."""
    most = max(1, ROUND // (2 * rows * vectors))
    return 1 << most.bit_length() - 1


def copied(tile: RegisterTile, product: Operands, target: Target) -> str:
    """How a task copies its panel of the right operand.

    In front where a vector of it takes more registers than sums leave: it is put
    together from single numbers, or converted by integers; or the tile has none to
    spare, as what is stored as well as multiplied is no operand in memory.
    """
    if not product.copied:
        return NOT
    lanes = target.lanes(bits(product.root.writes[0].element))
    over = product.shape.extents[product.shape.column] % (tile.vectors * lanes) > 0
    size = bits(product.right.element) // 8
    full = tile.rows * tile.vectors + tile.vectors + 1 >= target.vector.registers
    by_integers = product.right.element == "f16" and not target.widens_f16
    in_parts = over and not has_masked_loads(target, size)
    front = full or in_parts or by_integers or not product.in_panel
    return FRONT if front else BETWEEN


def is_interleaved(
    shape: Contraction,
    plan: Nanokernel,
    rows: int,
    extent: int,
    places: int,
    target: Target,
) -> str:
    """Whether the first of a task's tiles of a matrix unit weaves for all others.

    Where there are others, and room for all that they read.  rows: of the task, out of
    an extent; a last task with fewer has a loop over its tiles, too, as if of several.
    places: parts of the operand that tiles of rows come back to.
    """
    together = TILE_STEPS * FAMILIES[plan.family].group
    whole, rest = divmod(shape.extents[shape.reduced[-1]], together)
    chunks = max(1, -(-whole // (plan.depth // together))) if plan.depth else 1
    size = -(-whole // chunks)
    deepest = max(size if chunks > 1 else 0, whole - size * (chunks - 1) + bool(rest))
    fits = places * deepest * SIDE * AMX.bytes <= target.caches.reach
    several = rows > plan.rows or extent % rows > 0
    return BETWEEN if several and fits else NOT


def widened_values(tile: RegisterTile, product: Operands, target: Target) -> int:
    """Numbers of each row of the left operand that are converted at once.

    All of them, in front of the loops, if they stay in the cache, or a family reads no
    others; with a panel a strip.  None where only a run says how many there are.
    """
    sums, element = product.root.writes[0].element, product.left.element
    if not product.family.widens or bits(element) == bits(sums):
        return 0
    if is_of_any_length(product.root, product.shape) or widens_products(
        target, element
    ):
        return 0
    if product.in_panel:
        return max(strip(target), target.lanes(bits(sums)))
    if product.family is INT8_INNER:
        return product.depth
    made = lhs_scalars(tile, product) * bits("f32") // 8
    return product.depth if made <= target.caches.reach else 0


def strip(target: Target) -> int:
    """Numbers of a row that are converted at once between products: of a line, f32."""
    return target.caches.line * 8 // bits("f32")


def lhs_scalars(tile: RegisterTile, product: Operands) -> int:
    """Numbers of the left operand that a tile reads."""
    root, shape = product.root, product.shape
    points = dict.fromkeys(root.names, 1)
    points |= {root.names[d]: shape.extents[d] for d in shape.reduced}
    long = [d for d in shape.rows if shape.extents[d] > 1]
    if long:
        points[root.names[long[-1]]] = min(tile.rows, shape.extents[long[-1]])
    return prod(
        1 + sum(abs(factor) * (points[axis] - 1) for axis, factor in x.terms)
        for x in product.left.indices
    )


def flat_prefetches(
    nest: LoopNest, nanokernel: Nanokernel, product: Operands, target: Target
) -> tuple[Prefetch, ...]:
    """Operands of a product that come some steps of the sum before they are read.

    Those that are arguments: what the kernel makes itself is in a cache.
    """
    if not product.in_panel:
        return ()
    root, shape = product.root, product.shape
    right, left = (nest.buffer(x.buffer) for x in (product.right, product.left))
    found: list[Prefetch] = []
    if right.argument >= 0:
        found.append(Prefetch(right.argument, ahead=AHEAD, level=2))
    plain, long = product.left.plain, [d for d in shape.rows if shape.extents[d] > 1]
    by_rows = bool(long) and root.names[long[-1]] in plain and nanokernel.rows > 1
    along = lhs_is_k_contiguous(root, shape) and plain[-1] is not None
    ahead = LINES * strip(target)
    strips = 0 < nanokernel.convert_lhs <= shape.extents[shape.reduced[-1]]
    if strips and by_rows and along and left.argument >= 0:
        found.append(Prefetch(left.argument, ahead=ahead, level=1))
    return tuple(found)
