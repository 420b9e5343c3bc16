"""What the kernels stage gives: kernels, each made once, and their calls in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import prod

from nanoloom.interface.bounds import Bounds
from nanoloom.kernels.memory_plan import rounded
from nanoloom.linalg.builder.checks import Limits
from nanoloom.linalg.stage import Spec
from nanoloom.nest.nest import LoopNest
from nanoloom.sizes.floor_division import Floor
from nanoloom.sizes.polynomial import Size
from nanoloom.weights.weight import Weight

NONE = -1  # in the place of the number of a word of the sizes


class Storage(Enum):
    """Where a buffer of the program lives."""

    ARENA = "arena"
    PARAMETER = "parameter"
    INPUT = "input"
    OUTPUT = "output"
    SIZES = "sizes"


@dataclass(frozen=True)
class State:
    """Which of its two places a repeat's state lies in, one behind the other.

    bytes: of the state.  trips: behind so many it lies there: in the first place where
    the number is even.  moves: in the other one in the next trip.  words: which of the
    program's sizes bytes and trips are; () for numbers.
    """

    bytes: int
    trips: int
    moves: bool = True
    words: tuple[int, ...] = ()

    @property
    def begin(self) -> int:
        """Bytes to the place."""
        return rounded(self.bytes) * (self.trips % 2)

    @property
    def stride(self) -> int:
        """Bytes from there to the other one."""
        return rounded(self.bytes) - 2 * self.begin


@dataclass(frozen=True)
class Place:
    """One buffer: which input, output or parameter, which arena buffer or size.

    offset: bytes from its beginning to where a kernel's argument begins; in a repeat,
    in its first trip, and `stride` bytes further in each other one.  word, stride_word:
    of the program's sizes, so many bytes more, and what the stride is times; NONE for
    none.  state: of a buffer with two places, which of them.
    """

    storage: Storage
    index: int
    offset: int = 0
    stride: int = 0
    word: int = NONE
    stride_word: int = NONE
    state: State | None = None

    @property
    def begin(self) -> int:
        """The offset in the buffer where no size decides about it."""
        return self.offset + (self.state.begin if self.state else 0)


@dataclass(frozen=True)
class Kernel:
    """One function on tensors, as text.

    text: a module with `func.func @kernel(inputs..., results...) -> results`.
    nest: its loops, from which a schedule is chosen.  root: what it is made around.
    constants: which arguments are parameters, so that a schedule may pack them.
    shapes: of the arguments.  tables: which of them are looked up: a run reads some
    elements of them, at places that are computed.
    """

    name: str
    text: str
    root: str
    nest: LoopNest
    constants: tuple[bool, ...]
    shapes: tuple[tuple[int, ...], ...]
    tables: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Call:
    """One kernel at work: arguments in order, the results last.

    layer: the node that it is named for; nodes: all whose operations are in it.
    shapes: of the arguments where they are not the kernel's own, which is one of
    several depths (share_across_k.py).
    """

    kernel: str
    arguments: tuple[Place, ...]
    layer: str
    shapes: tuple[tuple[int, ...], ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Word:
    """Where a check's result lies when the program has run.

    buffer: which arena buffer; number: which of the words in it.  extent: which of the
    program's sizes the axis is that the indices are of; NONE for a number.
    """

    limits: Limits
    buffer: int
    number: int
    extent: int = NONE


@dataclass(frozen=True)
class ProgramSizes:
    """What of a program is known only when it runs (kernels/dynamic_program.py).

    dims: names of the dimensions.  words: sizes that are evaluated for it.  buffers: of
    the arena, which words say their bytes; such buffers are slots, one behind the
    other.  inputs, outputs: which word each axis is, NONE for a number.  bounds: of
    each dimension.  floors: of dimensions, which words have as factors.
    """

    dims: tuple[str, ...]
    words: tuple[Size, ...]
    buffers: tuple[tuple[int, ...], ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    bounds: tuple[Bounds, ...]
    floors: tuple[Floor, ...] = ()


@dataclass(frozen=True)
class Until:
    """What a repeat looks at while it runs, of which only a run knows the trips.

    limit: int64, how many trips there are at most, read in front of the first one.
    flag: bool, read in front of each: whether it runs.  states: brought to their first
    place behind all trips, as nobody knows in which of the two the last one lies.
    """

    limit: Place | None
    flag: Place | None
    states: tuple[Place, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        read = (x for x in (self.limit, self.flag) if x is not None)
        return (*read, *self.states)

    def changed(self, change: Callable[[Place], Place]) -> Until:
        """The same, looking elsewhere."""
        given = self.limit, self.flag
        limit, flag = (None if x is None else change(x) for x in given)
        return Until(limit, flag, tuple(map(change, self.states)))


@dataclass(frozen=True)
class Repeated:
    """The calls first ... first + count - 1 run `trips` times in a row.

    word: which of the program's sizes the trips are; NONE for a number.  beside: they
    may run at the same time as the repeat whose calls end where these begin.  points:
    of all loops of one trip, or the word with them; 0 where nobody knows.  within: a
    word, and what it must be for them to run at all.  until: where they may be fewer.
    """

    first: int
    count: int
    trips: int
    word: int = NONE
    beside: bool = False
    points: int = 0
    points_word: int = NONE
    within: tuple[int, Bounds] | None = None
    until: Until | None = None

    def __contains__(self, call: int) -> bool:
        return self.first <= call < self.first + self.count


@dataclass(frozen=True)
class Program:
    """A model as kernel calls in order, some of them repeated.

    buffers: bytes of each arena buffer; offsets: its place in the arena.
    checks: what must be in range when all calls are done, in the order of the nodes.
    sizes: of a program for all shapes; offsets are those of its buffers' slots then.
    """

    kernels: dict[str, Kernel]
    calls: tuple[Call, ...]
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    parameters: tuple[Weight, ...]
    buffers: tuple[int, ...]
    offsets: tuple[int, ...]
    arena_bytes: int
    checks: tuple[Word, ...] = ()
    repeats: tuple[Repeated, ...] = ()
    sizes: ProgramSizes | None = None

    @property
    def points(self) -> int:
        """How often the innermost bodies of all calls run, one call after the other."""
        stages = [s for c in self.calls for s in self.kernels[c.kernel].nest.stages]
        rows = [[n for n in s.extents if isinstance(n, int)] for s in stages]
        return sum(map(prod, rows))

    def trips(self, call: int) -> int:
        """How often a call runs at most."""
        return prod(x.trips for x in self.repeats if call in x)
