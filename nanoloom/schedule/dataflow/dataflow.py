"""A dataflow of a convolution as a value: which numbers stay in registers.

After "YFlows: Systematic Dataflow Exploration and Code Generation for Efficient Neural
Network Inference using SIMD Architectures on CPUs" (Zhou et al.).
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.language import Schedule
from nanoloom.target.facts import Target

KINDS = ("output", "weight", "input")
LOOPS = ("groups", "channels", "filters")
SIZES = (1, 2, 4)  # registers of a vector variable: a vector has a power of two lanes
MOST_UNROLL = 64
MOST_VARIABLES = 1024  # far beyond any core's registers
MOST_POINTS = 2**31 - 1
HINT = 'as in "output; weight 4; input 2"'


@dataclass(frozen=True)
class Dataflow:
    """anchor: all that one of its numbers takes part in is computed before the next one
    is read: "output", "weight" or "input".  resident: how many vector variables others
    have, to stay in from one use to the next, in the order of allocation.  registers:
    of a vector variable.  unroll: steps of the innermost loop over pixels behind each
    other (secondary unrolling), 0 for as many as registers need to be renamed, not
    moved.  order: the loops outside of the pixels, outermost first.  block: of the
    outermost axes of pixels, how many points a task has, () for a choice, 0 for all.
    """

    anchor: str
    resident: tuple[tuple[str, int], ...] = ()
    registers: int = 1
    unroll: int = 0
    order: tuple[str, ...] = LOOPS
    block: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.require_operands()
        if self.registers not in SIZES:
            self.refuse(
                f"a vector variable has 1, 2 or 4 registers, not {self.registers}"
            )
        if not 0 <= self.unroll <= MOST_UNROLL:
            self.refuse(f"unroll is {self.unroll}: 0 to {MOST_UNROLL} is wanted")
        if sorted(self.order) != sorted(LOOPS):
            self.refuse(f"order has each of {', '.join(LOOPS)} once")
        if any(size < 0 for size in self.block):
            self.refuse(f"block is {self.block}: no number is below 0")
        if any(size > MOST_POINTS for size in self.block):
            self.refuse(f"block is {self.block}: {MOST_POINTS} points at most")

    def require_operands(self) -> None:
        """Each has a name of KINDS, once, and a number of variables that may be."""
        kinds = ", ".join(KINDS)
        names = [name for name, _ in self.resident]
        for name in (self.anchor, *names):
            if name not in KINDS:
                self.refuse(f"{name!r} is none of {kinds}")
        if self.anchor in names:
            self.refuse(f"{self.anchor} is the anchor: it has one variable already")
        if len(set(names)) < len(names):
            self.refuse("an operand is named twice")
        if any(count < 1 for _, count in self.resident):
            self.refuse("an operand has one vector variable at least, or is left out")
        if any(count > MOST_VARIABLES for _, count in self.resident):
            self.refuse(f"an operand has {MOST_VARIABLES} vector variables at most")

    def refuse(self, reason: str) -> None:
        raise Error(reason, where="dataflow", hint=HINT)

    @property
    def variables(self) -> int:
        """Vector variables in all: one of each operand, and those that are kept."""
        return len(KINDS) + sum(count for _, count in self.resident)

    def count(self, operand: str) -> int:
        """How many vector variables of an operand stay."""
        return dict(self.resident).get(operand, 0)

    def schedule_of(self, nest: LoopNest, target: Target) -> Schedule:
        """The words that make a kernel by this dataflow.

        Raises Error where the kernel is no convolution that dataflows know.
        """
        from nanoloom.schedule.dataflow.scheduled import schedule_dataflow

        return schedule_dataflow(self, nest, target)

    def __str__(self) -> str:
        """As `parse` reads it."""
        words = [self.anchor, *(f"{name} {count}" for name, count in self.resident)]
        words += [f"registers {self.registers}"] if self.registers > 1 else []
        words += [f"unroll {self.unroll}"] if self.unroll else []
        words += [f"order {' '.join(self.order)}"] if self.order != LOOPS else []
        words += [f"block {' '.join(map(str, self.block))}"] if self.block else []
        return "; ".join(words)


def parse(text: str) -> Dataflow:
    """A dataflow as it prints: "output; weight 4; input 2; registers 2".

    Raises Error, with what is wrong, for anything else.
    """
    anchor, *rest = [part.split() for part in text.split(";")]
    if len(anchor) != 1:
        raise Error(f"{text!r} begins with no anchor", where="dataflow", hint=HINT)
    kept: list[tuple[str, int]] = []
    fields: dict[str, object] = {}
    for part in rest:
        if part and part[0] in fields:
            raise Error(f"{part[0]} stands twice", where="dataflow", hint=HINT)
        match part:
            case ["order", *names]:
                fields["order"] = tuple(names)
            case ["block", first, *sizes]:
                fields["block"] = tuple(map(number, (first, *sizes)))
            case ["registers" | "unroll" as name, size]:
                fields[name] = number(size)
            case [name, count]:
                kept.append((name, number(count)))
            case _:
                reason = f"{' '.join(part)!r} is no operand with a number"
                raise Error(reason, where="dataflow", hint=HINT)
    return Dataflow(anchor[0], tuple(kept), **fields)  # type: ignore[arg-type] - the class checks them


def number(text: str) -> int:
    """A number; Error for anything else."""
    if not text.isdecimal():
        reason = f"{text!r} is no number from 0 on"
        raise Error(reason, where="dataflow", hint=HINT)
    return int(text)
