"""What is made point by point in front of a product, a block of its rows at a time.

    for block of rows (a task):
        t = f(x)                                      a normalization, a gate
        for panel of columns: for tile of rows: y = t w

The block stays in the second-level cache while the panels go by, and is made once.
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import Contraction, bits
from nanoloom.nest.granularity import FEWEST_TASKS
from nanoloom.target.facts import Cache

BYTES = bits("f32") // bits("u8")


def max_rows(shape: Contraction, cache: Cache) -> int:
    """Rows that a block should have at most."""
    rows, depth = points(shape, shape.rows), points(shape, shape.reduced)
    return min(cache.panel // (depth * BYTES), rows // FEWEST_TASKS)


def is_profitable(shape: Contraction, cache: Cache) -> bool:
    """Whether blocks of rows take no more of memory than they spare it.

    Weights that outweigh the second-level cache come through it again for every block.
    What that cache holds from one kernel to the next is as near there as in a block:
    measured on AVX-512, DenseNet-121 is within 1 % of its time either way, and has no
    pass and no place in memory for it.
    """
    rows, depth = points(shape, shape.rows), points(shape, shape.reduced)
    made, weights = rows * depth * BYTES, depth * points(shape, (shape.column,)) * BYTES
    block = max_rows(shape, cache)
    if block < 1:
        return False
    again = (-(-rows // block) - 1) * max(0, weights - cache.resident)
    return 2 * made > again


def points(shape: Contraction, axes: tuple[int, ...]) -> int:
    return prod(shape.extents[axis] for axis in axes)
