"""Which stages turn what they read, in which squares."""

from __future__ import annotations

from nanoloom.nest.contraction import bits
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.directives.transpose_in_registers import lies_across
from nanoloom.schedule.language import (
    Directive,
    Schedule,
    TransposeInRegisters,
    Vectorize,
)
from nanoloom.target.facts import LANE_BITS, Target

# Bits of a piece, and lanes of what is left.  x86 puts a lane from memory into its
# place without the unit that shuffles; of vectors of any width it is a number of f64.
PIECE = LANE_BITS, LANE_BITS // bits("f32")
GATHERED = bits("f64"), 1


def with_transposes(schedule: Schedule, nest: LoopNest, target: Target) -> Schedule:
    """A schedule and its candidates, with the words for what lies across vectors."""
    if not any(crosses(nest, name) for name in (stage.name for stage in nest.stages)):
        return schedule
    return schedule.each(lambda words: transposed(words, nest, target))


def transposed(
    words: tuple[Directive, ...], nest: LoopNest, target: Target
) -> tuple[Directive, ...]:
    """The words, and one more for each stage with vectors that others lie across."""
    found = [
        TransposeInRegisters(word.stage, *(GATHERED if word.lanes.scalable else PIECE))
        for word in words
        if isinstance(word, Vectorize)
        and (not word.lanes.scalable or target.isa.exchanges_lanes)
        and word.stage in {stage.name for stage in nest.stages}
        and crosses(nest, word.stage, axis_of(word, words, nest))
    ]
    return (*words, *dict.fromkeys(found))


def axis_of(word: Vectorize, words: tuple[Directive, ...], nest: LoopNest) -> str:
    """The axis whose points become lanes."""
    if word.loop in nest.stage(word.stage).names:
        return word.loop
    placement = Schedule(words[: words.index(word)]).apply(nest).placement(word.stage)
    loop = placement.loop(word.loop)
    assert loop is not None, "a chosen schedule names loops that are there"
    return loop.axis


def crosses(nest: LoopNest, name: str, axis: str = "") -> bool:
    """Whether a stage without sums reads across an axis, or any without a name."""
    stage = nest.stage(name)
    axes = [axis] if axis else list(stage.names)
    return not stage.is_reduction and any(lies_across(stage, each) for each in axes)
