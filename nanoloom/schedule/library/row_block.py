"""How many rows of a product are one task.

A task computes its rows for one panel of the weight.  Its rows of the left operand stay
in the second-level cache while the panels go by; each block of rows brings the whole
weight through the caches once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.nest.granularity import BLOCK_ROWS, FEWEST_TASKS, TASK_ELEMENTS
from nanoloom.target.facts import Target


@dataclass(frozen=True)
class Limits:
    """Rows of a block."""

    least: int
    most: int


# As measured: tile registers wait for the cache, vector registers rather for weights:
# those have as many rows as the cache holds, and BLOCK_ROWS at least.
TILES = Limits(BLOCK_ROWS // 4, 2 * BLOCK_ROWS)
WOVEN = Limits(2 * BLOCK_ROWS, 4 * BLOCK_ROWS)  # each block weaves all columns anew
MOST_LOST = 0.02  # of the rows of full tiles
SLACK = 1.6  # a block may be so much larger if it is the only one


def most_rows(
    row_bytes: int, weight: int, target: Target, limits: Limits | None = None
) -> int:
    """The rows that a block should have at most.

    row_bytes: of the left operand.  weight: bytes of all panels.  Those that stay in
    the second-level cache from one block to the next are as near for small ones.
    """
    room = target.caches.resident
    least = limits.least if limits else BLOCK_ROWS
    most = max(least, room // row_bytes)
    if weight <= room:
        return min(most, BLOCK_ROWS)
    return min(most, limits.most) if limits else most


def rows_of_one_panel(extent: int, work: int) -> int:
    """The rows of a block where one panel is all, so that threads have tasks at all.

    work: multiply-adds of all rows.
    """
    least = 64 * TASK_ELEMENTS  # of a task: some ten microseconds
    return -(-extent // max(1, min(FEWEST_TASKS, work // least)))


def row_block(extent: int, rows: int, most: int) -> int:
    """Rows of a task: about `most`, all blocks alike, of whole tiles if that can be.

    A block that is smaller than the others would have its end looked for in all of
    them, which costs more than a tile that is not full.
    """
    if extent <= most * SLACK:
        return extent
    blocks = -(-extent // max(most, rows))
    alike = [n for n in range(blocks, 2 * blocks) if extent % n == 0]
    fewest = min((lost(extent // n, rows), n) for n in alike) if alike else (1.0, 0)
    if fewest[0] <= MOST_LOST:
        return extent // fewest[1]
    return -(-extent // (blocks * rows)) * rows


def lost(block: int, rows: int) -> float:
    """The share of the rows that full tiles would have, and a block has not."""
    whole = -(-block // rows) * rows
    return (whole - block) / whole
