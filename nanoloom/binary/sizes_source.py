"""The sizes of a program as C source, behind the table that they complete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from nanoloom.binary.c_strings import c_string
from nanoloom.binary.sizes import SizesTable
from nanoloom.dynamic.polynomial import DEGREE, Monomial
from nanoloom.interface.bounds import UNBOUNDED, Bounds
from nanoloom.interface.tensor import NONE
from nanoloom.vector.scratch_memory import SCRATCH
from nanoloom.vector.tasks import TASKS

if TYPE_CHECKING:
    from nanoloom.binary.table import Buffer, ProgramTable, Repeat, Step
    from nanoloom.interface.tensor import Tensor

POINTER = "const struct nanoloom_sizes *const nanoloom_open_sizes"
NO_SIZES = f"extern {POINTER};\n{POINTER} = 0;"


def sizes_c(table: ProgramTable, sizes: SizesTable) -> list[str]:
    """Lines that define `nanoloom_open_sizes`."""
    tensors = (*table.inputs, *table.outputs)
    terms = [term(sizes, *t) for word in sizes.words for t in word.terms]
    return [
        *declared(table.steps),
        *array("char *const", "size_dims", map(c_string, sizes.dims)),
        *array("struct nanoloom_floor", "size_floors", floors(sizes)),
        *array("struct nanoloom_term", "size_terms", terms),
        *array("int32_t", "word_ends", ends([len(w.terms) for w in sizes.words])),
        *array("int32_t", "slot_words", [w for slot in sizes.slots for w in slot]),
        *array("int32_t", "slot_ends", ends([len(slot) for slot in sizes.slots])),
        *array(
            "struct nanoloom_open_buffer",
            "open_buffers",
            map(open_buffer, table.buffers),
        ),
        *array("struct nanoloom_open_step", "open_steps", map(open_step, table.steps)),
        *array(
            "struct nanoloom_open_check",
            "open_checks",
            [f"{{{c.slot}, {c.word}}}" for c in table.checks],
        ),
        *array("int32_t", "shape_words", [w for x in tensors for w in words(x)]),
        *repeated(table.repeats),
        *array(
            "char *const",
            "shape_texts",
            [c_string(f"[{', '.join(axes(sizes, x))}]") for x in tensors],
        ),
        *bounded([sizes.bounds_of(name) for name in sizes.dims]),
        "extern const struct nanoloom_program nanoloom_program;",
        "static const struct nanoloom_sizes open_sizes = {",
        "    &nanoloom_program, size_dims, size_floors, size_terms, word_ends,",
        "    slot_words, slot_ends, open_buffers, open_steps, open_checks,",
        "    shape_words, ranges, trip_words, point_words, move_words, shape_texts,",
        "    least, most, or_none,",
        f"    {len(sizes.dims)}, {sizes.grown}, {len(sizes.floors)},",
        f"    {len(sizes.words)}, {len(sizes.slots)},",
        "};",
        f"extern {POINTER};",
        f"{POINTER} = &open_sizes;",
    ]


def bounded(bounds: Sequence[Bounds]) -> list[str]:
    """What each dimension may be."""
    return [
        *array("int64_t", "least", [each.least for each in bounds]),
        *array("int64_t", "most", map(most, bounds)),
        *array("int32_t", "or_none", [int(each.or_none) for each in bounds]),
    ]


def repeated(repeats: Sequence[Repeat]) -> list[str]:
    """Which words say how often steps are repeated, and how far operands move."""
    always = NONE, Bounds()
    ranges = [
        f"{{{word}, {bounds.least}, {most(bounds)}}}"
        for word, bounds in (x.within or always for x in repeats)
    ]
    return [
        *array("struct nanoloom_range", "ranges", ranges),
        *array("int32_t", "trip_words", [x.word for x in repeats]),
        *array("int32_t", "point_words", [x.points_word for x in repeats]),
        *array("int32_t", "move_words", [m.word for x in repeats for m in x.moves]),
    ]


def declared(steps: Iterable[Step]) -> list[str]:
    """The functions that count a kernel's tasks and bytes."""
    names = {step.kernel + TASKS for step in steps if step.is_counted}
    names |= {step.kernel + SCRATCH for step in steps if step.grows}
    return [f"int64_t {name}(const int64_t *);" for name in sorted(names)]


def open_buffer(buffer: Buffer) -> str:
    bytes_word, trips_word = buffer.state or (NONE, NONE)
    return f"{{{buffer.slot}, {buffer.word}, {bytes_word}, {trips_word}}}"


def open_step(step: Step) -> str:
    tasks = step.kernel + TASKS if step.is_counted else "0"
    scratch = step.kernel + SCRATCH if step.grows else "0"
    return f"{{{tasks}, {scratch}, {max(step.word, 0)}}}"


def floors(sizes: SizesTable) -> list[str]:
    places = (sizes.dims.index(floor.dim) for floor in sizes.floors)
    pairs = zip(places, sizes.floors, strict=True)
    return [f"{{{dim}, {x.add}, {x.over}, {x.times}}}" for dim, x in pairs]


def term(sizes: SizesTable, coefficient: int, names: Monomial) -> str:
    places = [sizes.factors.index(name) for name in names]
    places += [NONE] * (DEGREE - len(places))
    return f"{{{coefficient}, {{{', '.join(map(str, places))}}}}}"


def axes(sizes: SizesTable, tensor: Tensor) -> list[str]:
    """A shape in words: numbers, names of dimensions, sums and products of them."""
    return [
        str(number if word == NONE else sizes.words[word])
        for number, word in zip(tensor.shape, words(tensor), strict=True)
    ]


def most(bounds: Bounds) -> str:
    return "INT64_MAX" if bounds.most == UNBOUNDED else str(bounds.most)


def words(tensor: Tensor) -> Sequence[int]:
    """For each axis, which word it is."""
    return tensor.words or [NONE] * len(tensor.shape)


def ends(counts: Iterable[int]) -> list[int]:
    return list(accumulate(counts))


def array(kind: str, name: str, rows: Iterable[object]) -> list[str]:
    """Of one element where there are none: C has no empty arrays."""
    lines = [f"    {row}," for row in rows] or ["    0,"]
    return [f"static const {kind} {name}[] = {{", *lines, "};"]
