"""Products of f32 on a unit of outer products (SME): a task is one nanokernel.

    for task (a block of rows, a panel of columns):
        for tile of the task, as large as the machine's: for k:
            result[rows, columns] += left[rows, k] x right[k, columns]

How large a tile is, nobody knows before the program runs: the nanokernel has the loops
over a task's tiles, and its panels are some tiles wide on any machine.
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import (
    Contraction,
    bits,
    elements,
    lhs_is_k_contiguous,
    roles,
)
from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.families import SIDE, SME, has_family
from nanoloom.schedule.language import ALL, Candidate, Nanokernel, Parallel, Schedule
from nanoloom.schedule.library.contraction import suits
from nanoloom.schedule.library.copy_rhs import is_of_any_length
from nanoloom.schedule.library.panels import (
    is_parameter,
    loop_sizes,
    other_vectors,
    row_of,
    weight_packing,
)
from nanoloom.target.facts import LANE_BITS, WIDEST_BITS, MatrixUnit, Target


def outer_products(
    nest: LoopNest, root: Statement, last: Statement, target: Target
) -> Schedule | None:
    """Blocks of rows and panels of columns in parallel; None for another form."""
    unit, shape = target.matrix, roles(root)
    if unit is None or shape is None or not suits(root, last, shape):
        return None
    if nest.in_front(root.name):
        return None
    packed = is_parameter(nest, root, shape)
    left, right, _ = given = elements(root, shape)
    there = has_family(target, SME, left, right, packed) and given in SME.elements
    if not there or not is_wanted(unit, root, shape, packed):
        return None
    if is_of_any_length(root, shape):
        return None
    columns = panel_columns(shape.extents[shape.column])
    nanokernel = least_tile(unit, root, packed)
    packings = weight_packing(nest, root, shape, columns, SME)
    sizes, _ = loop_sizes(root, last, shape, nanokernel, columns, target)
    behind = other_vectors(nest, root, target)
    words = (*packings, Parallel(last.name, sizes, ALL), nanokernel, *behind)
    reason = f"outer products, panels of {columns} columns: tiles as large as there are"
    return Schedule(words, reason, lambda: [Candidate(words, reason, 1.0)])


def is_wanted(
    unit: MatrixUnit, root: Statement, shape: Contraction, packed: bool
) -> bool:
    """Whether both operands can be read in vectors, and tiles are not mostly empty.

    Rows, columns and steps fill two of the least tiles: what is turned, and stored, for
    a result needs a sum to pay.
    """
    least = SIDE * unit.rows
    row = row_of(shape)
    if row is None or len(shape.reduced) != 1 or not lhs_is_k_contiguous(root, shape):
        return False
    deep = prod(shape.extents[d] for d in shape.reduced) >= least
    wide = shape.extents[shape.column] >= least
    full = shape.extents[row] >= least and deep and wide
    return full and (packed or shape.contiguous)


def least_tile(unit: MatrixUnit, root: Statement, packed: bool) -> Nanokernel:
    """Two by two registers of sums, where the unit's are as small as they may be."""
    lanes = Lanes(unit.row_bytes * bits("u8") // bits("f32"))
    return Nanokernel(2 * unit.rows, 2, lanes, packed, SME.name, root.name)


def panel_columns(extent: int) -> int:
    """Columns of a task: panels alike, as few as there can be.

    A panel has two tiles of the widest vectors at most.
    """
    widest = WIDEST_BITS // bits("f32")
    panels, step = -(-extent // (2 * SIDE * widest)), WIDEST_BITS // LANE_BITS
    return -(-extent // (panels * step)) * step
