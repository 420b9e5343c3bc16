"""The programs with rooms of a model, found as it asks for them.

Its named dimensions are sizes of the same program, where that is possible; otherwise
each set of shapes has one of its own, whose rooms alone are sizes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, TypeVar

from nanoloom.api.open_program import OpenProgram
from nanoloom.api.rooms.roomed_source import RoomedSource, dimension, interfaces
from nanoloom.api.rooms.roomed_variant import OfValues, RoomedVariant
from nanoloom.cache import key
from nanoloom.errors import DataDependent, InputError
from nanoloom.graph.data_dependent.rooms import Unbounded
from nanoloom.interface.room_names import (
    EXACT,
    are_by_sizes,
    node_of,
    room_inputs,
)
from nanoloom.model.binding import Binding
from nanoloom.runtime.roomed import FIRST, Rooms

if TYPE_CHECKING:
    from nanoloom.compiler import Compiled
    from nanoloom.dynamic.samples import Samples
    from nanoloom.runtime.variant import Variant

Shapes = Mapping[str, tuple[int, ...]]
Made = TypeVar("Made")
MOST = 4  # rooms of one program


@dataclass
class OpenRooms:
    """open: the model's program without rooms, which says what is wanted."""

    open: OpenProgram
    rooms: tuple[str, ...] = ()
    _made: dict[object, OpenProgram] = field(default_factory=dict[object, OpenProgram])
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def found(
        self,
        shapes: Shapes,
        threads: int,
        plain: Callable[[], Variant | None] | None,
        of_values: OfValues,
    ) -> Variant | None:
        """The program for all sizes of these shapes, or for them alone.

        plain: what is made for these shapes without rooms, where it may be asked;
        of_values: for values of inputs.  None where they must decide about shapes.
        """
        while True:
            try:
                if (roomed := self.bound(shapes, threads, of_values)) is not None:
                    return roomed
                if (bound := self.open.bound(shapes, threads)) is not None:
                    return bound
                return None if plain is None else plain()
            except Unbounded as error:
                if self.asks(error):
                    continue
                return None if plain is None or not self.by_sizes else plain()
            except DataDependent:
                return None

    def decided(self) -> Samples:
        """The samples of all sizes, as OpenProgram has them: with the rooms it wants.

        Raises Unbounded where more are wanted than there may be.
        """
        self.known()
        while True:
            own = self._program(self.open.known) if self.rooms else self.open
            try:
                samples = own.decided()
            except Unbounded as error:
                if self.asks(error):
                    continue
                if not self.by_sizes:
                    raise
                return self.without_rooms()
            if not samples and self.by_sizes:
                return self.without_rooms()
            self.open.reason = own.reason
            return samples

    def without_rooms(self) -> Samples:
        """The same of the program without rooms, whose reason is the model's own."""
        try:
            return self.open.decided()
        except Unbounded:
            return ()

    def compiled(
        self, without: Callable[[], Compiled], shapes: Shapes | None
    ) -> Compiled:
        """The program, to be written to a file whose memory grows with what is wanted.

        without: the same where no room is wanted.  shapes: of the inputs, if they are
        known.  Raises InputError where a room cannot be a size at run time.
        """
        self.known()
        if shapes is not None or not self.by_sizes:
            try:
                return without()
            except Unbounded as error:
                self.asks(error)
        numbers = {} if shapes is None else self.open.numbers(shapes) or {}
        known = {**self.open.known, **numbers}
        while True:
            own = self._program(known)
            try:
                made = own.to_link(self.names)
            except Unbounded as error:
                if self.asks(error):
                    continue
                if not self.by_sizes:
                    raise
                made = None
            if made is None:
                return without() if self.by_sizes else self.refuse(own)
            self.remember()
            return made

    def without(self, shapes: Shapes, make: Callable[[], Made]) -> Made:
        """What is made without rooms.

        Raises InputError where rooms are wanted that cannot be sizes.
        """
        try:
            return make()
        except Unbounded as error:
            if not self.rooms:
                raise
            raise self.refusal(self._programs(shapes)[-1]) from error

    def refuse(self, own: OpenProgram) -> NoReturn:
        raise self.refusal(own)

    @property
    def by_sizes(self) -> bool:
        """Whether a program for known sizes wants none of the rooms."""
        return bool(self.rooms) and are_by_sizes(self.rooms)

    def refusal(self, own: OpenProgram) -> InputError:
        """Why a room cannot be a size."""
        nodes = ", ".join(node_of(x) for x in self.rooms)
        reason = (
            "the data decide about a size that has no bound, and it cannot be a size"
        )
        open_names = [name for name in own.names if name not in self.names]
        how = " ".join(f"--dim {name}=N" for name in open_names)
        hint = f"bind the others: {how}" if how else "give it a bound, as with Min"
        reason = f"{reason} at run time: {own.reason}"
        return InputError(reason, where=f"node {nodes}", hint=hint)

    def asks(self, error: Unbounded) -> bool:
        """Note a room that is wanted; whether it is another one than before."""
        with self._lock:
            others = [room for room in error.rooms if room not in self.rooms]
            if not others or len(self.rooms) + len(others) > MOST:
                return False
            self.rooms = (*self.rooms, *others)
            self._made.clear()
            if self.by_sizes:  # the cache says no more that they are wanted
                self.remember()
            return True

    def remember(self) -> None:
        """Write down for other processes which rooms the model wants."""
        self.open.cache.put(self._name, json.dumps(self.rooms).encode())

    @property
    def _name(self) -> str:
        return key("rooms", self.open.source.digest, self.open.options.content)

    def known(self) -> None:
        """The rooms that another process found."""
        if not self.rooms and self.open.source.is_hashed():
            found = self.open.cache.get(self._name)
            self.rooms = tuple(json.loads(found)) if found is not None else ()

    def bound(
        self, shapes: Shapes, threads: int, of_values: OfValues
    ) -> Variant | None:
        """The program for these shapes; None for a model that has none with rooms."""
        with self._lock:
            self.known()
            while self.rooms:
                try:
                    return self._bound(shapes, threads, of_values)
                except Unbounded as error:
                    if not self.asks(error):
                        return None
            return None

    def _bound(
        self, shapes: Shapes, threads: int, of_values: OfValues
    ) -> Variant | None:
        tried = self._programs(shapes)
        for program in tried:

            def bind(sizes: Rooms, program: OpenProgram = program) -> Variant | None:
                names = room_inputs(self.rooms)
                rooms = {n: (size,) for n, size in zip(names, sizes, strict=True)}
                return program.bound({**shapes, **rooms}, threads, empty=self.names)

            first = bind((FIRST,) * len(self.rooms))
            if first is not None:
                self.remember()
                if self.open.names:
                    self.open.reason = tried[0].reason
                return RoomedVariant(self.rooms, bind, first, of_values)
        return self._of_numbers(shapes, threads, of_values)

    def _of_numbers(
        self, shapes: Shapes, threads: int, of_values: OfValues
    ) -> Variant | None:
        """With numbers of its rooms, compiled for each: where rooms are not sizes.

        They at least double each time.  None for sizes that must be exact.
        """
        if any(room.startswith(EXACT) for room in self.rooms):
            return None
        own, names = self.open, room_inputs(self.rooms)
        source = RoomedSource(own.source, self.rooms)

        def bind(sizes: Rooms) -> Variant:
            rooms = {n: (size,) for n, size in zip(names, sizes, strict=True)}
            given = own.options, own.cache, own.report, {**shapes, **rooms}, own.values
            return Binding(source, *given).loaded(threads)

        first = bind((FIRST,) * len(self.rooms))
        self.remember()
        return RoomedVariant(self.rooms, bind, first, of_values)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(dimension(i) for i in range(len(self.rooms)))

    def _programs(self, shapes: Shapes) -> list[OpenProgram]:
        """With all dimensions open, and with those alone that are rooms."""
        dims = self.open.numbers(shapes) or {}
        known = [self.open.known, {**self.open.known, **dims}]
        several = bool(dims) and not self.by_sizes
        return [self._program(each) for each in known[: 1 + several]]

    def _program(self, known: Mapping[str, int]) -> OpenProgram:
        name = tuple(sorted(known.items()))
        if name not in self._made:
            given = self.open
            self._made[name] = OpenProgram(
                [*given.inputs, *interfaces(self.rooms)],
                known,
                RoomedSource(given.source, self.rooms),
                given.options,
                given.cache,
                given.report,
                given.bounds,
                given.values,
            )
        return self._made[name]
