"""Products of 16-bit floats on vectors of any width: what is widened, and where.

A task copies both operands as f32, once for all of its tiles: to widen numbers as they
are loaded would be to do so for each tile, and take registers from its sums.  Of a
single row, the columns' numbers are read once, and widened there.
"""

from __future__ import annotations

from collections.abc import Iterator

from nanoloom.nest.contraction import bits
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import CopyOperand
from nanoloom.schedule.library.k_groups import grouped
from nanoloom.schedule.library.product_form import Form
from nanoloom.schedule.library.vectors import GROUPED, HALVES, width
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import widens_products


def is_widened(stage: Statement, target: Target) -> bool:
    """Whether a product is of such numbers, and of vectors of any width; no
    instruction adds one of them to f32, or several at once."""
    halves = any(x.element in HALVES for x in stage.reads)
    wide = halves and stage.is_contraction and target.vector.any_length
    alone = not all(widens_products(target, x.element) for x in stage.reads)
    return wide and alone and grouped(stage, target) == 1


def wide_copies(form: Form, target: Target) -> Iterator[CopyOperand]:
    """Operands that a task copies as f32."""
    lanes = width(
        target.lanes(bits("f32")) * min(GROUPED, target.vector.grouped), scalable=True
    )
    if not is_widened(form.stage, target):
        return
    for number in range(len(form.stage.reads)):
        if number not in form.right or form.row:
            yield CopyOperand(form.stage.name, number, lanes, wide=True)
