"""Programs whose sizes have no bound, and only the data decide: run until they fit.

Such a size is the extent of one more input (graph/data_dependent/rooms.py), so one
program is for all of them.  A run says what it needed; where that is not what it had,
memory is bound to it and the program runs again.  What the last run had is what the
next one begins with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nanoloom.binding import deciding
from nanoloom.errors import Error, InputError
from nanoloom.graph.data_dependent.rooms import EXACT, needed_outputs, room_inputs
from nanoloom.interface.data_dependent_outputs import trimmed
from nanoloom.interface.interface import Interface
from nanoloom.runtime.given_arrays import NOWHERE
from nanoloom.runtime.variant import Variant
from nanoloom.source import Source

if TYPE_CHECKING:
    import onnx_ir

Array = np.ndarray
Rooms = tuple[int, ...]
OfValues = Callable[[Mapping[str, Array]], Variant]  # by inputs that decide shapes
BOOL = np.dtype(np.bool_)
FIRST = 64  # elements, before a run has said more
MOST_RUNS = 80  # rooms grow at least by a half each time
MOST = 1 << 40  # elements


class RoomedSource(Source):
    """A model with one more input for each of its rooms, of which the shape counts."""

    def __init__(self, source: Source, rooms: Sequence[str]) -> None:
        self.given, self.source, self.rooms = source.given, source, rooms

    @property
    def digest(self) -> str:
        return f"{self.source.digest} with {self.rooms}"

    def is_hashed(self) -> bool:
        return self.source.is_hashed()

    def model(self) -> onnx_ir.Model:
        return self.source.model()

    def bound(
        self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]
    ) -> onnx_ir.Model:
        """A copy of the model for these input shapes, and rooms."""
        import onnx_ir as ir

        names = room_inputs(self.rooms)
        given = {name: shape for name, shape in shapes.items() if name not in names}
        bound = self.source.bound(given, values)
        for name in names:
            value = ir.Value(
                name=name,
                shape=ir.Shape(shapes[name]),
                type=ir.TensorType(ir.DataType.BOOL),
            )
            bound.graph.inputs.append(value)
        return bound


def dimension(room: int) -> str:
    """The name of a room's extent, which no model has."""
    return f"nanoloom_room_{room}"


def interfaces(rooms: Sequence[str]) -> list[Interface]:
    names = room_inputs(rooms)
    return [Interface(n, (dimension(i),), BOOL) for i, n in enumerate(names)]


class Roomed(Variant):
    """A program with rooms, for shapes of its inputs: called like any other.

    bind: the program for numbers of its rooms, None where there is none; of_values: for
    values of inputs, which is then made.
    """

    def __init__(
        self,
        rooms: Sequence[str],
        bind: Callable[[Rooms], Variant | None],
        first: Variant,
        of_values: OfValues,
    ) -> None:
        self.rooms, self.bind, self.of_values = rooms, bind, of_values
        self.name = f"{first.name} {rooms}"
        self._lock = threading.Lock()
        self._take((FIRST,) * len(rooms), first)

    def _take(self, sizes: Rooms, variant: Variant) -> None:
        self.sizes, self.variant = sizes, variant
        self.library, self.instance = variant.library, variant.instance
        self.inputs, self.outputs = variant.inputs, variant.outputs
        self.counted, self._block = variant.counted, None

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
        sizes, variant = self.sizes, self.variant
        for _ in range(MOST_RUNS):
            made, failure = self.run(variant, sizes, inputs, nanoseconds)
            needed = [int(made.pop(name)[0]) for name in needed_outputs(self.rooms)]
            wanted = self.wanted(sizes, needed)
            if wanted == sizes:
                if failure is not None:
                    raise failure
                return trimmed(made, self.counted) if self.counted else made
            if (grown := self.bind(wanted)) is None:
                return deciding(inputs, (), self.of_values)[0](inputs, nanoseconds)
            sizes, variant = wanted, grown
            with self._lock:
                self._take(sizes, variant)
        raise Error(f"sizes that depend on data do not settle: {', '.join(self.rooms)}")

    def run(
        self,
        variant: Variant,
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
                    where=f"node {room.removeprefix(EXACT)}",
                    hint="look at the values of the inputs",
                )
            grown = size if need <= size else max(need, 2 * size)
            made.append(need if room.startswith(EXACT) else grown)
        return tuple(made)
