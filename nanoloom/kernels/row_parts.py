"""The parts of a row's program that the loop over the rows of a batch goes round.

    for part:
        for row of the batch:
            the part's calls

Weights that a cache holds from one row to the next are read once for all rows.  What a
part hands on to later ones lies there for every row, and has left the cache when they
read it.  Parts end where that makes the fewest bytes pass the edges of the caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nanoloom.kernels.program import Program
from nanoloom.memory.calls import Call, Storage
from nanoloom.memory.live_ranges import lifetimes
from nanoloom.target.facts import Cache


def row_parts(program: Program, caches: Cache) -> list[range]:
    """The calls of each part, in order; one part where no other saves bytes.

    Counted for each row of many: of a part the weights, unless a cache holds them while
    the other operands of its calls go by; between two parts what is handed on, out and
    back, of what a cache would hold.
    """
    count = len(program.calls)
    weights = np.cumsum([0, *(weight_bytes(program, x) for x in program.calls)])
    others = [other_bytes(program, call) for call in program.calls]
    handed = {held: handed_on(program, held) for held in caches.residents}
    least, begins = np.zeros(count + 1), [0] * (count + 1)
    largest = np.zeros(count, np.int64)  # of the calls from each one to the last
    for end in range(1, count + 1):
        largest[:end] = np.maximum(largest[:end], others[end - 1])
        read = weights[end] - weights[:end]
        costs = least[:end].copy()
        for held, passing in handed.items():
            fits = np.maximum(read, largest[:end]) <= held
            costs += np.where(fits, 0, read) + passing[:end]
        begins[end] = int(np.argmin(costs))
        least[end] = costs[begins[end]]
    parts: list[range] = []
    while count:
        parts.insert(0, range(begins[count], count))
        count = begins[count]
    return parts


def weight_bytes(program: Program, call: Call) -> int:
    """Those that are walked through; of tables a row reads little."""
    tables = program.kernels[call.kernel].tables
    read = {
        place.index
        for i, place in enumerate(call.arguments)
        if place.storage is Storage.PARAMETER and i not in tables
    }
    return sum(program.parameters[i].nbytes for i in read)


def other_bytes(program: Program, call: Call) -> int:
    """Of the tensors that a call reads and writes."""
    sizes = {Storage.ARENA: program.buffers}
    for storage, specs in (
        (Storage.INPUT, program.inputs),
        (Storage.OUTPUT, program.outputs),
    ):
        sizes[storage] = tuple(prod(x.shape) * x.dtype.itemsize for x in specs)
    places = {(x.storage, x.index) for x in call.arguments if x.storage in sizes}
    return sum(sizes[storage][index] for storage, index in places)


def handed_on(program: Program, held: int) -> np.ndarray:
    """In front of each call the bytes of what is made before and read from there on.

    Out and back; what a cache does not hold anyway is not counted.
    """
    passing = np.zeros(len(program.calls), np.int64)
    for each in lifetimes(program.calls, (), program.buffers, set(), set()):
        if each.size <= held:
            passing[each.first + 1 : each.last + 1] += 2 * each.size
    return passing


def crossing(program: Program, parts: Sequence[range]) -> set[int]:
    """The buffers that live in several parts."""
    where = [number for number, part in enumerate(parts) for _ in part]
    alive = lifetimes(program.calls, (), program.buffers, set(), set())
    used = [(i, x) for i, x in enumerate(alive) if x.first < len(where)]
    return {i for i, x in used if where[x.first] != where[x.last]}
