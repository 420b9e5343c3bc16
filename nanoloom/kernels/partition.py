"""A program while it is put together: calls, their kernels, and where tensors lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from blake3 import blake3

from nanoloom.fusion.constants_to_arguments import (
    NONE,
    Arguments,
    constants_of,
    erase_values,
    set_values,
    values_of,
)
from nanoloom.fusion.fill_rest import filling, rest_of
from nanoloom.fusion.fusion_plan import with_plan
from nanoloom.fusion.group import Group
from nanoloom.fusion.group_values import external_inputs, group_results
from nanoloom.fusion.insert_in_place import home, part_of
from nanoloom.fusion.outline import (
    describe,
    is_table,
    layer_at,
    layer_of,
    nodes_of,
    outline,
    root_of,
    shape_of,
    text_of,
)
from nanoloom.ir.linalg_query import Kind, Op, base, bytes_of, element_bytes
from nanoloom.ir.loop_nest import name_stages, read_nest
from nanoloom.ir.mlir import ir
from nanoloom.kernels.draft import Draft, known_numbers
from nanoloom.kernels.in_place import Reuse
from nanoloom.kernels.program import Kernel, Program, Word
from nanoloom.kernels.repeats.calls import (
    Trips,
    callee,
    is_repeat,
    read_place,
    repeat_calls,
    until_of,
    written_place,
)
from nanoloom.linalg.stage import LinalgModule
from nanoloom.memory.calls import Call, Place, Repeated, State, Storage
from nanoloom.memory.live_ranges import lifetimes
from nanoloom.memory.memory_plan import plan_memory, rounded
from nanoloom.weights.weight import Weight, weight_of


@dataclass
class Partition:
    """The program while it is put together.

    bodies: of the module's repetitions, by name.  inner: the buffers of these alone.
    reuse: which values lie where others were.  outlined: the first draft of each form,
    until its kernel is made of it.
    """

    lowered: LinalgModule
    block: ir.Block
    bodies: Mapping[str, Program]
    reuse: Reuse = field(default_factory=Reuse)
    joins: bool = True  # kernels that differ in numbers only
    flat: bool = False  # neighbouring axes are one in every kernel
    known_sizes: bool = False  # and in others, too
    drafts: list[Draft | Trips] = field(default_factory=list)
    inner: set[int] = field(default_factory=set[int])
    repeats: list[Repeated] = field(default_factory=list)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    parameters: list[Weight] = field(default_factory=list)
    places: dict[ir.Value, Place] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    filled: set[ir.Value] = field(default_factory=set)
    checks: list[Word] = field(default_factory=list)
    apart: dict[int, str] = field(default_factory=dict[int, str])
    outlined: dict[str, ir.Module] = field(default_factory=dict[str, ir.Module])

    def __post_init__(self) -> None:
        count = len(self.lowered.inputs)
        self._newer = {base(old): new for new, old in self.reuse.old.items()}
        self.parameters += self.lowered.parameters
        for i, argument in enumerate(self.block.arguments):
            storage = Storage.INPUT if i < count else Storage.PARAMETER
            self.places[argument] = Place(storage, i if i < count else i - count)
        returned = list(list(self.block.operations)[-1].operation.operands)
        outputs = len(self.lowered.outputs)
        for i, value in enumerate(returned[:outputs]):
            self.places[home(base(value))] = Place(Storage.OUTPUT, i)
        for call in reversed(repeat_calls(self.block)):
            self.place_carried(call)
        for value, limits in zip(returned[outputs:], self.lowered.checks, strict=True):
            buffer = self.buffer(base(value)).index
            self.checks += [Word(limit, buffer, i) for i, limit in enumerate(limits)]

    def buffer(self, value: ir.Value) -> Place:
        """Where a value lies; a new buffer of the arena if it has no place yet."""
        whole = home(value)
        while whole not in self.places and whole in self._newer:
            whole = self._newer[whole]
        if whole not in self.places:
            self.places[whole] = Place(Storage.ARENA, len(self.sizes))
            self.sizes.append(bytes_of(whole.type))
        return self.places[whole]

    def place(self, value: ir.Value) -> Place:
        """Where a value lies that a kernel reads or writes, maybe in a larger one."""
        whole, part = self.buffer(value), part_of(value)
        if part is None:
            return whole
        kind = home(value).type
        shape = ir.RankedTensorType(kind).shape
        return replace(whole, offset=part.begin(shape) * element_bytes(kind))

    def place_carried(self, call: Op) -> None:
        """Give what a repetition carries its places: states two, one after the other.

        A kernel may read a state while another one writes the next, and nothing is
        copied from trip to trip.
        """
        repetition = self.lowered.repeats[callee(call)]
        for number, result in enumerate(call.operation.results):
            initial = base(call.operation.operands[number])
            if number in repetition.states:
                size = bytes_of(result.type)
                place = Place(Storage.ARENA, len(self.sizes))
                self.sizes.append(2 * rounded(size))
                behind = 0 if repetition.is_open else repetition.trips
                for value, trips in ((initial, 0), (result, behind)):
                    self.places[value] = replace(place, state=State(size, trips, False))
            elif number in repetition.sequences:
                self.places[initial] = self.buffer(result)

    def draft(self, group: Group) -> None:
        """Note what a group reads, writes and computes."""
        if is_repeat(group.ops[0]):
            self.draft_repeat(group.ops[0])
            return
        results = group_results(group)
        over = {r: self.reuse.old[r] for r in results if r in self.reuse.old}
        read = [v for v in external_inputs(group) if v not in over.values()]
        places = tuple(self.place(base(v)) for v in read)
        for value, why in group.apart.items():
            self.apart.setdefault(self.buffer(base(value)).index, why)
        for result in filter(part_of, results):
            self.draft_around(home(result))
        written = tuple(map(self.place, results))
        if all(bytes_of(result.type) == 0 for result in results):
            return  # nothing to compute
        known = tuple(p.storage is Storage.PARAMETER for p in places)
        shape = {"flat": self.flat, "known_sizes": self.known_sizes}
        factors = known_numbers(self.parameters, places)
        made = partial(outline, group, known, factors, over=over, **shape)
        names = describe(group), root_of(group), layer_of(group)
        self.add(*names, made, places, written, nodes_of(group))

    def draft_repeat(self, call: Op) -> None:
        """Note the calls of a repetition's body."""
        name = callee(call)
        repetition, program = self.lowered.repeats[name], self.bodies[name]
        values, after = list(call.operation.operands), list(call.operation.results)
        given = [self.place(base(v)) for v in values]
        made = [self.buffer(v) for v in after]
        first = len(self.sizes)
        self.sizes += program.buffers
        self.inner |= set(range(first, len(self.sizes)))
        numbers = {weight: i for i, weight in enumerate(self.parameters)}
        for weight in program.parameters:
            if weight not in numbers:
                numbers[weight] = len(self.parameters)
                self.parameters.append(weight)
        self.kernels |= program.kernels
        self.drafts.append(
            Trips(
                program,
                repetition.trips,
                tuple(read_place(m, given, values) for m in repetition.inputs),
                tuple(written_place(m, given, made, after) for m in repetition.outputs),
                tuple(numbers[weight] for weight in program.parameters),
                first,
                repetition.beside and isinstance(self.drafts[-1], Trips),
                until_of(repetition, given, values),
            )
        )

    def draft_around(self, whole: ir.Value) -> None:
        """In front of a tensor's first part: what the parts leave of it."""
        if whole in self.filled:
            return
        self.filled.add(whole)
        block = rest_of(whole)
        if block is not None:
            name = f"{Kind.OPAQUE.value}_border_{shape_of(whole)}"
            names = name, Kind.OPAQUE.value, layer_at(whole.owner)
            place = (self.buffer(whole),)
            self.add(*names, partial(filling, *block), (), place)

    def add(
        self,
        name: str,
        root: str,
        layer: str,
        made: Callable[[Arguments], ir.Module],
        inputs: tuple[Place, ...],
        results: tuple[Place, ...],
        nodes: tuple[str, ...] = (),
    ) -> None:
        module = made(NONE)
        constants = constants_of(module) if self.joins else []
        numbers = values_of(constants)
        erase_values(constants)
        form = text_of(module)
        if form not in self.outlined:
            set_values(constants, numbers)
            self.outlined[form] = module
        self.drafts.append(
            Draft(name, root, layer, made, inputs, results, form, numbers, nodes)
        )

    def calls(self) -> list[Call]:
        """The calls in order; their kernels are made, equal ones once."""
        alike: dict[str, list[Draft]] = {}
        for draft in self.drafts:
            if isinstance(draft, Draft):
                alike.setdefault(draft.form, []).append(draft)
        made = {
            form: self.kernel(drafts[0], [draft.numbers for draft in drafts])
            for form, drafts in alike.items()
        }
        calls: list[Call] = []
        for draft in self.drafts:
            if isinstance(draft, Draft):
                calls.append(self.call(draft, *made[draft.form]))
                continue
            inside = draft.calls()
            if inside:
                self.repeats.append(draft.repeated(len(calls)))
            calls += inside
        return calls

    def kernel(
        self, draft: Draft, rows: list[tuple[ir.Attribute, ...]]
    ) -> tuple[str, Arguments]:
        """The kernel of alike drafts, whose numbers are in `rows`."""
        numbers, module = Arguments.of(rows), self.outlined.pop(draft.form)
        if numbers.types:
            module = draft.outline(numbers)
        name_stages(module)
        nest = with_plan(read_nest(module), module)
        text = text_of(module)
        name = f"{draft.name}_{blake3(text.encode()).hexdigest()[:8]}"
        arguments = module.body.operations[0].operation.regions[0].blocks[0].arguments
        self.kernels[name] = Kernel(
            name,
            text,
            draft.root,
            nest,
            (*draft.constants, *(True for _ in numbers.types)),
            tuple(tuple(ir.RankedTensorType(a.type).shape) for a in arguments),
            frozenset(i for i, a in enumerate(arguments) if is_table(a)),
        )
        return name, numbers

    def call(self, draft: Draft, kernel: str, numbers: Arguments) -> Call:
        given: list[Place] = []
        for array in numbers.arrays(draft.numbers):
            given.append(Place(Storage.PARAMETER, len(self.parameters)))
            name = f"{draft.layer or kernel}.numbers.{array.dtype}"
            self.parameters.append(weight_of(array, name))
        arguments = (*draft.inputs, *given, *draft.results)
        return Call(kernel, arguments, draft.layer, nodes=draft.nodes)

    def program(self, groups: Iterable[Group]) -> Program:
        """Of these groups, which run in this order."""
        for group in groups:
            self.draft(group)
        calls = self.calls()
        read_later = {word.buffer for word in self.checks}
        offsets, total = plan_memory(
            lifetimes(calls, self.repeats, self.sizes, self.inner, read_later)
        )
        return Program(
            self.kernels,
            tuple(calls),
            self.lowered.inputs,
            self.lowered.outputs,
            tuple(self.parameters),
            tuple(self.sizes),
            tuple(offsets),
            total,
            tuple(self.checks),
            tuple(self.repeats),
            apart=self.apart,
        )
