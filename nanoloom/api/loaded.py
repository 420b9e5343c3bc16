"""A program in a shared library, as `Program.save` or `nanoloom compile` wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nanoloom import manifest
from nanoloom.api.calling import CallableProgram, Into, Running
from nanoloom.api.sessions.library_session import LoadedSession
from nanoloom.errors import Error, public
from nanoloom.interface.bounds import require_within
from nanoloom.interface.check_inputs import check_inputs
from nanoloom.interface.data_dependent_outputs import counted, trimmed
from nanoloom.interface.interface import Interface
from nanoloom.interface.named_file import named_file, require_file
from nanoloom.interface.room_names import rooms_among
from nanoloom.interface.tensor import Tensor
from nanoloom.interface.vocabulary import Strings
from nanoloom.runtime.bounded_cache import BoundedCache
from nanoloom.runtime.given_arrays import place, run_exact
from nanoloom.runtime.library import Instance, Library
from nanoloom.runtime.open_sizes import Shape
from nanoloom.runtime.roomed import Opened, Roomed, Rooms, in_library
from nanoloom.runtime.threads import thread_count

Array = np.ndarray[Any, np.dtype[Any]]


_HOW = "save it with session=True, or nanoloom compile --session"
MOST_SIZES, MOST_BYTES = 32, 1 << 30  # bound programs in memory, and their arenas


@public
def load(path: str | Path, threads: int | None = None) -> Loaded:
    """A shared library that `Program.save` or `nanoloom compile -o` wrote."""
    return Loaded(named_file(path), thread_count(threads))


class Loaded(CallableProgram):
    """A saved program: call it with a dict of arrays, get a dict of arrays.

    inputs, outputs: name, shape and dtype of each.  threads: that it runs with; in a
    `with` they end with the block, and it is not called any more then.
    """

    def __init__(self, path: Path, threads: int) -> None:
        require_file(path)
        self.library = Library(path)
        self._place = path.absolute()  # the folder may be another one later
        self._manifest = manifest.read(path) or {}  # and the file
        sizes, tensors = self.library.open, (self.library.inputs, self.library.outputs)
        self.inputs = interface(tensors[0], sizes.inputs if sizes else None)
        made = interface(tensors[1], sizes.outputs if sizes else None)
        self._rooms = rooms_among([x.name for x in self.inputs])
        self.inputs = self.inputs[: len(self.inputs) - len(self._rooms)]
        self._numbers = counted([x.name for x in made])
        own = len(self._rooms) + len(self._numbers)
        self.outputs = tuple(
            up_to(x, {axis for _, axis, name in self._numbers if name == x.name})
            for x in made[: len(made) - own]
        )
        words = self._manifest.get("strings", {})
        self._strings = Strings(**{key: tuple(words[key]) for key in words})
        self.inputs, self.outputs = (
            tuple(replace(x, is_text=x.name in names) for x in sides)
            for sides, names in (
                (self.inputs, self._strings.inputs),
                (self.outputs, self._strings.outputs),
            )
        )
        self.instance = self.library.create(threads)
        self._last: tuple[Library, Instance] | None = None  # of the last call's sizes
        self._names = [x.name for x in self.inputs]
        self._closed = False
        self._bound = BoundedCache[tuple[int, ...], Opened](
            MOST_SIZES, MOST_BYTES, lambda _, bound: bound.instance.arena_bytes
        )
        self._roomed = BoundedCache[tuple[int, ...], Roomed](
            MOST_SIZES, MOST_BYTES, lambda _, roomed: roomed.instance.arena_bytes
        )

    @property
    def threads(self) -> int:
        return self.instance.threads

    @property
    def manifest(self) -> dict[str, Any]:
        """What the library says of itself (nanoloom.manifest): the format, the version
        that compiled it, of which model, for which targets."""
        return deepcopy(self._manifest)

    @public
    def session(self, capacity: int = 0) -> LoadedSession:
        """Calls one after the other that keep keys and values (docs/decoding.md).

        capacity: tokens that there is room for at first.  Raises Error for a library
        that was saved without.
        """
        self._require_open()
        if not self.library.pairs:
            reason = "it was saved without a session"
            raise Error(reason, where=str(self.library.path), hint=_HOW)
        tensors = self.inputs, self.outputs
        own = self.library, self.instance, self._require_open
        return LoadedSession(*own, *tensors, capacity)

    def _run(self, inputs: Mapping[str, object], into: Into) -> dict[str, Array]:
        if self._strings and hasattr(inputs, "keys"):
            return self._strings.call(inputs, lambda given: self._code(given, into))
        return self._code(inputs, into)

    def _code(self, inputs: Mapping[str, object], into: Into) -> dict[str, Array]:
        """Run once, with numbers for strings."""
        self._require_open()
        if self.library.pairs:
            reason = "it keeps tokens between calls"
            hint = "call what session() gives"
            raise Error(reason, where=str(self.library.path), hint=hint)
        if self._rooms:
            arrays = check_inputs(self.inputs, inputs)
            return self._with_rooms(arrays)(arrays, into=into)
        last, made = self._last, None
        if last is not None and type(inputs) is dict and not into:
            made = run_exact(*last, self._names, inputs)
        if last is None or made is None:
            arrays = check_inputs(self.inputs, inputs)
            last = self._last = self._for(arrays)
            made = last[0].new_outputs()
            names = [x.name for x in last[0].outputs]
            place(names, made, into, [name for _, _, name in self._numbers])
            last[1].run([arrays[x.name] for x in self.inputs], made)
        names = (x.name for x in last[0].outputs)
        found = dict(zip(names, made, strict=True))
        return trimmed(found, self._numbers) if self._numbers else found

    def plain_instance(self, arrays: Mapping[str, Array]) -> Instance | None:
        """What runs arrays of these shapes; None where a call does more than that."""
        more = self._strings or self._rooms or self._numbers or self.library.pairs
        if more or self._closed:
            return None
        return self._for(check_inputs(self.inputs, arrays))[1]

    def _loaded(self) -> Iterable[Running]:
        return (self, *self._bound.values(), *self._roomed.values())

    @property
    def _title(self) -> str:
        return f"nanoloom.Loaded {self.library.path.name}"

    def _for(self, arrays: Mapping[str, Array]) -> tuple[Library, Instance]:
        """The program, bound to the sizes of these arrays if it has sizes."""
        if self.library.open is None:
            return self.library, self.instance
        sizes = self._sizes(arrays)
        if (found := self._bound.get(sizes)) is None:
            self._require_within(arrays)
            found = Opened(self.library.bound(sizes), self.instance)
            self._bound.put(sizes, found)
        return found.library, found.instance

    def _with_rooms(self, arrays: Mapping[str, Array]) -> Roomed:
        """The program with rooms, for the sizes of these arrays."""
        sizes = self._sizes(arrays)
        if (found := self._roomed.get(sizes)) is None:
            self._require_within(arrays)

            def bind(rooms: Rooms) -> Opened | None:
                try:
                    return Opened(self.library.bound((*sizes, *rooms)), self.instance)
                except Error:
                    return None

            found = in_library(self._rooms, bind)
            self._roomed.put(sizes, found)
        return found

    def _sizes(self, arrays: Mapping[str, Array]) -> tuple[int, ...]:
        """The numbers of the dimensions, without rooms."""
        dims = self.library.dims[: len(self.library.dims) - len(self._rooms)]
        rows = [zip(x.shape, arrays[x.name].shape, strict=True) for x in self.inputs]
        numbers = {d: number for row in rows for d, number in row}
        return tuple(numbers[name] for name in dims)

    def _require_within(self, arrays: Mapping[str, Array]) -> None:
        if self.library.open is not None:
            shapes = {name: array.shape for name, array in arrays.items()}
            require_within(self.library.open.bounds, self.inputs, shapes)

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self.instance.close()

    def _require_open(self) -> None:
        if self._closed:
            reason = "it was closed at the end of its `with`"
            where = str(self.library.path)
            raise Error(reason, where=where, hint="load it again")

    def __reduce__(self) -> tuple[object, ...]:
        return load, (str(self._place), self.instance.threads)


def up_to(output: Interface, axes: Set[int]) -> Interface:
    """An output whose extents along some axes depend on the data: `..8`."""
    shape = [f"..{n}" if i in axes else n for i, n in enumerate(output.shape)]
    return replace(output, shape=tuple(shape)) if axes else output


def interface(
    tensors: Sequence[Tensor], shapes: Sequence[Shape] | None
) -> tuple[Interface, ...]:
    """shapes: with names of sizes; None where there are none."""
    return tuple(
        Interface(x.name, shape, x.element.dtype)
        for x, shape in zip(tensors, shapes or [x.shape for x in tensors], strict=True)
    )
