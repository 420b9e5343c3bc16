"""A program whose kernels are compiled: objects, the table of calls, parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nanoloom.binary.assemble_repeats import repeats_of
from nanoloom.binary.kernel import CompiledKernel
from nanoloom.binary.link import Source
from nanoloom.binary.parameters import ParameterBlock
from nanoloom.binary.program_data import program_object
from nanoloom.binary.session_table import longer
from nanoloom.binary.sizes import SizesTable
from nanoloom.binary.table import (
    WORD_BYTES,
    Buffer,
    Check,
    Number,
    ProgramTable,
    Room,
    Step,
)
from nanoloom.dynamic.floor_division import dim_of
from nanoloom.interface.bounds import Bounds
from nanoloom.interface.data_dependent_outputs import counted
from nanoloom.interface.room_names import (
    EXACT,
    needed_outputs,
    node_of,
    rooms_among,
)
from nanoloom.interface.tensor import NONE, Element, Space, Tensor
from nanoloom.kernels.program import Program, ProgramSizes, Word
from nanoloom.linalg.stage import Spec
from nanoloom.memory.calls import Call, Place, Storage
from nanoloom.schedule.packing import Pack
from nanoloom.weights.derivations import reshaped
from nanoloom.weights.weight import Weight


@dataclass(frozen=True)
class Compiled:
    """A model as objects, the table of their calls and its parameters.

    levels: C that defines the table in place of `table`, where objects have several
    (cpu_levels.py).
    """

    objects: list[bytes]
    table: ProgramTable
    parameters: ParameterBlock
    levels: tuple[Source, ...] = ()

    def table_objects(self, beside: bytes) -> list[bytes]:
        """What defines the program's table, unless `levels` do.

        beside: another object that it is linked with.
        """
        if self.levels:
            return []
        inside = self.parameters.size > 0
        return [program_object(self.table, beside, parameters_inside=inside)]


def assemble(
    program: Program, compiled: dict[str, CompiledKernel], *, of_nothing: bool = False
) -> Compiled:
    """Objects, table and parameters of a program whose kernels are compiled.

    of_nothing: whether kernels may run where a dimension is 0.
    """
    block = ParameterBlock()
    steps: list[Step] = []
    begins: list[int] = []
    for call in program.calls:
        begins.append(len(steps))
        kernel = compiled[call.kernel]
        buffers = arguments_of(program, block, call, kernel)
        word = next(
            (p.index for p in call.arguments[::-1] if p.storage is Storage.SIZES), NONE
        )  # a kernel's own: parameters that are sizes stand in front of them
        buffers += own_buffers(program, kernel)
        for phase, tasks in enumerate(kernel.tasks):
            if tasks:
                symbol = f"{call.kernel}_{phase}"
                name, scratch = call.layer or symbol, kernel.scratch_bytes[phase]
                steps.append(Step(symbol, tasks, buffers, name, scratch, word))
    shares = {name for name, kernel in compiled.items() if own_bytes(kernel)}
    repeats, read = repeats_of(program, [*begins, len(steps)], shares)
    sizes, rooms = program.sizes, rooms_of(program)
    needed = [word.extent for word in program.checks] if of_nothing else None
    table = ProgramTable(
        tuple(steps),
        program.arena_bytes + max(map(own_bytes, compiled.values()), default=0),
        block.size,
        tensors(program.inputs, sizes.inputs if sizes else ()),
        tensors(program.outputs, sizes.outputs if sizes else ()),
        any(kernel.needs_tiles for kernel in compiled.values()),
        tuple(check(program, word) for word in program.checks),
        repeats,
        sizes=sizes_table(sizes, rooms, needed) if sizes else None,
        numbers=numbers([x.name for x in program.outputs]),
        rooms=rooms,
        read=tuple(buffer(program, block, x, (), None, walked=True) for x in read),
    )
    return Compiled([k.object for k in compiled.values()], table, block)


def numbers(outputs: Sequence[str]) -> tuple[Number, ...]:
    """Those among a program's outputs, which are the last ones."""
    return tuple(Number(outputs.index(x), axis) for _, axis, x in counted(outputs))


def arguments_of(
    program: Program, block: ParameterBlock, call: Call, kernel: CompiledKernel
) -> tuple[Buffer, ...]:
    """Where what a call reads and writes lies; weights get their places in `block`."""
    source = program.kernels[call.kernel]
    packed = {p.argument: p for p in kernel.packings}
    shapes = call.shapes or source.shapes
    return tuple(
        buffer(
            program,
            block,
            place,
            shapes[i],
            packed.get(i),
            walked=i not in source.tables,
        )
        for i, place in enumerate(call.arguments)
    )


def rooms_of(program: Program) -> tuple[Room, ...]:
    """Those that a program with sizes has among its inputs, which are the last ones."""
    names = rooms_among([x.name for x in program.inputs]) if program.sizes else []
    outputs = [x.name for x in program.outputs]
    places = [outputs.index(name) for name in needed_outputs(names)]
    first = len(outputs) - len(counted(outputs)) - len(names)
    if sorted(places) != list(range(first, first + len(names))):
        raise ValueError(f"what rooms need is not behind the outputs: {outputs}")
    return tuple(
        Room(name.startswith(EXACT), place - first, f"node {node_of(name)}")
        for name, place in zip(names, places, strict=True)
    )


def room_dims(sizes: ProgramSizes, count: int) -> list[str]:
    """The dimensions that are the extents of so many last inputs."""
    words = [axes[0] for axes in sizes.inputs[len(sizes.inputs) - count :]]
    return [names[0] for word in words for _, names in sizes.words[word].terms]


def sizes_table(
    sizes: ProgramSizes, rooms: Sequence[Room] = (), needed: Sequence[int] | None = None
) -> SizesTable:
    """With the dimensions that are rooms behind the others.

    needed: words that are no 0 where kernels run; None where no dimension is one then.
    """
    bounds = tuple(
        with_none(each, name, sizes, needed)
        for name, each in zip(sizes.dims, sizes.bounds, strict=True)
    )
    made = SizesTable(sizes.dims, sizes.words, sizes.buffers, bounds, sizes.floors)
    return longer(made, room_dims(sizes, len(rooms)))


def with_none(
    given: Bounds, dim: str, sizes: ProgramSizes, needed: Sequence[int] | None
) -> Bounds:
    """The bounds of a dimension that may be 0, where its program is right then.

    Either no result has elements, and nothing is computed; or its kernels run, whose
    loops over it end at once.
    """
    if not given.or_none or leaves_nothing(dim, sizes):
        return given
    floors = {floor.name: floor.add // floor.over for floor in sizes.floors}
    own = {dim: 0, **{n: k for n, k in floors.items() if dim_of(n) == dim}}
    alone = [
        size
        for size in sizes.words
        if own.keys() >= {name for _, names in size.terms for name in names}
    ]
    short = any(size.of(own) < 0 for size in alone)  # x[:3] of fewer rows
    if needed is None or short or any(is_none(word, dim, sizes) for word in needed):
        return replace(given, or_none=False)
    return replace(given, least=0, or_none=False)


def leaves_nothing(dim: str, sizes: ProgramSizes) -> bool:
    """Whether no result has elements where a dimension is 0."""
    return all(
        any(is_none(word, dim, sizes) for word in axes) for axes in sizes.outputs
    )


def is_none(word: int, dim: str, sizes: ProgramSizes) -> bool:
    """Whether a size is 0 where a dimension is."""
    terms = sizes.words[word].terms if word != NONE else ()
    return bool(terms) and all(dim in names for _, names in terms)


def own_bytes(kernel: CompiledKernel) -> int:
    """What a kernel's own tensors take; only one kernel runs at a time."""
    return sum(kernel.arena_bytes)


def own_buffers(program: Program, kernel: CompiledKernel) -> tuple[Buffer, ...]:
    """A kernel's own tensors, one behind the other, behind those of all others."""
    offsets = (sum(kernel.arena_bytes[:i]) for i in range(len(kernel.arena_bytes)))
    slot = len(program.sizes.buffers) if program.sizes else NONE
    return tuple(
        Buffer(Space.ARENA, program.arena_bytes + offset, slot=slot)
        for offset in offsets
    )


def buffer(
    program: Program,
    block: ParameterBlock,
    place: Place,
    shape: tuple[int, ...],
    packing: Pack | None,
    *,
    walked: bool,
) -> Buffer:
    """Where a kernel's argument lies when the program runs."""
    match place.storage:
        case Storage.ARENA if program.sizes and program.sizes.buffers:
            state = place.state.words if place.state else ()
            begin, word = place.offset, place.word
            return Buffer(Space.ARENA, begin, 0, place.index, word, state)
        case Storage.ARENA:
            begin = program.offsets[place.index]
            return Buffer(Space.ARENA, begin + place.begin)
        case Storage.SIZES:
            return Buffer(Space.SIZES, WORD_BYTES * place.index)
        case Storage.PARAMETER:
            weight = packed(program.parameters[place.index], shape, packing)
            offset = block.offset(weight, walked=walked)
            return Buffer(Space.PARAMETERS, offset + place.offset)
        case Storage.INPUT:
            return Buffer(Space.INPUT, place.offset, place.index, word=place.word)
        case Storage.OUTPUT:
            return Buffer(Space.OUTPUT, place.offset, place.index, word=place.word)


def packed(weight: Weight, shape: tuple[int, ...], packing: Pack | None) -> Weight:
    """A weight as a kernel reads it.

    shape: in the kernel; without a packing it does not matter, the bytes are the same.
    """
    return reshaped(weight, shape).then(packing.panels) if packing else weight


def check(program: Program, word: Word) -> Check:
    """Where a word of a check lies in the arena, and what it may be."""
    limits, offset = word.limits, WORD_BYTES * word.number
    what = limits.low, limits.high, limits.where, limits.what
    if program.sizes:
        return Check(offset, *what, slot=word.buffer, word=word.extent)
    return Check(program.offsets[word.buffer] + offset, *what)


def tensors(
    specs: Sequence[Spec], words: Sequence[tuple[int, ...]]
) -> tuple[Tensor, ...]:
    """words: of each, which word of the sizes its axes are; () without sizes."""
    return tuple(
        Tensor(x.name, Element.of(x.dtype), x.shape, row)
        for x, row in zip(specs, words or [()] * len(specs), strict=True)
    )
