"""The sizes of a program as constants, behind the table that they complete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from nanoloom.binary.data_object import Array, At, Field
from nanoloom.binary.sizes import SizesTable
from nanoloom.dynamic.polynomial import FACTORS, Monomial
from nanoloom.interface.bounds import UNBOUNDED, Bounds
from nanoloom.interface.tensor import NONE
from nanoloom.vector.scratch_memory import SCRATCH
from nanoloom.vector.tasks import TASKS

if TYPE_CHECKING:
    from nanoloom.binary.table import Buffer, ProgramTable, Repeat, Step
    from nanoloom.interface.tensor import Tensor

OPEN_SIZES = "nanoloom_open_sizes"
MOST = 2**63 - 1  # INT64_MAX
# The structs of sizes.h.
INT32, INT64, POINTER = "i", "q", "Q"
FLOOR, TERM, OPEN_BUFFER, OPEN_STEP = "i4xqqq", f"q{FACTORS}i", "4i", "QQq"
OPEN_CHECK, RANGE, SIZES = "ii", "i4xqq", "19Q5i4x"


def no_sizes() -> list[Array]:
    """`nanoloom_open_sizes` of a program without."""
    return [Array(OPEN_SIZES, POINTER, [(At(""),)])]


def sizes_arrays(table: ProgramTable, sizes: SizesTable, program: str) -> list[Array]:
    """What defines `nanoloom_open_sizes`, which is the last.  program: the table."""
    tensors = (*table.inputs, *table.outputs)
    bounds = [sizes.bounds_of(name) for name in sizes.dims]
    arrays = [
        column("size_dims", POINTER, sizes.dims),
        Array("size_floors", FLOOR, floors(sizes)),
        Array(
            "size_terms", TERM, [term(sizes, *t) for w in sizes.words for t in w.terms]
        ),
        column("word_ends", INT32, accumulate(len(w.terms) for w in sizes.words)),
        column("slot_words", INT32, [w for slot in sizes.slots for w in slot]),
        column("slot_ends", INT32, accumulate(map(len, sizes.slots))),
        Array("open_buffers", OPEN_BUFFER, list(map(open_buffer, table.buffers))),
        Array("open_steps", OPEN_STEP, list(map(open_step, table.steps))),
        Array("open_checks", OPEN_CHECK, [(c.slot, c.word) for c in table.checks]),
        column("shape_words", INT32, [w for x in tensors for w in words(x)]),
        Array("ranges", RANGE, ranges(table.repeats)),
        column("trip_words", INT32, [x.word for x in table.repeats]),
        column("point_words", INT32, [x.points_word for x in table.repeats]),
        column("move_words", INT32, [m.word for x in table.repeats for m in x.moves]),
        column(
            "shape_texts", POINTER, [f"[{', '.join(axes(sizes, x))}]" for x in tensors]
        ),
        column("least", INT64, [each.least for each in bounds]),
        column("most", INT64, map(most, bounds)),
        column("or_none", INT32, [int(each.or_none) for each in bounds]),
    ]
    whole = (
        At(program),
        *(At(x.name) for x in arrays),
        len(sizes.dims),
        sizes.grown,
        len(sizes.floors),
        len(sizes.words),
        len(sizes.slots),
    )
    own = Array("open_sizes", SIZES, [whole])
    return [*arrays, own, Array(OPEN_SIZES, POINTER, [(At("open_sizes"),)])]


def ranges(repeats: Sequence[Repeat]) -> list[tuple[int, ...]]:
    """For which sizes steps are repeated."""
    always = NONE, Bounds()
    within = (x.within or always for x in repeats)
    return [(word, bounds.least, most(bounds)) for word, bounds in within]


def open_buffer(buffer: Buffer) -> tuple[int, ...]:
    return buffer.slot, buffer.word, *(buffer.state or (NONE, NONE))


def open_step(step: Step) -> tuple[Field, ...]:
    """With the functions that count a kernel's tasks and bytes."""
    tasks = step.kernel + TASKS if step.is_counted else ""
    scratch = step.kernel + SCRATCH if step.grows else ""
    return At(tasks), At(scratch), max(step.word, 0)


def floors(sizes: SizesTable) -> list[tuple[int, ...]]:
    places = (sizes.dims.index(floor.dim) for floor in sizes.floors)
    pairs = zip(places, sizes.floors, strict=True)
    return [(dim, x.add, x.over, x.times) for dim, x in pairs]


def term(sizes: SizesTable, coefficient: int, names: Monomial) -> tuple[int, ...]:
    places = [sizes.factors.index(name) for name in names]
    places += [NONE] * (FACTORS - len(places))
    return coefficient, *places


def axes(sizes: SizesTable, tensor: Tensor) -> list[str]:
    """A shape in words: numbers, names of dimensions, sums and products of them."""
    return [
        str(number if word == NONE else sizes.words[word])
        for number, word in zip(tensor.shape, words(tensor), strict=True)
    ]


def most(bounds: Bounds) -> int:
    return MOST if bounds.most == UNBOUNDED else bounds.most


def words(tensor: Tensor) -> Sequence[int]:
    """For each axis, which word it is."""
    return tensor.words or [NONE] * len(tensor.shape)


def column(name: str, fields: str, numbers: Iterable[Field]) -> Array:
    """An array of what is no struct."""
    return Array(name, fields, [(x,) for x in numbers])
