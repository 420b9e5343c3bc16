"""What all words of a schedule have in common: they make a nest of a nest."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, NoReturn, cast

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.nest.loop import How, Loop, Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement

MOST_LANES = 256


class Directive:
    """A step of a schedule; every word is a frozen dataclass of its own."""

    def apply(self, nest: LoopNest) -> LoopNest:
        """The nest behind it.

        Raises Error, and nothing has changed, where it is not legal: its `where` is the
        word, and the reason names what does not fit.
        """
        raise NotImplementedError

    def __str__(self) -> str:
        """As it is written: Split('conv', 'x', 'xo', 'xi', 5)."""
        given = [(f, getattr(self, f.name)) for f in fields(self)]  # type: ignore[arg-type]
        words: list[str] = []
        named = False
        for field, value in given:
            if field.default is not MISSING and field.default == value:
                named = True
                continue
            words.append(f"{field.name}={value!r}" if named else repr(value))
        return f"{type(self).__name__}({', '.join(words)})"


def refuse(word: object, reason: str, hint: str = "") -> NoReturn:
    raise Error(reason, where=str(word), hint=hint)


def stage_of(word: object, nest: LoopNest, name: str) -> Statement:
    """A stage by its name; Error if the nest has none of it."""
    for stage in nest.stages:
        if stage.name == name:
            return stage
    known = ", ".join(stage.name for stage in nest.stages)
    refuse(word, f"there is no stage {name}; there are {known or 'none'}")


def loop_of(word: object, placement: Placement, name: str) -> Loop:
    """A loop of a stage by its name; Error if it has none of it."""
    loop = placement.loop(name)
    if loop is None:
        known = ", ".join(placement.names)
        refuse(word, f"{placement.stage} has no loop {name}; it has {known or 'none'}")
    return loop


def require_serial(word: object, loop: Loop) -> None:
    if loop.how is not How.SERIAL:
        refuse(word, f"loop {loop.name} is {loop.how.value} already")


def require_new(word: object, placement: Placement, *names: str) -> None:
    for name in names:
        if names.count(name) > 1 or name in placement.names:
            refuse(word, f"{placement.stage} has a loop {name} already")


def require_number(word: object, what: str, value: Any, least: int = 1) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        refuse(word, f"{what} is {value}: a number from {least} on is wanted")


def require_tuple(word: object, what: str, value: Any) -> None:
    if not isinstance(value, tuple):
        refuse(word, f"{what} is {value!r}: a tuple is wanted, ({value!r},)")


def require_lanes(word: object, value: Any) -> None:
    if not isinstance(value, Lanes):
        refuse(word, f"lanes is {value}: Lanes(8), for eight, is wanted")


def require_no_nanokernel(word: object, placement: Placement) -> None:
    """That a stage's innermost loops are no nanokernel and no block already."""
    if placement.block:
        block = ", ".join(placement.block)
        refuse(word, f"the loops {block} of {placement.stage} are one block already")
    if placement.by:
        reason = "is a nanokernel, with vectors and copies of its own"
        refuse(word, f"{placement.stage} {reason}")


def require_width(word: object, lanes: Lanes) -> None:
    """That there are such vectors."""
    require_lanes(word, lanes)
    require_power(word, "lanes", lanes.count, MOST_LANES)
    if lanes == Lanes(1, scalable=True):
        refuse(word, "lanes = [1]: a scalable vector has two at least")


def require_power(word: object, what: str, value: int, most: int) -> None:
    require_number(word, what, value)
    if value > most or value & (value - 1):
        refuse(word, f"{what} = {value}: a power of two up to {most} is wanted")


def require_directives(given: Any) -> None:
    """That a schedule is what it is made of."""
    if not isinstance(given, tuple):
        raise Error("a schedule is a tuple of words", hint="(word,) for one")
    for each in cast("tuple[object, ...]", given):
        if not isinstance(each, Directive):
            raise Error(f"{each!r} is no word of schedules")


def innermost(
    loops: tuple[Loop, ...], moved: Loop, before: tuple[How, ...]
) -> tuple[Loop, ...]:
    """The loops with one more behind all but the innermost ones of these kinds."""
    place = len(loops)
    while (
        place and loops[place - 1].how in before and not loops[place - 1].is_reduction
    ):
        place -= 1
    return (*loops[:place], moved, *loops[place:])
