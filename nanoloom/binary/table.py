"""A compiled model as a table of kernel calls: what program.c executes.

These dataclasses mirror the structs of nanoloom/runtime/program.h one to one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from nanoloom.binary.repeats import Move, Repeat
from nanoloom.binary.sizes import COUNTED, SizesTable
from nanoloom.errors import Unsupported
from nanoloom.interface.tensor import NONE, Space, Tensor

MAX_TASKS = 2**31 - 1  # the pool counts the tasks of a step in 31 bits
WORD_BYTES = 8  # of what a check looks at


@dataclass(frozen=True)
class Buffer:
    """An operand of a kernel: `offset` bytes into a space.

    `index` says which input or output; it is 0 in the arena and the parameters.
    `slot`: of the arena, where it begins; `word`: of the sizes, added to the offset.
    `state`: words with the bytes of a repeat's state, which are added, in whole lines,
    where the number in the other word is odd (memory/calls.py); () for none.
    """

    space: Space
    offset: int = 0
    index: int = 0
    slot: int = NONE
    word: int = NONE
    state: tuple[int, ...] = ()


@dataclass(frozen=True)
class Step:
    """One kernel call: kernel(buffers, begin, end, scratch), over 0 .. tasks - 1.

    `kernel` is the symbol in an object; `name` is what reports call the step.
    `scratch_bytes`, in whole lines of cache, is what it needs in each thread.
    COUNTED for either: the kernel has a function of its sizes, the words from `word`
    on.
    """

    kernel: str
    tasks: int
    buffers: tuple[Buffer, ...]
    name: str
    scratch_bytes: int = 0
    word: int = NONE

    @property
    def is_counted(self) -> bool:
        return self.tasks == COUNTED

    @property
    def grows(self) -> bool:
        return self.scratch_bytes == COUNTED


@dataclass(frozen=True)
class Check:
    """Indices of one node that must be in low .. high, or the run has failed.

    The kernels leave a word for them in the arena, at `offset`: the index that is
    farthest out; 2 i or -2 i - 1 in place of the index i where low is below 0.
    where: the node; what: the kind of index.
    """

    offset: int
    low: int
    high: int
    where: str
    what: str
    slot: int = NONE
    word: int = NONE


@dataclass(frozen=True)
class Number:
    """How much of an axis of an output counts: the value of one more output."""

    output: int
    axis: int


@dataclass(frozen=True)
class Room:
    """For a size that has no bound and only the data say: the extent of one more input.

    exact: so many are wanted, else at least so many.  needed: which of as many outputs
    says what a run needed.  where: the node.
    """

    exact: bool
    needed: int
    where: str


@dataclass(frozen=True)
class ProgramTable:
    """Everything of a compiled model but its kernels' code and its parameters."""

    steps: tuple[Step, ...]
    arena_bytes: int
    parameter_bytes: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    needs_tiles: bool = False  # kernels use AMX tiles, which Linux hands out on request
    checks: tuple[Check, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    sizes: SizesTable | None = None  # what of all this is known only at run time
    kept: int = 0  # of a session: the last inputs and outputs, which it has itself
    numbers: tuple[Number, ...] = ()  # the last outputs, where there is no session
    rooms: tuple[Room, ...] = ()  # the last inputs, and outputs in front of the numbers
    read: tuple[Buffer, ...] = ()  # by repeats, and what settles behind them

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Those of all steps, and behind them what repeats read."""
        return (*(x for step in self.steps for x in step.buffers), *self.read)

    def with_buffers(self, changed: Callable[[Buffer], Buffer]) -> ProgramTable:
        """The same calls on other memory."""
        steps = (
            replace(step, buffers=tuple(map(changed, step.buffers)))
            for step in self.steps
        )
        read = tuple(map(changed, self.read))
        return replace(self, steps=tuple(steps), read=read)

    @property
    def given(self) -> tuple[Tensor, ...]:
        """The inputs that a caller brings."""
        return self.inputs[: len(self.inputs) - self.kept - len(self.rooms)]

    @property
    def made(self) -> tuple[Tensor, ...]:
        """The outputs that a caller gets."""
        own = self.kept + len(self.numbers) + len(self.rooms)
        return self.outputs[: len(self.outputs) - own]

    def __post_init__(self) -> None:
        last = self.arena_bytes - WORD_BYTES
        for check in self.checks:
            if check.slot == NONE and not 0 <= check.offset <= last:
                raise ValueError(f"{check} lies outside the arena")
        for step in self.steps:
            if not step.kernel.isidentifier() or not step.kernel.isascii():
                raise ValueError(f"step {step.name}: {step.kernel!r} is no C name")
            if step.tasks > MAX_TASKS:
                reason = "has more elements than one run can go through"
                raise Unsupported(reason, where=step.name)
            if step.tasks <= 0 and not step.is_counted:
                raise ValueError(f"step {step.name}: {step.tasks} tasks")
            for buffer in step.buffers:
                self._check(step.name, buffer)
        self._check_repeats()

    @property
    def scratch_bytes(self) -> int:
        """What each thread needs for the steps that several run."""
        steps = enumerate(self.steps)
        several = (x.scratch_bytes for i, x in steps if x.tasks > 1 or i in self.beside)
        return max(several, default=0)

    @property
    def beside(self) -> set[int]:
        """The numbers of the steps that run beside others."""
        pairs = [(x, y) for x, y in pairwise(self.repeats) if y.beside]
        return {i for pair in pairs for x in pair for i in range(x.first, x.end)}

    @property
    def alone_bytes(self) -> int:
        """What the calling thread needs for the other steps."""
        return max((x.scratch_bytes for x in self.steps if x.tasks == 1), default=0)

    def _check(self, name: str, buffer: Buffer) -> None:
        """A buffer that begins outside its space would be a wild pointer."""
        if self.sizes and buffer.space is not Space.PARAMETERS:
            return  # nobody knows yet how large the others are
        match buffer.space:
            case Space.ARENA:
                sizes = [self.arena_bytes]
            case Space.PARAMETERS:
                sizes = [self.parameter_bytes]
            case Space.INPUT:
                sizes = [tensor.bytes for tensor in self.inputs]
            case Space.OUTPUT:
                sizes = [tensor.bytes for tensor in self.outputs]
            case Space.SIZES:
                sizes = []
        inside = 0 <= buffer.index < len(sizes)
        if not inside or not 0 <= buffer.offset <= sizes[buffer.index]:
            raise ValueError(f"step {name}: {buffer} lies outside its space")

    def _check_repeats(self) -> None:
        """What repeats read, and where they move."""
        for buffer in self.read:
            self._check("repeat", buffer)
        for repeat in self.repeats:
            for move in repeat.moves:
                self._check_move(repeat, move)

    def _check_move(self, repeat: Repeat, move: Move) -> None:
        """Nor may it lie outside in the last trip."""
        if move.step == NONE:
            name, buffer = "repeat", self.read[move.operand]
        elif repeat.first <= move.step < repeat.end <= len(self.steps):
            step = self.steps[move.step]
            name, buffer = step.name, step.buffers[move.operand]
        else:
            raise ValueError(f"{repeat} moves an operand of a step outside of it")
        moved = buffer.offset + move.farthest(repeat.trips)
        self._check(name, replace(buffer, offset=moved))
