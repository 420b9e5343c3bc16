"""Programs whose sizes have no bound, and only the data decide: run until they fit.

Such a size is the extent of one more input (interface/room_names.py), so one
program is for all of them.  A run says what it needed; where that is not what it had,
memory is bound to it and the program runs again.  What the last run that fitted had is
what the next one begins with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from nanoloom.errors import Error, InputError
from nanoloom.interface.data_dependent_outputs import Counted, counted, trimmed
from nanoloom.interface.room_names import (
    EXACT,
    needed_outputs,
    node_of,
    room_inputs,
)
from nanoloom.runtime.given_arrays import NOWHERE
from nanoloom.runtime.library import Instance, Library

Array = np.ndarray
Rooms = tuple[int, ...]
Otherwise = Callable[[Mapping[str, Array], Array | None], dict[str, Array]]
BOOL = np.dtype(np.bool_)
FIRST = 64  # elements, before a run has said more
MOST_RUNS = 80  # rooms grow at least by a half each time
MOST = 1 << 40  # elements


class Bound(Protocol):
    """A program that is bound to sizes, with names of what it takes and gives."""

    library: Library
    instance: Instance
    inputs: list[str]
    outputs: list[str]
    counted: Counted


class Opened:
    """One of a library, on the threads of an instance."""

    def __init__(self, library: Library, threads: Instance) -> None:
        self.library, self.instance = library, library.create(threads)
        self.inputs = [x.name for x in library.inputs]
        self.outputs = [x.name for x in library.outputs]
        self.counted = counted(self.outputs)


Bind = Callable[[Rooms], Bound | None]  # None where a program does not take them


class Roomed:
    """A program with rooms, for shapes of its inputs: called like any other.

    otherwise: what runs, of inputs and times, where a room is none that it takes; or
    says why nothing does.
    """

    def __init__(
        self, rooms: Sequence[str], bind: Bind, first: Bound, otherwise: Otherwise
    ) -> None:
        self.rooms, self.bind, self.otherwise = rooms, bind, otherwise
        self._lock = threading.Lock()
        self._take((FIRST,) * len(rooms), first)

    def _take(self, sizes: Rooms, bound: Bound) -> None:
        self.sizes, self.variant = sizes, bound
        self.library, self.instance = bound.library, bound.instance
        self.inputs, self.outputs = bound.inputs, bound.outputs
        self.counted = bound.counted

    def __call__(
        self,
        inputs: Mapping[str, Array],
        nanoseconds: Array | None = None,
        into: Mapping[str, Array] = NOWHERE,
    ) -> dict[str, Array]:
        for name in into:
            raise InputError(
                "depends on sizes that only the data say",
                where=f"output {name}",
                hint="take the array that the call returns",
            )
        with self._lock:  # of one program, both
            sizes, variant = self.sizes, self.variant
        for _ in range(MOST_RUNS):
            made, failure = self.run(variant, sizes, inputs, nanoseconds)
            needed = [int(made.pop(name)[0]) for name in needed_outputs(self.rooms)]
            wanted = self.wanted(sizes, needed)
            if wanted == sizes:
                with self._lock:
                    self._take(sizes, variant)
                if failure is not None:
                    raise failure
                return trimmed(made, self.counted) if self.counted else made
            if (grown := self.bind(wanted)) is None:
                return self.otherwise(inputs, nanoseconds)
            sizes, variant = wanted, grown
        raise Error(f"sizes that depend on data do not settle: {', '.join(self.rooms)}")

    def run(
        self,
        variant: Bound,
        sizes: Rooms,
        inputs: Mapping[str, Array],
        nanoseconds: Array | None,
    ) -> tuple[dict[str, Array], InputError | None]:
        """All outputs, and what was wrong, which counts where the rooms fit."""
        names = room_inputs(self.rooms)
        rooms = {n: np.zeros(s, BOOL) for n, s in zip(names, sizes, strict=True)}
        given, failure = {**inputs, **rooms}, None
        made = variant.library.new_outputs()
        try:
            variant.instance.run(
                [given[name] for name in variant.inputs], made, nanoseconds=nanoseconds
            )
        except InputError as error:
            failure = error
        return dict(zip(variant.outputs, made, strict=True)), failure

    def wanted(self, sizes: Rooms, needed: Sequence[int]) -> Rooms:
        """The rooms that the next run has."""
        made: list[int] = []
        for room, size, need in zip(self.rooms, sizes, needed, strict=True):
            if not 0 <= need < MOST:
                raise InputError(
                    f"the data want {need} elements",
                    where=f"node {node_of(room)}",
                    hint="look at the values of the inputs",
                )
            grown = size if need <= size else max(need, 2 * size)
            made.append(need if room.startswith(EXACT) else grown)
        return tuple(made)


def in_library(rooms: Sequence[str], bind: Callable[[Rooms], Opened | None]) -> Roomed:
    """Of a program that stands in a file: there is no other one for values of inputs.

    Raises InputError for sizes of its inputs that it does not take.
    """

    def refuse(_: Mapping[str, Array], __: Array | None) -> dict[str, Array]:
        reason = "the data want a size that the model does not take"
        where = f"node {', '.join(node_of(x) for x in rooms)}"
        raise InputError(reason, where=where, hint="call what is compiled in Python")

    first = bind((FIRST,) * len(rooms))
    if first is None:
        raise InputError("these are no sizes of the model")
    return Roomed(rooms, bind, first, refuse)
