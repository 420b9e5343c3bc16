"""Numbers that change no result of a stage, to fill up rows with."""

from __future__ import annotations

from nanoloom.nest.reduction import KINDS, NO_WORK, OF_PRODUCTS
from nanoloom.nest.statement import Statement


def padding(stage: Statement, axis: str) -> str | None:
    """What operands of a stage are filled up with along an axis, None for nothing.

    Results of points that do not count are dropped: any number is right where no sum
    is made, but one that ends the program as a divisor.
    """
    found = stage.axis(axis)
    assert found is not None, "a stage is asked of its own axes"
    if not found.is_reduction:
        return None if any(map(divides, stage.body)) else "zero"
    if stage.semiring is None or any(axis not in x.axes for x in stage.reads):
        return None
    combine = stage.semiring.combine
    if stage.semiring.product:
        return OF_PRODUCTS.get((combine, stage.semiring.product))
    *before, last = [name for name in stage.body if name not in NO_WORK] or [""]
    if last != combine or len(before) > 1:
        return None
    if before:
        return OF_PRODUCTS.get((combine, before[0]))
    known = combine in KINDS and len(stage.reads) == 1
    return KINDS[combine].neutral if known else None


def divides(name: str) -> bool:
    """Whether an operation divides integers."""
    word = name.rpartition(".")[2]
    return not word.endswith("f") and ("div" in word or "rem" in word)
