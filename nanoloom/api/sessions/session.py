"""Keys and values of earlier tokens, kept from one call to the next.

    session = program.session()
    outputs = session({"input_ids": prompt})     # without the past inputs
    outputs = session({"input_ids": next_one})

What an encoder made is given once: `session.start(outputs)` takes the keys and values
of another model's outputs, and an input that is named encoder stays until reset().

What is new is written behind what is there, in arrays of the session, so that nothing
is compiled, moved or copied for a token.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from nanoloom.api.sessions.state_pairs import StatePair, found_in, given_once
from nanoloom.errors import InputError, public
from nanoloom.interface.bounds import Bounds, require_within
from nanoloom.interface.check_inputs import check_inputs
from nanoloom.interface.interface import Interface
from nanoloom.interface.stacked_names import Index, parts_of
from nanoloom.runtime.arrays import empty
from nanoloom.runtime.library import Instance, Library

Array: TypeAlias = np.ndarray
Shapes = dict[str, tuple[int, ...]]
Once: TypeAlias = Collection[str] | None  # inputs that stay from call to call
Bound = tuple[Library, Instance]  # a program for known sizes, and what runs it
NOTHING: Mapping[str, str] = MappingProxyType({})


class Session(ABC):
    """Calls one after the other, each of which goes on from the one before.

    pairs: names of inputs, and of the outputs that extend them.  length: of what is
    kept.  reason: why it is copied at each call; "" where it is not, or not called yet.
    """

    def __init__(
        self,
        inputs: Sequence[Interface],
        kept: Sequence[StatePair],
        known: Mapping[str, int],
        bounds: Mapping[str, Bounds],
        capacity: int,
        once: Once = None,
        unmoved: Mapping[str, str] = NOTHING,
    ) -> None:
        """inputs: all of the model's.  kept: those that are none of a call.

        known: numbers of dimensions.  capacity: rows that there is room for at first;
        doubled when it is full.  once: inputs that stay from call to call.  unmoved:
        such inputs, and outputs that make them.  Raises InputError for no such number.
        """
        if not isinstance(capacity, int | np.integer) or capacity < 0:  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not checked
            raise InputError(f"capacity is a whole number of rows, not {capacity!r}")
        self.kept, self.known, self.bounds = tuple(kept), known, bounds
        self.pairs = {x.past.name: x.present for x in self.kept}
        self.given = [x for x in inputs if x.name not in self.pairs]
        self.unmoved = {x: y for x, y in unmoved.items() if x not in self.pairs}
        self.once = given_once(inputs, self.kept, once) | self.unmoved.keys()
        self.lengths = {x.length for x in self.kept}
        self.most = min(bounds.get(name, Bounds()).most for name in self.lengths)
        self.capacity = capacity
        self.reason = ""
        self.length = 0
        self._rows: dict[str, Array] = {}
        self._stays: dict[str, Array] = {}

    @public
    def __call__(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """The outputs for what is new, without those that are kept.

        Inputs of `once` may be left out after the first call.  Raises InputError as a
        program does, also where sizes end: a table of positions.
        """
        makes = self.unmoved if self._starts else NOTHING
        stays = {x: y for x, y in self._stays.items() if x not in makes}
        asked = [x for x in self.given if x.name not in makes]
        arrays = check_inputs(asked, {**stays, **inputs}, self.known)
        shapes = self.shapes(arrays)
        require_within(self.bounds, asked, shapes)
        # Copied if a caller gave it, who may write into the array behind this call.
        self._stays = {
            name: np.array(arrays[name]) if name in inputs else arrays[name]
            for name in self.once
            if name in arrays
        }
        bound = None if self.reason else self._bound(shapes)
        if bound is None:
            made = self._copied(arrays, shapes)
        else:
            made = self._run(bound, arrays, shapes)
        for past, present in self.unmoved.items():
            if present in made and (array := made.pop(present)).size:
                self._stays[past] = array
        return made

    @public
    def reset(self) -> None:
        """Forget all; the next call may be of another batch."""
        self.length = 0
        self._rows.clear()
        self._stays.clear()

    @public
    def start(self, made: Mapping[str, object]) -> None:
        """Go on from what another model made of the first tokens.

        made: arrays by the names of past inputs, or of the outputs that exporters call
        alike (`present.0.key`); also those of `once`, as far as they are there.  Others
        are left out.  Raises InputError where something that grows is missing, or is of
        more tokens than can be kept.
        """
        found = {x.past.name: found_in(made, x.past.name) for x in self.kept}
        missing = [name for name, array in found.items() if array is None]
        if missing:
            raise InputError(f"nothing is given for {', '.join(missing)}")
        arrays = check_inputs([x.past for x in self.kept], found, self.known)
        lengths = {arrays[x.past.name].shape[x.axis] for x in self.kept}
        if len(lengths) > 1:
            raise InputError(f"past inputs of {sorted(lengths)} tokens, not of as many")
        self.reset()
        self._require_room(max(lengths))
        for x in self.kept:
            rows = np.moveaxis(arrays[x.past.name], x.axis, 0)
            # Always a copy: behind a rewind, new rows are written into it.
            self._rows[x.present] = np.array(rows, order="C")
        (self.length,) = lengths
        for name in self.once:
            array = found_in(made, name)
            if array is not None:
                self._stays[name] = np.array(array)

    @public
    def rewind(self, length: int) -> None:
        """Forget all but the first tokens; raises InputError for more than all.

        Behind rewind(0) a call may be of another batch.
        """
        if not isinstance(length, int | np.integer):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not checked
            raise InputError(f"length is a whole number, not {length!r}")
        if not 0 <= length <= self.length:
            raise InputError(f"{length} of {self.length} tokens cannot be kept")
        self.length = int(length)

    @public
    def past(self) -> dict[str, Array]:
        """What the model's past inputs would be at the next call, in their shapes."""
        stays = () if self._starts else self.unmoved.keys() & self._stays.keys()
        return {
            x.past.name: np.moveaxis(self._rows[x.present][: self.length], 0, x.axis)
            for x in self.kept
            if x.present in self._rows
        } | {name: self._stays[name] for name in stays}

    @property
    def _starts(self) -> bool:
        """Whether the model has a branch for the first tokens, and these are they."""
        return False

    @property
    def room(self) -> int:
        """Tokens that it has memory for."""
        return max(map(len, self._rows.values()), default=0)

    def shapes(self, arrays: Mapping[str, Array]) -> Shapes:
        """Of all inputs: those given, and what is kept.

        Raises InputError where they are of another batch.
        """
        dims = dict(self.known)
        for x in self.given:
            if x.name in arrays:
                names = zip(x.shape, arrays[x.name].shape, strict=True)
                dims |= {d: n for d, n in names if isinstance(d, str)}
        made: Shapes = {
            x.name: arrays[x.name].shape
            if x.name in arrays  # else it is made by this call
            else tuple(d if isinstance(d, int) else dims.get(d, 0) for d in x.shape)
            for x in self.given
        }
        for x in self.kept:
            shape = x.shape(dims, self.length)
            rows = self._rows.get(x.present)
            if rows is not None and x.rows(shape) != rows.shape[1:]:
                if self.length:
                    raise InputError(
                        f"{list(rows.shape[1:])} is kept of each token, and these"
                        f" inputs need {list(x.rows(shape))}",
                        where=f"input {x.past.name}",
                        hint="begin again with reset()",
                    )
                del self._rows[x.present]  # all are forgotten: only room was kept
            made[x.past.name] = shape
        return made

    @abstractmethod
    def _bound(self, shapes: Shapes) -> Bound | None:
        """The program for these sizes; None, and the reason, if it cannot append."""

    @abstractmethod
    def _copied(self, arrays: Mapping[str, Array], shapes: Shapes) -> dict[str, Array]:
        """The outputs of a program that cannot append."""

    def _run(
        self, bound: Bound, arrays: Mapping[str, Array], shapes: Shapes
    ) -> dict[str, Array]:
        """Append to what is kept, and give the rest."""
        library, instance = bound
        kinds = {x.name: x for x in library.outputs}
        parts = {x.present: parts_of(x.present, kinds) for x in self.kept}
        total = kinds[next(iter(parts[self.kept[0].present]))].shape[0]
        self._require_room(total)
        self._make_room(total, shapes, parts)
        given = {**arrays, **self._unread(library, shapes)}
        memory = {
            name: x.part(self._rows[x.present], index)[:total]
            for x in self.kept
            for name, index in parts[x.present].items()
        }
        written = [
            memory[name]
            if name in memory
            else empty(kinds[name].shape, kinds[name].element.dtype)
            for name in kinds
        ]
        instance.run([given[x.name] for x in library.inputs], written)
        self.length = total
        made = zip(kinds, written, strict=True)
        return {name: y for name, y in made if name not in memory}

    def _unread(self, library: Library, shapes: Shapes) -> dict[str, Array]:
        """Arrays for the past inputs of a program, which has them as its outputs."""
        names = {x.name: x for x in library.inputs}
        return {
            name: shown(x.part(self._rows[x.present], index), names[name].shape)
            for x in self.kept
            for name, index in parts_of(x.past.name, names).items()
        }

    def _require_room(self, total: int) -> None:
        """InputError for more tokens than the bound of what is kept."""
        if total > self.most:
            raise InputError(
                f"{self.length} tokens are kept, and at most {self.most} can be",
                hint="rewind the session, or give it fewer",
            )

    def _make_room(
        self, total: int, shapes: Shapes, parts: Mapping[str, Mapping[str, Index]]
    ) -> None:
        """Rows for so many tokens; twice as many if there are too few.

        parts: of what is kept, which lie in one piece each.
        """
        for x in self.kept:
            rows, indices = self._rows.get(x.present), parts[x.present].values()
            first = next(iter(indices))
            count = 0 if rows is None else len(rows)
            if rows is not None and x.part(rows, first).flags.c_contiguous:
                if count >= total:
                    continue
                count *= 2
            most = max(total, self.capacity, count)
            made = x.memory(most, x.rows(shapes[x.past.name]), first)
            if rows is not None:
                made[: self.length] = rows[: self.length]
            self._rows[x.present] = made


def shown(rows: Array, shape: tuple[int, ...]) -> Array:
    """Bytes of an array in a shape that only says how many rows there are."""
    return np.ndarray(shape, rows.dtype, rows)
