"""The table of a program as C source: constants only, no code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nanoloom.binary.c_strings import c_string
from nanoloom.binary.sizes_source import NO_SIZES, sizes_c
from nanoloom.binary.table import Buffer, Check, ProgramTable, Step
from nanoloom.interface.tensor import NONE, Tensor

# Of nanoloom/runtime, without .c: what runs a program, in one thread or on a pool.
PROGRAM_SOURCES = ("program", "kernel_call", "checks", "control", "clock")
PARAMETER_SYMBOL = "nanoloom_parameter_block"


def program_c(table: ProgramTable, *, parameters_inside: bool = False) -> str:
    """C source that defines `nanoloom_program` and `nanoloom_open_sizes`.

    To be compiled beside sizes.h.

    With `parameters_inside` the table points at the symbol PARAMETER_SYMBOL, which
    another object must define; otherwise its pointer is NULL and the loader brings one.
    """
    kernels = sorted({step.kernel for step in table.steps})
    buffers = table.buffers
    return "\n".join(
        [
            "/* Written by nanoloom: the steps of one model. */",
            '#include "sizes.h"',
            "",
            *(
                f"void {name}(void *const *, int64_t, int64_t, void *);"
                for name in kernels
            ),
            f"extern const char {PARAMETER_SYMBOL}[];" if parameters_inside else "",
            *_array("nanoloom_buffer", "buffers", map(_buffer, buffers)),
            *_array("nanoloom_step", "steps", _steps(table.steps)),
            *_array("nanoloom_check", "checks", map(_check, table.checks)),
            *_array("nanoloom_move", "moves", _moves(table)),
            *_array("nanoloom_repeat", "repeats", _repeats(table)),
            *_tensors("inputs", table.inputs),
            *_tensors("outputs", table.outputs),
            *_array("nanoloom_number", "numbers", _numbers(table)),
            *_array("nanoloom_room", "rooms", _rooms(table)),
            *(sizes_c(table, table.sizes) if table.sizes else [NO_SIZES]),
            "extern const struct nanoloom_program nanoloom_program;",
            "const struct nanoloom_program nanoloom_program = {",
            *_fields(table, buffers, parameters_inside=parameters_inside),
            "};",
            "",
        ]
    )


def _fields(
    table: ProgramTable, buffers: tuple[Buffer, ...], *, parameters_inside: bool
) -> list[str]:
    """The table's own fields."""
    return [
        f"    .steps = {'steps' if table.steps else '0'},",
        f"    .buffers = {'buffers' if buffers else '0'},",
        f"    .checks = {'checks' if table.checks else '0'},",
        f"    .repeats = {'repeats' if table.repeats else '0'},",
        f"    .moves = {'moves' if any(x.moves for x in table.repeats) else '0'},",
        f"    .inputs = {'inputs' if table.inputs else '0'},",
        f"    .outputs = {'outputs' if table.outputs else '0'},",
        f"    .numbers = {'numbers' if table.numbers else '0'},",
        f"    .rooms = {'rooms' if table.rooms else '0'},",
        f"    .parameters = {PARAMETER_SYMBOL if parameters_inside else '0'},",
        f"    .arena_bytes = {table.arena_bytes},",
        f"    .parameter_bytes = {table.parameter_bytes},",
        f"    .scratch_bytes = {table.scratch_bytes},",
        f"    .alone_bytes = {table.alone_bytes},",
        f"    .step_count = {len(table.steps)},",
        f"    .buffer_count = {len(buffers)},",
        f"    .check_count = {len(table.checks)},",
        f"    .repeat_count = {len(table.repeats)},",
        f"    .input_count = {len(table.inputs)},",
        f"    .output_count = {len(table.outputs)},",
        f"    .kept_count = {table.kept},",
        f"    .number_count = {len(table.numbers)},",
        f"    .room_count = {len(table.rooms)},",
        f"    .needs_tiles = {int(table.needs_tiles)},",
    ]


def _buffer(buffer: Buffer) -> str:
    return f"{int(buffer.space)}, {buffer.index}, {buffer.offset}"


def _steps(steps: Sequence[Step]) -> Iterable[str]:
    first = 0
    for step in steps:
        count = len(step.buffers)
        numbers = f"{step.tasks}, {first}, {count}, {step.scratch_bytes}"
        yield f"{step.kernel}, {numbers}, {c_string(step.name)}"
        first += count


def _moves(table: ProgramTable) -> Iterable[str]:
    first = [0]
    for step in table.steps:
        first.append(first[-1] + len(step.buffers))
    for repeat in table.repeats:
        for move in repeat.moves:
            buffer = first[move.step] + move.operand
            yield f"{move.stride}, {buffer}, {move.way}"


def _repeats(table: ProgramTable) -> Iterable[str]:
    first, read = 0, len(table.buffers) - len(table.read)
    for repeat in table.repeats:
        count = len(repeat.moves)
        numbers = f"{repeat.first}, {repeat.count}, {first}, {count}"
        numbers += f", {int(repeat.beside)}"
        for number in (repeat.limit, repeat.flag):
            numbers += f", {NONE if number == NONE else read + number}"
        yield f"{repeat.trips}, {repeat.points}, {numbers}"
        first += count


def _numbers(table: ProgramTable) -> Iterable[str]:
    return (f"{number.output}, {number.axis}" for number in table.numbers)


def _rooms(table: ProgramTable) -> Iterable[str]:
    return (f"{int(x.exact)}, {x.needed}, {c_string(x.where)}" for x in table.rooms)


def _check(check: Check) -> str:
    texts = f"{c_string(check.where)}, {c_string(check.what)}"
    return f"{check.offset}, {check.low}, {check.high}, {texts}"


def _tensors(name: str, tensors: Sequence[Tensor]) -> list[str]:
    lines: list[str] = []
    for index, tensor in enumerate(tensors):
        if tensor.shape:
            shape = ", ".join(map(str, tensor.known))
            lines.append(f"static const int64_t {name}_shape_{index}[] = {{{shape}}};")
    rows = (
        f"{c_string(tensor.name)}, {int(tensor.element)}, {len(tensor.shape)}, "
        + (f"{name}_shape_{index}" if tensor.shape else "0")
        for index, tensor in enumerate(tensors)
    )
    return lines + _array("nanoloom_tensor", name, rows)


def _array(struct: str, name: str, rows: Iterable[str]) -> list[str]:
    """Nothing for no rows: C has no empty arrays."""
    lines = [f"    {{{row}}}," for row in rows]
    if not lines:
        return []
    return [f"static const struct {struct} {name}[] = {{", *lines, "};"]
