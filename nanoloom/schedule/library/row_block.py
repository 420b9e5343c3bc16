"""How many rows of a product are one task.

A task computes its rows for one panel of the weight.  Its rows of the left operand stay
in the second-level cache while the panels go by; each block of rows brings the whole
weight through the caches once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.target.facts import Target


@dataclass(frozen=True)
class Limits:
    """share: of the second-level cache for a block.  least, most: rows of a block."""

    share: float
    least: int
    most: int


# As measured: tile registers wait for the cache, vector registers rather for weights.
VECTORS, TILES = Limits(0.6, 128, 512), Limits(0.4, 32, 256)
WOVEN = Limits(0.6, 256, 512)  # each block of rows weaves all columns anew
FEW_PANELS, FEW_ROWS = 12, 128  # fewer panels are too few tasks: smaller blocks
SLACK = 1.6  # a block may be so much larger if it is the only one


def most_rows(row_bytes: int, panels: int, limits: Limits, target: Target) -> int:
    """The rows that a block should have at most.

    row_bytes: of the left operand.  panels: of the weight.
    """
    fitting = int(limits.share * target.caches.l2 / row_bytes)
    most = limits.most if panels >= FEW_PANELS else FEW_ROWS
    return min(most, max(limits.least, fitting))


def row_block(extent: int, rows: int, most: int) -> int:
    """Rows of a task: about `most`, all blocks alike, whole tiles of `rows` rows."""
    if extent <= most * SLACK:
        return extent
    blocks = -(-extent // max(most, rows))
    even = [n for n in range(blocks, 2 * blocks) if extent % (n * rows) == 0]
    if even:
        return extent // even[0]
    return -(-extent // (blocks * rows)) * rows
