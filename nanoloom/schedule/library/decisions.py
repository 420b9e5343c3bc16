"""What a chosen schedule says of its stages' code beside their loops.

The directives that change no loop: how tiles that are not full are computed, and what
is shared between points.  Each is stated wherever it is legal.
"""

from __future__ import annotations

from collections.abc import Iterator

from nanoloom.errors import Error
from nanoloom.nest.contraction import bits, roles
from nanoloom.nest.granularity import JAMMED
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.kernel import STACK_BYTES
from nanoloom.schedule.directives.note import Note
from nanoloom.schedule.directives.tails import has_all_points
from nanoloom.schedule.families import FAMILIES
from nanoloom.schedule.language import (
    Balance,
    Directive,
    InitWithAddend,
    Nanokernel,
    ReduceJointly,
    ReuseWindow,
    Scalarize,
    Schedule,
    Stack,
    Tail,
    Vectorize,
    VectorizeRest,
    Versions,
)
from nanoloom.schedule.library.instructions import instruction_of
from nanoloom.schedule.library.panels import row_of
from nanoloom.target.facts import Target


def with_decisions(schedule: Schedule, nest: LoopNest, target: Target) -> Schedule:
    """A schedule and its candidates, with what is decided of their stages' code."""
    return schedule.each(lambda words: decided(words, nest, target))


def decided_anew(
    words: tuple[Directive, ...], nest: LoopNest, target: Target
) -> tuple[Directive, ...]:
    """The words of other loops, with what is decided of the code of these."""
    kept = (x for x in words if not isinstance(x, (Note, Stack, VectorizeRest)))
    return decided(tuple(kept), nest, target)


def decided(
    words: tuple[Directive, ...], nest: LoopNest, target: Target
) -> tuple[Directive, ...]:
    """The words, and one for each decision that can be carried out."""
    made = Schedule(words).apply(nest)
    found: list[Directive] = []
    for word in words:
        if isinstance(word, Nanokernel):
            found += (x for x in tails(word, made) if is_legal(x, made))
    for name in dict.fromkeys(x.stage for x in words if isinstance(x, Vectorize)):
        found += (x for x in shared(made.stage(name)) if is_legal(x, made))
        found += instruction_of(name, words, made, target)
    widths = [x.lanes.count * element_bits(x.stage, made) for x in words
              if isinstance(x, Vectorize) and x.lanes.scalable]  # fmt: skip
    if widths:
        found.append(VectorizeRest(max(widths)))
    elif not nest.is_whole:
        found.append(VectorizeRest(target.vector.bits, target.vector.scalable))
    found += [Stack(STACK_BYTES)]
    return (*words, *(x for x in dict.fromkeys(found) if x not in words))


def element_bits(stage: str, nest: LoopNest) -> int:
    return bits(nest.stage(stage).writes[0].element)


def shared(stage: Statement) -> Iterator[Directive]:
    """What points of a stage's vectors can share, or that they are numbers."""
    if stage.calls:
        yield Scalarize(stage.name)
    if stage.is_reduction:
        yield ReduceJointly(stage.name, bits("u8") if is_packed(stage) else JAMMED)
        yield ReuseWindow(stage.name)
        yield InitWithAddend(stage.name)


def is_packed(stage: Statement) -> bool:
    """Whether a sum puts the bits of conditions into numbers."""
    return "arith.shli" in stage.body and "arith.ori" in stage.body


def tails(word: Nanokernel, nest: LoopNest) -> Iterator[Directive]:
    """What tiles of a nanokernel do that are not full.

    Those of kernels for any number of rows have versions for few, and no other tail:
    each version would have it.  Rows of a known number leave one that is few.
    """
    stage, shape = nest.stage(word.stage), roles(nest.stage(word.stage))
    of_any_size = any(axis.is_sample for x in nest.stages for axis in x.axes)
    if shape is None:
        return
    if of_any_size:
        yield Versions(word.stage, tuple(fewer_rows(word.rows)))
        yield Balance(word.stage)
        return
    row = row_of(shape)
    if row is not None and word.packed and FAMILIES[word.family].versions:
        few = shape.extents[row] % word.rows
        if few and has_all_points(nest, stage.name, stage.axes[row]):
            yield Versions(word.stage, (few,))
    columns = stage.axes[shape.column].extent
    if isinstance(columns, int):
        panels, rest = divmod(columns, word.vectors * word.lanes.count)
        if panels and rest:
            yield Tail(word.stage, -(-rest // word.lanes.count))


def fewer_rows(rows: int) -> list[int]:
    """Of the versions that a tile of so many rows has beside its own.

    All that are more than half of them; below that powers of two: so few rows wait for
    what they load, and two small tiles take as long as one that is not full.
    """
    powers = (1 << n for n in reversed(range((rows // 2).bit_length())))
    return [*range(rows - 1, rows // 2, -1), *powers]


def is_legal(word: Directive, nest: LoopNest) -> bool:
    try:
        word.apply(nest)
    except Error:
        return False
    return True
