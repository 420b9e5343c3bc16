"""What the kernels stage gives: kernels, each made once, and their calls in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from nanoloom.dynamic.floor_division import Floor
from nanoloom.dynamic.polynomial import Size
from nanoloom.interface.bounds import Bounds
from nanoloom.linalg.builder.checks import Limits
from nanoloom.linalg.stage import Spec
from nanoloom.memory.calls import NONE, Call, Repeated
from nanoloom.nest.nest import LoopNest
from nanoloom.weights.weight import Weight


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
class Program:
    """A model as kernel calls in order, some of them repeated.

    buffers: bytes of each arena buffer; offsets: its place in the arena.
    checks: what must be in range when all calls are done, in the order of the nodes.
    sizes: of a program for all shapes; offsets are those of its buffers' slots then.
    apart: of buffers, why what reads each is not one kernel with what makes it.
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
    apart: Mapping[int, str] = field(default_factory=dict[int, str])

    @property
    def points(self) -> int:
        """How often the innermost bodies of all calls run, one call after the other."""
        stages = [s for c in self.calls for s in self.kernels[c.kernel].nest.stages]
        rows = [[n for n in s.extents if isinstance(n, int)] for s in stages]
        return sum(map(prod, rows))

    def trips(self, call: int) -> int:
        """How often a call runs at most."""
        return prod(x.trips for x in self.repeats if call in x)
