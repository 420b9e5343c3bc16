"""The table of a program as an object: constants only, no code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nanoloom.binary.data_object import Array, At, Field, data_object
from nanoloom.binary.elf import Machine
from nanoloom.binary.sizes_data import OPEN_SIZES, no_sizes, sizes_arrays
from nanoloom.binary.table import Buffer, ProgramTable, Step
from nanoloom.interface.tensor import NONE, Tensor

# Of nanoloom/runtime, without .c: what runs a program, in one thread or on a pool.
PROGRAM_SOURCES = ("program", "kernel_call", "checks", "control", "clock")
PARAMETER_SYMBOL = "nanoloom_parameter_block"
PROGRAM = "nanoloom_program"
SHOWN = (PROGRAM, OPEN_SIZES)
# The structs of program.h, repeats.h and types.h.
BUFFER, STEP, CHECK, NUMBER, ROOM = "iiq", "QqiiqQ", "qqqQQ", "ii", "iiQ"
MOVE, REPEAT, TENSOR, SHAPE = "qii", "qq7i4x", "QiiQ", "q"
WHOLE = "11Q4q10i"


def program_object(
    table: ProgramTable,
    beside: bytes,
    *,
    parameters_inside: bool = False,
    suffix: str = "",
) -> bytes:
    """An object that defines `nanoloom_program` and `nanoloom_open_sizes`.

    beside: another object that it is linked with.  With `parameters_inside` the table
    points at the symbol PARAMETER_SYMBOL, which another object must define; otherwise
    its pointer is NULL and the loader brings one.  suffix: behind both names.
    """
    machine = Machine.of(beside[:64])
    return data_object(machine, program_arrays(table, parameters_inside, suffix))


def program_arrays(
    table: ProgramTable, parameters_inside: bool, suffix: str
) -> list[Array]:
    """What `program_object` defines."""
    name = PROGRAM + suffix
    arrays = [
        Array("steps", STEP, list(_steps(table.steps))),
        Array("buffers", BUFFER, list(map(_buffer, table.buffers))),
        Array("checks", CHECK, [(x.offset, x.low, x.high, x.where, x.what)
                                for x in table.checks]),
        Array("repeats", REPEAT, list(_repeats(table))),
        Array("moves", MOVE, list(_moves(table))),
        *_tensors("inputs", table.inputs),
        *_tensors("outputs", table.outputs),
        Array("numbers", NUMBER, [(x.output, x.axis) for x in table.numbers]),
        Array("rooms", ROOM, [(int(x.exact), x.needed, x.where) for x in table.rooms]),
    ]  # fmt: skip
    sizes = sizes_arrays(table, table.sizes, name) if table.sizes else no_sizes()
    *inner, shown = sizes
    shown = Array(shown.name + suffix, shown.fields, shown.rows, shown=True)
    there = {x.name for x in arrays if x.rows}
    parameters = At(PARAMETER_SYMBOL if parameters_inside else "")
    whole = Array(name, WHOLE, [_whole(table, there, parameters)], shown=True)
    return [*arrays, *inner, shown, whole]


def _whole(table: ProgramTable, there: set[str], parameters: At) -> tuple[Field, ...]:
    """The table's own fields.  there: the arrays that are not empty."""
    names = ("steps", "buffers", "checks", "repeats", "moves", "inputs", "outputs",
             "numbers", "rooms")  # fmt: skip
    no_words = At("")
    return (
        *(At(name if name in there else "") for name in names),
        no_words,
        parameters,
        table.arena_bytes,
        table.parameter_bytes,
        table.scratch_bytes,
        table.alone_bytes,
        len(table.steps),
        len(table.buffers),
        len(table.checks),
        len(table.repeats),
        len(table.inputs),
        len(table.outputs),
        table.kept,
        len(table.numbers),
        len(table.rooms),
        int(table.needs_tiles),
    )


def _buffer(buffer: Buffer) -> tuple[int, ...]:
    return int(buffer.space), buffer.index, buffer.offset


def _steps(steps: Sequence[Step]) -> Iterable[tuple[Field, ...]]:
    first = 0
    for step in steps:
        count = len(step.buffers)
        numbers = step.tasks, first, count, step.scratch_bytes
        yield At(step.kernel), *numbers, step.name
        first += count


def _moves(table: ProgramTable) -> Iterable[tuple[int, ...]]:
    first = [0]
    for step in table.steps:
        first.append(first[-1] + len(step.buffers))
    for repeat in table.repeats:
        for move in repeat.moves:
            yield move.stride, first[move.step] + move.operand, move.way


def _repeats(table: ProgramTable) -> Iterable[tuple[int, ...]]:
    first, read = 0, len(table.buffers) - len(table.read)
    for repeat in table.repeats:
        count = len(repeat.moves)
        steps = repeat.first, repeat.count, first, count, int(repeat.beside)
        told = (NONE if x == NONE else read + x for x in (repeat.limit, repeat.flag))
        yield repeat.trips, repeat.points, *steps, *told
        first += count


def _tensors(name: str, tensors: Sequence[Tensor]) -> list[Array]:
    shapes = [
        Array(f"{name}_shape_{index}", SHAPE, [(size,) for size in tensor.known])
        for index, tensor in enumerate(tensors)
        if tensor.shape
    ]
    rows = [
        (
            x.name,
            int(x.element),
            len(x.shape),
            At(f"{name}_shape_{index}" if x.shape else ""),
        )
        for index, x in enumerate(tensors)
    ]
    return [*shapes, Array(name, TENSOR, rows)]
