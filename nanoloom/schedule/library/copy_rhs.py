"""When a task copies its panel of a right operand that lies flat."""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import Contraction, bits
from nanoloom.nest.statement import Statement
from nanoloom.schedule.families import BF16_HALVES, FMA_FAMILY, Family
from nanoloom.schedule.register_tile import RegisterTile
from nanoloom.target.facts import Target
from nanoloom.target.masked_access import has_mask_registers, has_masked_loads

COPY_TILES = 4  # tiles of rows that share the copy of a panel
# Rows that share the copy of 2-byte numbers, which it widens.  Measured on AVX-512 and
# AVX2: for 24 even and odd columns in place are mostly faster, from 48 on the copy is,
# by 20 % for 128.
COPY_ROWS = 48
# Rows that share a panel whose vectors would be read under masks, at every step: a copy
# is filled up once.  Measured on AVX2: 9 rows are alike, 15 gain a fifth.
MASKED_ROWS = 12


def pays_to_copy(
    root: Statement,
    shape: Contraction,
    family: Family,
    m: int,
    tile: RegisterTile,
    target: Target,
) -> bool:
    """Whether tasks should copy their panel of a flat right operand.

    It lies in too many pages of memory, every tile of rows converts it again, or reads
    it under masks that are vectors; and enough rows read it to pay for a copy.
    """
    if has_to_copy(root, shape, family, tile, target):
        return True
    size = bits(root.reads[shape.right].element) // 8
    n, over = shape.extents[shape.column], exceeds_cache(root, shape, tile, target)
    if size == bits("f16") // 8 and family in (BF16_HALVES, FMA_FAMILY):
        return m >= COPY_ROWS
    masked = over and family is FMA_FAMILY and not has_mask_registers(target, size)
    if masked and m >= MASKED_ROWS:
        return True
    many = m >= COPY_TILES * tile.rows
    return many and lies_in_many_pages(shape, n * size, target)


def lies_in_many_pages(shape: Contraction, row: int, target: Target) -> bool:
    """Whether steps of a panel, in rows of so many bytes, wait for translations.

    Where rows are no whole lines, a panel has parts of more of them, which come slower:
    128 rows of 25 pages are alike, 500 of 46 gain a fifth by a copy, as measured on
    AVX2.
    """
    depth, caches = prod(shape.extents[d] for d in shape.reduced), target.caches
    pages = depth * min(row, caches.page) // caches.page
    return pages > (caches.pages // 2 if row % caches.line else caches.pages)


def has_to_copy(
    root: Statement,
    shape: Contraction,
    family: Family,
    tile: RegisterTile,
    target: Target,
) -> bool:
    """Whether a tile over the edge cannot be read where it lies."""
    masked = has_masked_loads(target, bits(root.reads[shape.right].element) // 8)
    over = exceeds_cache(root, shape, tile, target)
    return over and family.flat_cost is None and not masked


def exceeds_cache(
    root: Statement, shape: Contraction, tile: RegisterTile, target: Target
) -> bool:
    """Whether the last tile has more columns than there are."""
    lanes = target.lanes(bits(root.writes[0].element))
    return shape.extents[shape.column] % (tile.vectors * lanes) > 0


def is_of_any_length(root: Statement, shape: Contraction) -> bool:
    """Whether only a run says how long the sum is: copies are of known depths, and so
    are groups of its steps."""
    return any(root.axes[axis].is_sample for axis in shape.reduced)
