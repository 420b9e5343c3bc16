"""The kernels stage: one function on tensors becomes kernels, calls and buffers.

In:  @main of the linalg stage.
Out: a `Program`: equal kernels are made once, buffers have their place in the arena.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from blake3 import blake3

from nanoloom.kernels.border import fill_around, filling
from nanoloom.kernels.chain import join_chains
from nanoloom.kernels.fold import fold_copies, pack_right_operands
from nanoloom.kernels.group import Group, form_groups, is_movable
from nanoloom.kernels.layouts.layout import layout_named
from nanoloom.kernels.layouts.stage import plan_layouts
from nanoloom.kernels.nest import name_stages, read_nest
from nanoloom.kernels.numbers import (
    NONE,
    Arguments,
    erase_values,
    numbers_of,
    values_of,
)
from nanoloom.kernels.outline import (
    describe,
    external_inputs,
    group_results,
    layer_at,
    layer_of,
    outline,
    root_of,
    shape_of,
)
from nanoloom.kernels.pads import absorb_pads
from nanoloom.kernels.parts import home, mark_parts, part_of
from nanoloom.kernels.plan import Lifetime, plan
from nanoloom.kernels.program import Call, Kernel, Place, Program, Storage, Word
from nanoloom.kernels.reshaped import follow_products
from nanoloom.kernels.several import join_results
from nanoloom.kernels.slices import shapes_before_slices
from nanoloom.kernels.structure import Kind, base, bytes_of, element_bytes
from nanoloom.kernels.widened import widen_in_readers
from nanoloom.linalg.stage import LinalgModule
from nanoloom.linalg.words.pointwise import itself, pointwise
from nanoloom.mlir import ir, run_pipeline, tensor
from nanoloom.target.facts import Target
from nanoloom.weights.weight import Weight, weight_of

SIMPLIFY = (
    "canonicalize",
    "cse",
    "linalg-fold-unit-extent-dims",  # [1, 128, 768] is a matrix: fewer loops
    "canonicalize",  # removes the pairs of reshapes that the line above leaves
    "cse",
)


def cut(
    lowered: LinalgModule,
    target: Target | None = None,
    layout: str = "auto",
    *,
    turns: bool = True,
) -> Program:
    """Cut a linalg module into kernels (the module is changed in place).

    target: on which tensors get the layouts that are the fastest, or this one; without
    a target they keep theirs.  turns: right operands that lie along the sum are turned
    first, by kernels of their own.
    """
    run_pipeline(lowered.module, SIMPLIFY)
    if target is not None:
        plan_layouts(lowered, target, layout_named(layout)).apply()
    fold_copies(lowered.module)
    if turns:
        pack_right_operands(lowered.module, len(lowered.inputs))
    shapes_before_slices(lowered.module)
    follow_products(lowered.module)
    widen_in_readers(lowered.module)
    run_pipeline(lowered.module, ("canonicalize", "cse"))
    mark_parts(lowered.module)  # behind canonicalize, which takes a copy for nothing
    main = lowered.module.body.operations[0]
    block = main.operation.regions[0].blocks[0]
    separate_outputs(block, len(lowered.outputs))
    cutting = Cutting(lowered, block)
    weights = list(block.arguments)[len(lowered.inputs) :]
    groups = join_chains(form_groups(block), weights)
    for group in absorb_pads(join_results(block, groups)):
        cutting.draft(group)
    return cutting.program()


def separate_outputs(block: ir.Block, outputs: int) -> None:
    """Returned values get bytes of their own: copy arguments and repeated values.

    outputs: so many are the model's; equal checks behind them may be one.
    """
    returned = list(block.operations)[-1]
    seen: set[ir.Value] = set()
    for i, value in enumerate(returned.operation.operands):
        source = base(value)
        owner = source.owner
        free = isinstance(owner, ir.Block) or is_movable(owner.opview)
        if free or (source in seen and i < outputs):
            with ir.InsertionPoint(returned), ir.Location.unknown():
                kind = ir.RankedTensorType(value.type)
                target = tensor.empty(kind.shape, kind.element_type)
                returned.operation.operands[i] = pointwise([value], target, itself)
            continue
        seen.add(source)


@dataclass(frozen=True)
class Draft:
    """A call whose kernel is not made yet.

    name, root: of the kernel.  outline: makes it, with these numbers as arguments.
    form: its text without `numbers`, the constants that may be arguments.
    """

    name: str
    root: str
    layer: str
    outline: Callable[[Arguments], ir.Module]
    inputs: tuple[Place, ...]
    results: tuple[Place, ...]
    form: str
    numbers: tuple[ir.Attribute, ...]

    @property
    def constants(self) -> tuple[bool, ...]:
        """Which inputs are parameters."""
        return tuple(p.storage is Storage.PARAMETER for p in self.inputs)


@dataclass
class Cutting:
    """The program while it is put together."""

    lowered: LinalgModule
    block: ir.Block
    drafts: list[Draft] = field(default_factory=list)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    parameters: list[Weight] = field(default_factory=list)
    places: dict[ir.Value, Place] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    filled: set[ir.Value] = field(default_factory=set)
    checks: list[Word] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.lowered.inputs)
        self.parameters += self.lowered.parameters
        for i, argument in enumerate(self.block.arguments):
            storage = Storage.INPUT if i < count else Storage.PARAMETER
            self.places[argument] = Place(storage, i if i < count else i - count)
        returned = list(list(self.block.operations)[-1].operation.operands)
        outputs = len(self.lowered.outputs)
        for i, value in enumerate(returned[:outputs]):
            self.places[home(base(value))] = Place(Storage.OUTPUT, i)
        for value, limits in zip(returned[outputs:], self.lowered.checks, strict=True):
            buffer = self.buffer(base(value)).index
            self.checks += [Word(limit, buffer, i) for i, limit in enumerate(limits)]

    def buffer(self, value: ir.Value) -> Place:
        """Where a value lies; a new buffer of the arena if it has no place yet."""
        whole = home(value)
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

    def draft(self, group: Group) -> None:
        """Note what a group reads, writes and computes."""
        places = tuple(self.place(base(v)) for v in external_inputs(group))
        results = group_results(group)
        for result in results:
            if part_of(result) is not None:
                self.draft_around(home(result))
        written = tuple(map(self.place, results))
        if all(bytes_of(result.type) == 0 for result in results):
            return  # nothing to compute
        known = tuple(p.storage is Storage.PARAMETER for p in places)
        made = partial(outline, group, known)
        name, root, layer = describe(group), root_of(group), layer_of(group)
        self.add(name, root, layer, made, places, written)

    def draft_around(self, whole: ir.Value) -> None:
        """In front of a tensor's first part: what the parts leave of it."""
        if whole in self.filled:
            return
        self.filled.add(whole)
        block = fill_around(whole)
        if block is not None:
            name = f"{Kind.OPAQUE.value}_border_{shape_of(whole)}"
            layer = layer_at(whole.owner)
            made = partial(filling, *block)
            place = (self.buffer(whole),)
            self.add(name, Kind.OPAQUE.value, layer, made, (), place)

    def add(
        self,
        name: str,
        root: str,
        layer: str,
        made: Callable[[Arguments], ir.Module],
        inputs: tuple[Place, ...],
        results: tuple[Place, ...],
    ) -> None:
        module = made(NONE)
        constants = numbers_of(module)
        numbers = values_of(constants)
        erase_values(constants)
        form = text_of(module)
        self.drafts.append(
            Draft(name, root, layer, made, inputs, results, form, numbers)
        )

    def calls(self) -> list[Call]:
        """The calls in order; their kernels are made, equal ones once."""
        alike: dict[str, list[Draft]] = {}
        for draft in self.drafts:
            alike.setdefault(draft.form, []).append(draft)
        made = {
            form: self.kernel(drafts[0], [draft.numbers for draft in drafts])
            for form, drafts in alike.items()
        }
        return [self.call(draft, *made[draft.form]) for draft in self.drafts]

    def kernel(
        self, draft: Draft, rows: list[tuple[ir.Attribute, ...]]
    ) -> tuple[str, Arguments]:
        """The kernel of alike drafts, whose numbers are in `rows`."""
        numbers = Arguments.of(rows)
        module = draft.outline(numbers)
        name_stages(module)
        text = text_of(module)
        name = f"{draft.name}_{blake3(text.encode()).hexdigest()[:8]}"
        arguments = module.body.operations[0].operation.regions[0].blocks[0].arguments
        self.kernels[name] = Kernel(
            name,
            text,
            draft.root,
            read_nest(module),
            (*draft.constants, *(True for _ in numbers.types)),
            tuple(tuple(ir.RankedTensorType(a.type).shape) for a in arguments),
        )
        return name, numbers

    def call(self, draft: Draft, kernel: str, numbers: Arguments) -> Call:
        given: list[Place] = []
        for array in numbers.arrays(draft.numbers):
            given.append(Place(Storage.PARAMETER, len(self.parameters)))
            name = f"{draft.layer or kernel}.numbers.{array.dtype}"
            self.parameters.append(weight_of(array, name))
        return Call(kernel, (*draft.inputs, *given, *draft.results), draft.layer)

    def program(self) -> Program:
        calls = self.calls()
        lifetimes = self.lifetimes(calls)
        offsets, total = plan(lifetimes)
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
        )

    def lifetimes(self, calls: list[Call]) -> list[Lifetime]:
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for step, call in enumerate(calls):
            for place in call.arguments:
                if place.storage is Storage.ARENA:
                    first.setdefault(place.index, step)
                    last[place.index] = step
        last |= {word.buffer: len(calls) for word in self.checks}  # read after all
        return [Lifetime(size, first[i], last[i]) for i, size in enumerate(self.sizes)]


def text_of(module: ir.Module) -> str:
    return module.operation.get_asm(enable_debug_info=False)
