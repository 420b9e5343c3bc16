"""Buffers whose sizes nobody knows yet share slots of the arena.

A slot is as large as the largest of its buffers, whichever that is at run time, so that
no two that are alive at once share one.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from nanoloom.memory.calls import Call, Place, Repeated, Storage
from nanoloom.memory.live_ranges import lifetimes
from nanoloom.memory.memory_plan import Lifetime


def slots_of(
    calls: Sequence[Call],
    repeats: Sequence[Repeated],
    buffers: Sequence[int],
    read_later: set[int],
    only: Set[int] | None = None,
) -> list[list[int]]:
    """The buffers of each slot: large ones first, each in the first that is free.

    buffers: bytes of each in a sample, which say which are large.  What a repeat uses
    is alive in all of its trips; read_later: what is read when all calls are done.
    only: these alone have slots; None for all that are used.
    """
    alive = lifetimes(calls, repeats, buffers, set(), read_later)
    used = [i for i, lifetime in enumerate(alive) if lifetime.first < len(calls)]
    used = used if only is None else [i for i in used if i in only]
    order = sorted(used, key=lambda i: (-buffers[i], alive[i].first))
    slots: list[list[int]] = []
    for buffer in order:
        slot = next(
            (s for s in slots if all(conflicts(alive, buffer, i) for i in s)), None
        )
        if slot is None:
            slots.append([buffer])
        else:
            slot.append(buffer)
    return slots


def conflicts(alive: Sequence[Lifetime], one: int, other: int) -> bool:
    """Whether two buffers are never alive at once."""
    x, y = alive[one], alive[other]
    return x.last < y.first or y.last < x.first


def in_slots(call: Call, place: dict[int, int]) -> Call:
    """A call whose buffers of the arena are slots."""
    arguments = (in_slot(each, place) for each in call.arguments)
    return replace(call, arguments=tuple(arguments))


def repeat_in_slots(repeat: Repeated, place: dict[int, int]) -> Repeated:
    """A repeat that looks at slots."""
    until = repeat.until
    if until is None:
        return repeat
    return replace(repeat, until=until.changed(lambda each: in_slot(each, place)))


def in_slot(each: Place, place: dict[int, int]) -> Place:
    if each.storage is not Storage.ARENA:
        return each
    return replace(each, index=place[each.index])
