"""From which call to which the buffers of a program are in use."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.memory.calls import Call, Repeated, Storage
from nanoloom.memory.memory_plan import Lifetime


def lifetimes(
    calls: Sequence[Call],
    repeats: Sequence[Repeated],
    sizes: Sequence[int],
    inner: set[int],
    read_later: set[int],
) -> list[Lifetime]:
    """Of each buffer of `sizes` bytes, between the first call and the last one.

    What a repeat does not make for one trip alone (`inner`) lives in all of its trips,
    and all that repeats beside each other use in those of all of them; read_later: when
    all calls are done.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for step, call in enumerate(calls):
        chain = chain_of(repeats, step)
        for place in call.arguments:
            if place.storage is Storage.ARENA:
                begin, end = step, step
                if len(chain) > 1 or (chain and place.index not in inner):
                    begin, end = chain[0].first, chain[-1].first + chain[-1].count - 1
                first[place.index] = min(begin, first.get(place.index, begin))
                last[place.index] = max(end, last.get(place.index, end))
    for repeat in repeats:
        begin, end = repeat.first, repeat.first + repeat.count - 1
        for place in repeat.until.places if repeat.until else ():
            if place.storage is Storage.ARENA:
                first[place.index] = min(begin, first.get(place.index, begin))
                last[place.index] = max(end, last.get(place.index, end))
    unused = len(calls)
    last |= dict.fromkeys(read_later, unused)
    return [
        Lifetime(size, first.get(i, unused), last.get(i, unused))
        for i, size in enumerate(sizes)
    ]


def chain_of(repeats: Sequence[Repeated], call: int) -> list[Repeated]:
    """The repeat that a call is in, and those beside it; [] outside of any."""
    chain: list[Repeated] = []
    for repeat in repeats:
        if not repeat.beside:
            if any(call in x for x in chain):
                return chain
            chain = []
        chain.append(repeat)
    return chain if any(call in x for x in chain) else []
