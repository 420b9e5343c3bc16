"""A schedule with all that was weighed for it, each with what is predicted of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.language import Candidate, Directive, Schedule
from nanoloom.schedule.predicted_cost import NO_KERNELS, predicted
from nanoloom.target.facts import Target

Form = tuple[tuple[Directive, ...], str]  # words, and the reason


def schedule_of(
    nest: LoopNest,
    target: Target,
    chosen: Form,
    others: Iterable[Form] = (),
    kernels: Mapping[str, float] = NO_KERNELS,
) -> Schedule:
    """A schedule of the chosen form, all of them its candidates.

    kernels: the cost of nanokernels (schedule/predicted_cost.py).
    """
    forms = dict.fromkeys((chosen, *others))

    def weighed() -> list[Candidate]:
        return [
            Candidate(
                words, why, predicted(Schedule(words).apply(nest), target, kernels)
            )
            for words, why in forms
        ]

    return with_candidates(chosen, weighed)


def with_candidates(
    chosen: Form, weighed: Callable[[], Iterable[Candidate]]
) -> Schedule:
    """A schedule that can make its candidates, the cheapest first."""

    def ranked() -> list[Candidate]:
        return sorted(weighed(), key=lambda each: round(each.cost, 3))

    return Schedule(*chosen, ranked)
