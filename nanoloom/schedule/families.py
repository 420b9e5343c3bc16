"""Families of nanokernels: what each multiplies, and what a step of it costs."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.schedule.step_cost import FMA, StepCost

BYTES = tuple((a, b, "i32") for a in ("s8", "u8") for b in ("s8", "u8"))
HALVES = (("bf16", "bf16", "f32"),)
FLOATS = (
    ("f32", "f32", "f32"),
    ("f64", "f64", "f64"),
    ("bf16", "bf16", "f32"),
    ("f16", "f16", "f32"),
)


@dataclass(frozen=True)
class Family:
    """A nanokernel's instructions.

    elements: of the left and right operand and of the sums.  group: so many steps of
    the last reduced dimension lie together in a panel.  needs: extensions, () for any.
    flat: whether it reads right operands that are not packed, too.
    """

    name: str
    elements: tuple[tuple[str, str, str], ...]
    group: int
    cost: StepCost = FMA
    flat: bool = True


FMA_FAMILY = Family("fma", FLOATS, 1)
AMX_FAMILY = Family("amx", HALVES, 2, flat=False)
BF16_DOT = Family("bf16-dot", HALVES, 2)
# Even and odd numbers are converted as they are loaded: two loads for each of them.
BF16_CONVERT = Family(
    "bf16-convert", HALVES, 2, StepCost(2, right_loads=2, left_loads=2), flat=False
)
# A shift or an and for each half, a mask in a register beside them.
BF16_HALVES = Family(
    "bf16-halves",
    HALVES,
    2,
    StepCost(2, 2, 2, right_registers=2, others=3, chain=2),
    flat=False,
)
INT8_DOT = Family("int8-dot", BYTES, 4)
# Two multiplications and two additions; three shifts make the pairs of an operand.
INT8_PAIRS = Family(
    "int8-pairs", BYTES, 4, StepCost(4, 3, 3, right_registers=2, others=3)
)
INT8_LANES = Family("int8-lanes", BYTES, 1, StepCost(2, 1, 1, others=2))
FAMILIES = {
    family.name: family
    for family in (
        FMA_FAMILY, AMX_FAMILY, BF16_DOT, BF16_CONVERT, BF16_HALVES, INT8_DOT,
        INT8_PAIRS, INT8_LANES,
    )
}  # fmt: skip
