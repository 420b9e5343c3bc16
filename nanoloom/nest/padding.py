"""Numbers that change no result of a stage, to fill up rows with."""

from __future__ import annotations

from nanoloom.nest.stage import Stage

NUMBERS = ("zero", "one", "ones", "highest", "lowest")
# What a sum begins with, by how it combines: the number that changes nothing.
NEUTRAL = {
    "addf": "zero", "addi": "zero", "mulf": "one", "muli": "one",
    "maximumf": "lowest", "maxnumf": "lowest", "maxsi": "lowest", "maxui": "zero",
    "minimumf": "highest", "minnumf": "highest", "minsi": "highest", "minui": "ones",
    "andi": "ones", "ori": "zero", "xori": "zero",
}  # fmt: skip
# Of both operands of a product, by how it combines and what it is.
OF_PRODUCTS = {
    ("addf", "mulf"): "zero", ("addi", "muli"): "zero",
    ("minimumf", "addf"): "highest", ("minnumf", "addf"): "highest",
    ("maximumf", "addf"): "lowest", ("maxnumf", "addf"): "lowest",
}  # fmt: skip
WIDENING = ("arith.extf", "arith.extsi", "arith.extui", "arith.constant")


def padding(stage: Stage, axis: str) -> str | None:
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
    combine = stage.semiring.combine.rpartition(".")[2]
    if stage.semiring.product:
        product = stage.semiring.product
        return OF_PRODUCTS.get((combine, product.rpartition(".")[2]))
    *before, last = [name for name in stage.body if name not in WIDENING] or [""]
    if last != stage.semiring.combine or len(before) > 1:
        return None
    if before:
        return OF_PRODUCTS.get((combine, before[0].rpartition(".")[2]))
    return NEUTRAL.get(combine) if len(stage.reads) == 1 else None


def divides(name: str) -> bool:
    """Whether an operation divides integers."""
    word = name.rpartition(".")[2]
    return not word.endswith("f") and ("div" in word or "rem" in word)
