"""Products whose operands lie along the sum: its steps are lanes of vectors.

    for task (columns):
        for tile of rows and columns:
            for k by a vector: sums[row, column] += left[row, k..] * right[column, k..]
            result[row, column] = all lanes of sums[row, column], four columns at once

For few rows, which would not pay for a right operand that is turned first: each number
of it is read once, as it lies.
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import Contraction, bits, lanes_along_k, roles
from nanoloom.nest.granularity import JAMMED, TASK_ELEMENTS
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import (
    ALL,
    Directive,
    Parallel,
    Schedule,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.schedule.library.contraction import suits
from nanoloom.schedule.library.vectors import is_scalable, lanes_of, vectors, width
from nanoloom.target.facts import LANE_BITS, Target


def small_m(
    nest: LoopNest, root: Statement, last: Statement, target: Target
) -> Schedule | None:
    """Columns in parallel, and tiles of sums along the vectors; None for others."""
    shape = roles(root)
    if shape is None or not lanes_along_k(root, shape):
        return None
    if not suits(root, last, shape):
        return None
    depth = prod(shape.extents[d] for d in shape.reduced)
    task = dict.fromkeys(shape.shared, 1) | {
        shape.column: max(1, TASK_ELEMENTS // depth)
    }
    rest = [stage for stage in nest.stages if stage != root]
    words = (
        Parallel(last.name, shape.sizes(task, own=root == last), ALL),
        *lanes_and_tile(root, shape, target),
        *vectors(rest, target),
    )
    return schedule_of(nest, target, (words, "few rows: lanes along the sum"))


def lanes_and_tile(
    root: Statement, shape: Contraction, target: Target
) -> tuple[Directive, ...]:
    """The words for a product's own loops: lanes, then points side by side."""
    names, along = root.names, shape.reduced[-1]
    scalable = is_scalable(root, along, target)
    lanes = lanes_of(root, target)
    if not scalable:  # of short sums no more than are filled
        filled = 1 << (shape.extents[along] - 1).bit_length()
        lanes = min(lanes, max(LANE_BITS // bits("f32"), filled))
    words: list[Directive] = [
        Vectorize(root.name, names[along], width(lanes, scalable))
    ]
    half = target.vector.registers // 2  # the others are for what is read
    left = min(half, JAMMED)
    for row in reversed(shape.rows):
        count = min(shape.extents[row], left)
        count = 3 if shape.extents[row] % 3 == 0 and count == JAMMED else count
        if count > 1:
            words.append(UnrollAndJam(root.name, names[row], count))
        half, left = half // count, left // count
    columns = max(1, min(half, JAMMED, shape.extents[shape.column]))
    if columns > 1:
        words.append(UnrollAndJam(root.name, names[shape.column], columns))
    return tuple(words)
