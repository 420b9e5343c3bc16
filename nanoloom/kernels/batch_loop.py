"""A program of one row of a batch, run for each row of any batch.

In:  the program of a model bound to a batch of 1.
Out: the same calls in parts (row_parts.py), each repeated for all rows before the next
     one; inputs, outputs and what parts hand on are a row further each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.polynomial import Size, number
from nanoloom.interface.bounds import Bounds
from nanoloom.kernels.program import Program, ProgramSizes
from nanoloom.kernels.row_parts import crossing, row_parts
from nanoloom.linalg.stage import Spec
from nanoloom.memory.calls import NONE, Call, Place, Repeated, Storage
from nanoloom.memory.dynamic_memory_plan import slots_of
from nanoloom.memory.live_ranges import lifetimes
from nanoloom.memory.memory_plan import plan_memory, rounded
from nanoloom.target.facts import Cache


def batched_program(
    program: Program, name: str, rows: Sequence[bool], bounds: Bounds, caches: Cache
) -> Program:
    """The program for any batch, which has this name.

    rows: of each input whether its first axis is the batch.  caches: of the target.
    Raises Differs for a program that cannot be repeated.
    """
    if program.repeats:
        raise NotDynamic("its recurrences run for known sizes, not row by row")
    if program.checks:  # a later row's word would take the place of an earlier one's
        raise NotDynamic("its indices could be looked at in one row of the batch only")
    parts = row_parts(program, caches)
    arena = RowArena.of(program, parts)
    sizes = sizes_of(program, name, rows, bounds, arena)
    strides = {
        Storage.INPUT: [
            bytes_of(x) if moves else 0
            for x, moves in zip(program.inputs, rows, strict=True)
        ],
        Storage.OUTPUT: [bytes_of(x) for x in program.outputs],
    }

    def moved(call: Call) -> Call:
        return replace(call, arguments=tuple(map(place, call.arguments)))

    def place(each: Place) -> Place:
        if each.storage is Storage.ARENA:
            return arena.place(each)
        found = strides.get(each.storage)
        return each if found is None else replace(each, stride=found[each.index])

    trips = sizes.words.index(rows_of(1, name))
    return replace(
        program,
        calls=tuple(map(moved, program.calls)),
        buffers=(),
        offsets=tuple(range(len(arena.slots))),
        arena_bytes=0,
        repeats=tuple(Repeated(x.start, len(x), 1, trips) for x in parts),
        sizes=sizes,
    )


def sizes_of(
    program: Program, name: str, rows: Sequence[bool], bounds: Bounds, arena: RowArena
) -> ProgramSizes:
    """First axes in rows of the batch, and the bytes of each slot."""
    inputs = [x.shape[0] if r else 0 for x, r in zip(program.inputs, rows, strict=True)]
    outputs = [x.shape[0] for x in program.outputs]
    counts = [n for n in dict.fromkeys([1, *inputs, *outputs]) if n]
    alone, *kept = arena.slots
    slots = [number(alone), *(rows_of(n, name) for n in kept)]
    return ProgramSizes(
        (name,),
        (*(rows_of(n, name) for n in counts), *slots),
        tuple((len(counts) + i,) for i in range(len(slots))),
        tuple(
            axes(x, counts.index(n) if n else NONE)
            for x, n in zip(program.inputs, inputs, strict=True)
        ),
        tuple(
            axes(x, counts.index(n))
            for x, n in zip(program.outputs, outputs, strict=True)
        ),
        (bounds,),
    )


def rows_of(count: int, name: str) -> Size:
    """So many for each row of the batch of this name."""
    return Size(((count, (name,)),))


@dataclass(frozen=True)
class RowArena:
    """Where the buffers of a row lie: what parts hand on once for each row.

    slots: of the arena, the bytes of a row; the first one is for the row that is
    computed, the others are for all rows.  kept: which of those a buffer lies in.
    offsets: of the other buffers, in the first slot.
    """

    slots: tuple[int, ...]
    kept: dict[int, int]
    offsets: Sequence[int]

    @staticmethod
    def of(program: Program, parts: Sequence[range]) -> RowArena:
        sizes, handed = program.buffers, crossing(program, parts)
        repeats = [Repeated(x.start, len(x), 1) for x in parts]
        own = [0 if i in handed else size for i, size in enumerate(sizes)]
        offsets, total = plan_memory(lifetimes(program.calls, (), own, set(), set()))
        used = slots_of(program.calls, repeats, sizes, set(), handed)
        kept = {i: 1 + n for n, slot in enumerate(used) for i in slot}
        most = (rounded(max(sizes[i] for i in slot)) for slot in used)
        return RowArena((total, *most), kept, offsets)

    def place(self, each: Place) -> Place:
        slot = self.kept.get(each.index, 0)
        if slot:
            return replace(each, index=slot, stride=self.slots[slot])
        return replace(each, index=0, offset=each.offset + self.offsets[each.index])


def bytes_of(spec: Spec) -> int:
    """Of all that one row has."""
    size = spec.dtype.itemsize
    for n in spec.shape:
        size *= n
    return size


def axes(spec: Spec, word: int) -> tuple[int, ...]:
    """Which word each axis is: the first one of rows."""
    return (word, *(NONE,) * len(spec.shape))[: len(spec.shape)]
