"""One program for every size, from the same model cut for samples of its dimensions.

In:  programs that differ in sizes only.
Out: a program whose kernels, buffers and shapes have the sizes of any dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from nanoloom.dynamic.dynamic_kernel import DynamicKernel, Shape, make_dynamic
from nanoloom.dynamic.dynamic_refusal import NotDynamic, Others, no_size
from nanoloom.dynamic.floor_division import plain
from nanoloom.dynamic.polynomial import (
    FACTORS,
    Dims,
    Size,
    beginning,
    found,
    number,
    used_floors,
)
from nanoloom.interface.bounds import NO_BOUNDS, Bounds
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.kernels.program import Kernel, Program, ProgramSizes, Word
from nanoloom.kernels.sample_agreement import node_of, require_same, sized_parameters
from nanoloom.kernels.sized_kernel import list_of_results, with_sizes
from nanoloom.linalg.stage import Spec
from nanoloom.memory.calls import NONE, Call, Place, Repeated, State, Storage, Until
from nanoloom.memory.dynamic_memory_plan import in_slots, repeat_in_slots, slots_of
from nanoloom.memory.memory_plan import ALIGNMENT


def dynamic_program(
    programs: Sequence[Program],
    samples: Sequence[Dims],
    words: Sequence[Size] = (),
    bounds: Mapping[str, Bounds] = NO_BOUNDS,
) -> Program:
    """The program for all sizes; its schedules are chosen for the first sample's.

    words: sizes that come first, and must not be below 0.  bounds: of dimensions by
    name.  Raises Differs where the samples differ otherwise than in sizes.
    """
    require_same(programs)
    inside = sized_parameters(programs, samples)
    with mlir.context():  # one for all kernels: it takes long to make
        return Joining(programs, samples, bounds, inside, list(words)).program()


@dataclass
class Joining:
    """The program while it is put together from those of the samples.

    inside: the sizes in parameters.
    """

    programs: Sequence[Program]
    samples: Sequence[Dims]
    bounds: Mapping[str, Bounds]
    inside: Mapping[int, tuple[Size, ...]]
    words: list[Size] = field(default_factory=list[Size])
    kernels: dict[tuple[str, ...], tuple[Kernel, tuple[Size, ...]]] = field(
        default_factory=dict
    )
    shapes: dict[str, tuple[Shape, ...]] = field(default_factory=dict)  # of arguments

    def program(self) -> Program:
        first = self.programs[0]
        calls = tuple(
            self.call(each)
            for each in zip(*[p.calls for p in self.programs], strict=True)
        )
        inputs, outputs = (
            tuple(self.shape(each) for each in zip(*rows, strict=True))
            for rows in (
                [p.inputs for p in self.programs],
                [p.outputs for p in self.programs],
            )
        )
        rows = list(zip(*[p.buffers for p in self.programs], strict=True))
        states = self.states()
        sizes = [
            self.bytes(i, states.get(i, each), calls) for i, each in enumerate(rows)
        ]
        slots = self.slots(calls)
        of_slots = [
            tuple(dict.fromkeys(self.word(sizes[i]) for i in slot)) for slot in slots
        ]
        checks = [
            self.check(each)
            for each in zip(*[p.checks for p in self.programs], strict=True)
        ]
        names = plain(sorted(self.samples[0]))
        place = {i: number for number, slot in enumerate(slots) for i in slot}
        return replace(
            first,
            kernels={kernel.name: kernel for kernel, _ in self.kernels.values()},
            calls=tuple(in_slots(call, place) for call in calls),
            buffers=(),
            offsets=tuple(range(len(slots))),
            arena_bytes=0,
            checks=tuple(replace(c, buffer=place[c.buffer]) for c in checks),
            repeats=tuple(
                repeat_in_slots(self.repeated(each), place)
                for each in zip(*[p.repeats for p in self.programs], strict=True)
            ),
            sizes=ProgramSizes(
                names,
                tuple(self.words),
                tuple(of_slots),
                inputs,
                outputs,
                tuple(self.bounds.get(name, Bounds()) for name in names),
                used_floors(self.words),
            ),
        )

    def slots(self, calls: Sequence[Call]) -> list[list[int]]:
        """The buffers of each slot of the arena, as the first sample has them."""
        first = self.programs[0]
        read_later = {word.buffer for word in first.checks}
        return slots_of(calls, first.repeats, first.buffers, read_later)

    def bytes(self, buffer: int, numbers: Sequence[int], calls: Sequence[Call]) -> Size:
        """Of a buffer: those of a tensor that fills it."""
        made = found(numbers, self.samples)
        if made is not None:
            return made
        for call in calls:
            for place, shape in zip(
                call.arguments, self.shapes[call.kernel], strict=True
            ):
                if (place.storage, place.index) != (Storage.ARENA, buffer):
                    continue
                elements = reduce(Size.by, shape, number(1))
                counts = [elements.of(sample) for sample in self.samples]
                if all(c and n % c == 0 for n, c in zip(numbers, counts, strict=True)):
                    times = {n // c for n, c in zip(numbers, counts, strict=True)}
                    if len(times) == 1 and elements.degree <= FACTORS:
                        return elements.times(times.pop())
        return self.size(numbers, "a buffer")

    def check(self, words: Sequence[Word]) -> Word:
        extent = self.size([w.limits.high + 1 for w in words], "an axis")
        if extent.number is not None:
            return words[0]
        return replace(words[0], extent=self.word(extent))

    def size(self, numbers: Sequence[int], where: str) -> Size:
        made = found(numbers, self.samples)
        if made is None:
            raise no_size(where, self.samples[0])
        return made

    def word(self, size: Size) -> int:
        """Which word of the program's a size is."""
        return self.first_word((size,))

    def first_word(self, sizes: tuple[Size, ...]) -> int:
        """Where some sizes stand one behind the other among the words."""
        count = len(sizes)
        for place in range(len(self.words) - count + 1):
            if tuple(self.words[place : place + count]) == sizes:
                return place
        self.words += sizes
        return len(self.words) - count

    def shape(self, specs: Sequence[Spec]) -> tuple[int, ...]:
        """Which word each axis of an input or output is."""
        rows = zip(*[spec.shape for spec in specs], strict=True)
        sizes = [self.size(each, specs[0].name) for each in rows]
        return tuple(NONE if s.number is not None else self.word(s) for s in sizes)

    def call(self, calls: Sequence[Call]) -> Call:
        where = node_of(calls[0])
        try:
            kernel, sizes = self.kernel([call.kernel for call in calls])
            places = zip(*[call.arguments for call in calls], strict=True)
            arguments = [self.place(each) for each in places]
        except NotDynamic as reason:
            raise NotDynamic(f"{where}: {reason}", others=reason.others) from None
        if sizes:
            results = len(list_of_results(kernel))
            word = Place(Storage.SIZES, self.first_word(sizes))
            arguments.insert(len(arguments) - results, word)
        first = calls[0]
        return Call(kernel.name, tuple(arguments), first.layer, nodes=first.nodes)

    def place(self, places: Sequence[Place]) -> Place:
        first = places[0]
        ways = {(p.storage, p.index, p.stride > 0, p.state is None) for p in places}
        if len(ways) > 1:
            reason = "its arguments lie in other places for other sizes"
            raise NotDynamic(reason, others=Others.ANY)
        if first.storage is Storage.PARAMETER and first.index in self.inside:
            if first.offset or first.stride:
                raise NotDynamic("it reads a part of a constant that is made of sizes")
            return Place(Storage.SIZES, self.first_word(self.inside[first.index]))
        offset = beginning([p.offset for p in places], self.samples)
        if offset is None:
            raise no_size("where a part begins", self.samples[0])
        if offset.number is None:
            first = replace(first, offset=0, word=self.word(offset))
        stride = self.size([abs(p.stride) for p in places], "how far a part moves")
        if stride.number is None:
            sign = 1 if first.stride > 0 else -1
            first = replace(first, stride=sign, stride_word=self.word(stride))
        states = [p.state for p in places if p.state is not None]
        return replace(first, state=self.state(states)) if states else first

    def state(self, states: Sequence[State]) -> State:
        sizes = [self.size([s.bytes for s in states], "a state")]
        sizes.append(self.size([s.trips for s in states], "a number of trips"))
        return replace(states[0], words=tuple(map(self.word, sizes)))

    def states(self) -> dict[int, list[int]]:
        """Bytes for the two places of each state, in lines of cache or less."""
        found: dict[int, list[int]] = {}
        for calls in zip(*[p.calls for p in self.programs], strict=True):
            for places in zip(*[call.arguments for call in calls], strict=True):
                states = [p.state for p in places if p.state is not None]
                if len(states) == len(places):
                    room = [2 * (s.bytes + ALIGNMENT) for s in states]
                    found[places[0].index] = room
        return found

    def repeated(self, repeats: Sequence[Repeated]) -> Repeated:
        first = repeats[0]
        if len({(x.first, x.count, x.beside) for x in repeats}) > 1:
            raise NotDynamic("other sizes have other recurrences")
        trips = self.size([x.trips for x in repeats], "a number of trips")
        points = found([x.points for x in repeats], self.samples) or number(0)
        words = {"points": points.number or 0}
        if points.number is None:
            words = {"points_word": self.word(points)}
        if trips.number is None:
            words["word"] = self.word(trips)
        return replace(first, **words, until=self.until([x.until for x in repeats]))

    def until(self, ends: Sequence[Until | None]) -> Until | None:
        """What ends a repeat, where that is alike in all samples."""
        first, known = ends[0], [x for x in ends if x is not None]
        if first is None or len(known) < len(ends):
            if known:
                raise NotDynamic("recurrences end otherwise for other sizes")
            return None
        places = [
            self.place(each) for each in zip(*[x.places for x in known], strict=True)
        ]
        there = dict(zip(first.places, places, strict=True))
        return first.changed(there.__getitem__)

    def kernel(self, names: Sequence[str]) -> tuple[Kernel, tuple[Size, ...]]:
        """The kernel for all sizes of those for the samples, and the sizes it reads."""
        key = tuple(names)
        if key not in self.kernels:
            pairs = zip(self.programs, names, strict=True)
            kernels = [program.kernels[name] for program, name in pairs]
            self.kernels[key] = self.lifted(kernels)
        return self.kernels[key]

    def lifted(self, kernels: Sequence[Kernel]) -> tuple[Kernel, tuple[Size, ...]]:
        first = kernels[0]
        if len({(k.root, k.constants) for k in kernels}) > 1:
            raise NotDynamic("other sizes have other operands")
        modules = [ir.Module.parse(kernel.text) for kernel in kernels]
        try:
            made: DynamicKernel = make_dynamic(modules, self.samples)
        except ir.MLIRError as reason:
            raise NotDynamic(f"kernel {first.name}: {reason}") from None
        if not made.sizes:
            self.shapes[first.name] = made.arguments
            return first, ()
        kernel = with_sizes(first, made, [kernel.nest for kernel in kernels])
        place, given = len(first.constants), (number(len(made.sizes)),)
        before, behind = made.arguments[:place], made.arguments[place:]
        self.shapes[kernel.name] = (*before, given, *behind)
        return kernel, made.sizes
