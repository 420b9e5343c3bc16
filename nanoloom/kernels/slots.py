"""Buffers whose sizes nobody knows yet share slots of the arena.

A slot is as large as the largest of its buffers, whichever that is at run time, so that
no two that are alive at once share one.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.kernels.program import Call, Program, Storage


def slots_of(program: Program, calls: Sequence[Call]) -> list[list[int]]:
    """The buffers of each slot: large ones first, each in the first that is free.

    program: of a sample, whose bytes say which are large.
    """
    alive = lifetimes(program, calls)
    order = sorted(alive, key=lambda i: (-program.buffers[i], alive[i]))
    slots: list[list[int]] = []
    for buffer in order:
        slot = next((s for s in slots if all(apart(alive, buffer, i) for i in s)), None)
        if slot is None:
            slots.append([buffer])
        else:
            slot.append(buffer)
    return slots


def lifetimes(program: Program, calls: Sequence[Call]) -> dict[int, tuple[int, int]]:
    """The first and the last call of each buffer of the arena."""
    alive: dict[int, tuple[int, int]] = {}
    for step, call in enumerate(calls):
        for place in call.arguments:
            if place.storage is Storage.ARENA:
                first, _ = alive.get(place.index, (step, step))
                alive[place.index] = first, step
    for word in program.checks:  # read when all calls are done
        first, _ = alive.get(word.buffer, (0, 0))
        alive[word.buffer] = first, len(calls)
    return alive


def apart(alive: dict[int, tuple[int, int]], one: int, other: int) -> bool:
    """Whether two buffers are never alive at once."""
    (begin, end), (start, stop) = alive[one], alive[other]
    return end < start or stop < begin
