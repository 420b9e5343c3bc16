"""Sums of which an instruction adds several steps at once, in scalable vectors.

    sums[c] += a[k] * b[k, c] + ... + a[k + 3] * b[k + 3, c]

SVE has such for bytes, and for pairs of bf16.  Rows of b are whole registers, four
numbers of a column are in a lane once they are woven: as many registers of sums are one
vector.  Weights are woven while compiling, in panels of a task's columns; with i8mm and
bf16 for two rows at once, twice as many steps, with f32mm two steps of f32.
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.nest.contraction import Contraction, lhs_is_k_contiguous, roles
from nanoloom.nest.granularity import JAMMED
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.families import BYTES, INT8_DOT, PAIRS
from nanoloom.schedule.library.panels import is_parameter, weight_packing
from nanoloom.schedule.library.product_form import Form
from nanoloom.schedule.packing import Pack
from nanoloom.schedule.step_cost import StepCost
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import (
    MATRIX_ROWS,
    DotUse,
    scalable_dot,
    scalable_matrix,
)

SINGLES = ("f32", "f32", "f32")


def grouped(stage: Statement, target: Target) -> int:
    """Steps of the innermost sum that are one, 1 where each is for itself."""
    use = use_of(stage, target)
    return 1 if use is None else use.dot.group


def whole_groups(stage: Statement, target: Target) -> int:
    """Steps of a part of a sum are a multiple of this, for one row and for two."""
    group = grouped(stage, target)
    return MATRIX_ROWS * group if group > 1 or has_matrices(stage, target) else 1


def has_matrices(stage: Statement, target: Target) -> bool:
    """Whether an instruction multiplies two rows at once by a weight."""
    shape = shape_of(stage)
    if shape is None or not lhs_is_k_contiguous(stage, shape):
        return False
    kinds = (stage.reads[n].element for n in (shape.left, shape.right))
    return scalable_matrix(target, *kinds) is not None


def step_cost(stage: Statement, target: Target, woven: int = 0) -> StepCost | None:
    """What such a group of steps costs.

    Of inverted signs an exclusive or for each row, and sums of b beside the others.
    woven: so many steps of the weight lie together, 0 where rows of b are as they are.
    """
    use = use_of(stage, target)
    if woven > grouped(stage, target):
        # Of two rows an instruction for twice as many steps: loads, and a shuffle.
        return StepCost(left=1 / MATRIX_ROWS, right_loads=MATRIX_ROWS, others=4)
    if use is None:
        return None
    flips = int(use.flipped)
    if woven:
        # Sums that LLVM moves between fdot: with fewer registers beside it spills some.
        others = 5 if use.dot.left == "f16" else 3
        return StepCost(left=flips, right_registers=1 + flips, others=others)
    shuffles = use.dot.group // 2  # eight weave four rows of four registers
    return StepCost(left=flips, right=shuffles, right_registers=2 + flips, others=3)


def interleaved_steps(nest: LoopNest, form: Form, target: Target) -> int:
    """So many steps of a weight lie together, 0 where the right operand is none.

    Of pixels side by side that are steps of one sum, no operand says how many there
    are but a weight as it is.
    """
    stage, group = form.stage, grouped(form.stage, target)
    shape, pairs = shape_of(stage), has_matrices(stage, target) and bool(form.row)
    if shape is None or not (group > 1 or pairs):
        return 0
    if not is_parameter(nest, stage, shape):
        return 0
    if stage.reads[shape.left].plain[-1] != stage.names[shape.reduced[-1]]:
        return 0
    if pairs and shape.extents[shape.reduced[-1]] >= MATRIX_ROWS * group:
        return MATRIX_ROWS * group
    return group if group > 1 else 0


def grouped_in_iteration(nest: LoopNest, form: Form, target: Target) -> int:
    """Steps that stand behind each other, 1 where each is for itself.

    Of woven weights several groups: addresses of rows move on once for all of them.  Of
    two rows at once one, whose loads take the registers that sums leave.
    """
    group = grouped(form.stage, target)
    woven = interleaved_steps(nest, form, target)
    return JAMMED * group if woven == group > 1 else max(woven, group)


def panels(
    nest: LoopNest, form: Form, steps: int, columns: int, unit: int
) -> tuple[Pack, int]:
    """How a weight is woven, and how many columns a panel has.

    steps: that lie together.  columns: that a task has at most; panels are alike, their
    rows as many units.  What has no rows is read once, by tasks of several panels: all
    columns are one.
    """
    shape, extent = roles(form.stage), form.extent(form.column)
    assert shape is not None, "woven_steps lets no other pass"
    count = -(-extent // columns) if form.row else 1
    each = -(-extent // (count * unit)) * unit
    (packing,) = weight_packing(nest, form.stage, shape, each, INT8_DOT)
    return replace(packing, group=steps), each if form.row else columns


def use_of(stage: Statement, target: Target) -> DotUse | None:
    """The instruction, if groups of the left operand's numbers lie together."""
    shape = shape_of(stage)
    if shape is None or not lhs_is_k_contiguous(stage, shape):
        return None
    left, right = (stage.reads[n].element for n in (shape.left, shape.right))
    use = scalable_dot(target, left, right)
    if use is None or shape.extents[shape.reduced[-1]] < use.dot.group:
        return None
    return use


def shape_of(stage: Statement) -> Contraction | None:
    """The roles of a product of such numbers with rows of its right operand as they
    lie."""
    kinds = tuple(x.element for x in (*stage.reads, *stage.writes))
    if not stage.is_contraction or kinds not in (*BYTES, *PAIRS, SINGLES):
        return None
    shape = roles(stage)
    return shape if shape is not None and shape.contiguous else None
