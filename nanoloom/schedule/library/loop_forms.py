"""The target's form of loops over vectors, for the stages that can have it."""

from __future__ import annotations

from dataclasses import replace

from nanoloom.errors import Error
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.language import Directive, Schedule, Vectorize
from nanoloom.target.facts import Target
from nanoloom.target.tail_forms import MASKED_REMAINDER, VECTOR_LENGTH


def with_forms(schedule: Schedule, nest: LoopNest, target: Target) -> Schedule:
    """A schedule and its candidates, with the form that is a fact of the target.

    Stages that cannot have it keep the usual one.
    """
    if target.vector.form == MASKED_REMAINDER:
        return schedule
    return schedule.each(lambda words: formed(words, nest, target.vector.form))


def formed(
    words: tuple[Directive, ...], nest: LoopNest, form: str
) -> tuple[Directive, ...]:
    """The words, with the form wherever they are legal with it."""
    for place, word in enumerate(words):
        if isinstance(word, Vectorize):
            chains = 1 if form == VECTOR_LENGTH else word.chains
            other = replace(word, form=form, chains=chains)
            tried = (*words[:place], other, *words[place + 1 :])
            if is_legal(tried, nest):
                words = tried
    return words


def is_legal(words: tuple[Directive, ...], nest: LoopNest) -> bool:
    try:
        Schedule(words).apply(nest)
    except Error:
        return False
    return True
