"""An instruction that the compiler names itself, as a value.

Its meaning is a few lines of numpy (meanings.py).  The tests run each instruction
against them, on this machine or under an emulator, and run code for CPUs that they do
not have with the meanings in place of the instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nanoloom.target.facts import Target

LANE = 32  # bits of a sum
BITS = {
    "s8": 8,
    "u8": 8,
    "b8": 8,  # eight numbers of a bit
    "s16": 16,
    "f16": 16,
    "bf16": 16,
    "s32": 32,
    "f32": 32,
    "f64": 64,
}
# Numbers that fill a lane.
GROUP = {name: LANE // bits for name, bits in BITS.items() if bits <= LANE}

INTEGER_ADDITION = 1  # cycles, of vectors: of every CPU that is named here

# Arrays of the operands' numbers, flat; what they give is flat as well.
Meaning = Callable[..., Any]


@dataclass(frozen=True)
class Instruction:
    """One instruction on registers of `bits`; of each vscale where it is scalable.

    name: the assembler's.  needs: extensions, all of them.  function: how it is
    emitted, an LLVM intrinsic or an operation of MLIR's x86 dialect; intrinsic: what
    the latter becomes.  meaning: the reference loop, None for what moves tiles or turns
    them on.
    result, operands: types in the order of the arguments.  "f32*16" is a register of
    sixteen, "i8" a number or an immediate one, "bf16*16&" numbers in memory, "tile" a
    tile register, "i1*16" a mask.

    Of sums of products, left, right and sums are the types of the numbers.  shape: m, n
    and k of what it computes in each block of a register; a dot product's is a lane.
    swaps: the operands may change places, where the types say so.  lanes: so many
    numbers of one operand are in each block of a register, and a product is by one of
    them, the last word says by which; 0 where all are multiplied.  most: steps that its
    sums hold, each number of a group its own, which are narrower than the result's; 0
    for as many as there are.
    words: numbers behind the operands, 64 bits each: roundings, lanes.
    per_cycle: how many a core begins in a cycle, 0 where that is as multiply-adds of
    the same registers; a CPU where it is not has its own rate (VectorUnit.rates).
    latency: cycles from the sums that it adds to until the new ones, 0 where nothing
    else is known than that of multiply-adds; a CPU has its own (VectorUnit.latencies).
    """

    name: str
    needs: tuple[str, ...]
    function: str
    meaning: Meaning | None
    result: str = ""
    operands: tuple[str, ...] = ()
    bits: int = 0
    left: str = ""
    right: str = ""
    sums: str = ""
    shape: tuple[int, int, int] = (0, 0, 0)
    scalable: bool = False
    swaps: bool = True
    lanes: int = 0
    most: int = 0
    intrinsic: str = ""
    words: tuple[int, ...] = ()
    per_cycle: float = 0
    latency: float = 0

    def is_of(self, target: Target) -> bool:
        """Whether a target has it."""
        return target.has(*self.needs)

    def rate(self, target: Target) -> float:
        """How many a core of a target begins in a cycle."""
        unit = target.vector
        own = dict(unit.rates).get(self.name)
        return own or self.per_cycle or unit.fma_per_cycle

    def waits(self, target: Target) -> float:
        """Cycles until its sums can be added to again, on a target.

        Integers that it does not add itself are added behind it: sums wait for that
        addition alone.
        """
        if not self.accumulates:
            return INTEGER_ADDITION
        own = dict(target.vector.latencies).get(self.name)
        return own or self.latency or target.vector.fma_latency

    @property
    def group(self) -> int:
        """Steps of a sum that are one: numbers that lie together in an operand."""
        return self.shape[2]

    @property
    def rows(self) -> int:
        """Rows of sums that are one."""
        return self.shape[0]

    @property
    def steps(self) -> int:
        """Steps of a sum of which a load of a row has the numbers."""
        return self.lanes or self.group

    @property
    def accumulates(self) -> bool:
        """Whether it adds its products to sums, which are one of its operands."""
        return self.result in self.operands

    @property
    def layout(self) -> str:
        """How the operands' numbers lie."""
        m, n, k = self.shape
        if self.lanes:
            return "lanes"
        return "tile" if m * n > 1 else {1: "flat", 2: "pairs", 4: "quads"}.get(k, "")


# Which number an instruction or an operation gives where an operand is NaN.
KEPT, OTHER, SECOND = "kept", "other", "second"


@dataclass(frozen=True)
class Extreme:
    """The larger or the smaller of two floats by an instruction.

    word: "max" or "min".  element: the numbers' type, "" for any.  nan: what it gives
    where one is NaN: KEPT is NaN, OTHER the number, SECOND the second operand, of zeros
    as well; with the others -0.0 is below 0.0.
    words: of its immediate operands.  operation: of MLIR's arith dialect, of which LLVM
    makes the instruction for any vector; the instruction itself is emitted without it.
    beside: where LLVM does not find it by itself: beside a constant or without one;
    None: either.
    """

    word: str
    element: str
    instruction: Instruction
    nan: str
    words: tuple[int, ...] = ()
    operation: str = ""
    beside: bool | None = None


def instruction(
    name: str,
    needs: str,
    function: str,
    types: str,
    meaning: Meaning | None,
    bits: int = 0,
    *,
    scalable: bool = False,
    words: tuple[int, ...] = (),
) -> Instruction:
    """An instruction by its types: "result <- operand operand ..."."""
    result, _, operands = types.partition("<-")
    return Instruction(
        name,
        tuple(needs.split()),
        function,
        meaning,
        result.strip(),
        tuple(operands.split()),
        bits,
        scalable=scalable,
        words=words,
    )


def sums_of_products(
    name: str,
    needs: str,
    types: str,
    bits: int,
    function: str,
    meaning: Meaning,
    shape: tuple[int, int, int] | None = None,
    *,
    scalable: bool = False,
    accumulates: bool = True,
    intrinsic: str = "",
    latency: float = 0,
) -> Instruction:
    """An instruction that adds products of two registers to a third one's lanes.

    types: of the left and right operand's numbers, and of the sums.  accumulates: it
    adds to sums; else its products are all of them.
    """
    left, right, sums = types.split()
    total, *given = (f"{x}*{bits // BITS[x]}" for x in (sums, left, right))
    return Instruction(
        name,
        tuple(needs.split()),
        function,
        meaning,
        total,
        (total, *given) if accumulates else (*given,),
        bits,
        left,
        right,
        sums,
        shape or (1, 1, GROUP[left]),
        scalable,
        intrinsic=intrinsic,
        latency=latency,
    )
