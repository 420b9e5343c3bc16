"""A program that keeps what it computed of earlier tokens: their keys and values.

    session = program.session()
    outputs = session({"input_ids": prompt})     # without the past inputs
    outputs = session({"input_ids": next_one})

What an encoder made is given once: `session.start(outputs)` takes the keys and values
of another model's outputs, and an input that is named encoder stays until reset().

Two programs are compiled: one for prompts of any length, one for a single token.  Both
write what is new behind what is there, in arrays of the session, so that nothing is
compiled, moved or copied for a token.  Where a model does not only put new rows behind
old ones, `reason` says so, and its outputs become the next call's inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from nanoloom.errors import InputError, public
from nanoloom.frontend.inputs import check_inputs
from nanoloom.open_program import OpenProgram
from nanoloom.runtime.arrays import empty
from nanoloom.runtime.variant import Variant
from nanoloom.sessions.kept import Kept, found_in, given_once, pairs_of, with_sums
from nanoloom.source import Interface, bound_dims

Array: TypeAlias = np.ndarray
Shapes = dict[str, tuple[int, ...]]
Once: TypeAlias = Collection[str] | None  # inputs that stay from call to call
Pairs: TypeAlias = Mapping[str, str] | None  # inputs, and outputs that extend them


class Session:
    """Calls one after the other, each of which goes on from the one before.

    pairs: names of inputs, and of the outputs that extend them.  length: of what is
    kept.  reason: why it is copied at each call; "" where it is not, or not called yet.
    """

    def __init__(
        self,
        program: OpenProgram,
        outputs: Sequence[Interface],
        threads: int,
        whole: Callable[[Mapping[str, object]], dict[str, Array]],
        capacity: int = 0,
        pairs: Pairs = None,
        once: Once = None,
    ) -> None:
        """capacity: rows that there is room for at first; doubled when it is full.

        whole: runs the model as it is.  once: inputs that stay from call to call.
        Raises InputError for a model without such inputs, or pairs that are none.
        """
        self.program, self.threads, self.whole = program, threads, whole
        self.kept: tuple[Kept, ...] = pairs_of(program.inputs, outputs, pairs)
        self.pairs = {x.past.name: x.present for x in self.kept}
        self.once = given_once(program.inputs, self.kept, once)
        self.inputs = with_sums(program.inputs, outputs, self.kept)
        self.capacity = capacity
        self.given = [x for x in program.inputs if x.name not in self.pairs]
        self.reason = ""
        self.length = 0
        self._rows: dict[str, Array] = {}
        self._stays: dict[str, Array] = {}
        self._programs: dict[tuple[tuple[str, int], ...], OpenProgram] = {}
        self._last: tuple[Shapes, Variant] | None = None

    @public
    def __call__(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """The outputs for what is new, without those that are kept.

        Inputs of `once` may be left out after the first call.  Raises InputError as a
        program does, also where sizes end: a table of positions.
        """
        given = {**self._stays, **inputs}
        arrays = check_inputs(self.given, given, self.program.known)
        shapes = self.shapes(arrays)
        self._stays = {name: arrays[name] for name in self.once}
        variant = None if self.reason else self._variant(shapes)
        if variant is None:
            return self._copied(arrays, shapes)
        return self._run(variant, arrays, shapes)

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
        are left out.  Raises InputError where something that grows is missing.
        """
        found = {x.past.name: found_in(made, x.past.name) for x in self.kept}
        missing = [name for name, array in found.items() if array is None]
        if missing:
            raise InputError(f"nothing is given for {', '.join(missing)}")
        arrays = check_inputs([x.past for x in self.kept], found, self.program.known)
        lengths = {arrays[x.past.name].shape[x.axis] for x in self.kept}
        if len(lengths) > 1:
            raise InputError(f"past inputs of {sorted(lengths)} tokens, not of as many")
        self.reset()
        for x in self.kept:
            rows = np.moveaxis(arrays[x.past.name], x.axis, 0)
            self._rows[x.present] = np.ascontiguousarray(rows)
        (self.length,) = lengths
        for name in self.once:
            array = found_in(made, name)
            if array is not None:
                self._stays[name] = np.array(array)

    @public
    def rewind(self, length: int) -> None:
        """Forget all but the first tokens; raises InputError for more than all."""
        if not 0 <= length <= self.length:
            raise InputError(f"{length} of {self.length} tokens cannot be kept")
        self.length = length

    @public
    def past(self) -> dict[str, Array]:
        """What the model's past inputs would be at the next call, in their shapes."""
        return {
            x.past.name: np.moveaxis(self._rows[x.present][: self.length], 0, x.axis)
            for x in self.kept
            if x.present in self._rows
        }

    @property
    def room(self) -> int:
        """Tokens that it has memory for."""
        return max(map(len, self._rows.values()), default=0)

    def shapes(self, arrays: Mapping[str, Array]) -> Shapes:
        """Of all inputs: those given, and what is kept.

        Raises InputError where they are of another batch.
        """
        dims = dict(self.program.known)
        for x in self.given:
            names = zip(x.shape, arrays[x.name].shape, strict=True)
            dims |= {d: n for d, n in names if isinstance(d, str)}
        made: Shapes = {name: array.shape for name, array in arrays.items()}
        for x in self.kept:
            shape = x.shape(dims, self.length)
            rows = self._rows.get(x.present)
            if rows is not None and x.rows(shape) != rows.shape[1:]:
                raise InputError(
                    f"{list(x.rows(shape))} is kept of a token, not"
                    f" {list(rows.shape[1:])} as before",
                    where=f"input {x.past.name}",
                    hint="begin again with reset()",
                )
            made[x.past.name] = shape
        return made

    def _variant(self, shapes: Shapes) -> Variant | None:
        """The program for these sizes; None, and the reason, if it cannot append."""
        if self._last is not None and self._last[0] == shapes:
            return self._last[1]
        chosen = self._program(shapes)
        loaded = chosen.variant(self.threads)
        if loaded is None:
            self.reason = chosen.reason
            return None
        dims = chosen.numbers(shapes)
        if dims is None:
            raise InputError("an axis of an input is not what the others make it")
        made = loaded.bound(dims)
        self._last = shapes, made
        return made

    def _program(self, shapes: Shapes) -> OpenProgram:
        """The program for tokens of any number, or for one of known batch."""
        lengths = {x.length for x in self.kept}
        numbers = self._opened(()).numbers(shapes) or {}
        fixed = {d: n for d, n in numbers.items() if d not in lengths}
        batch = {d for x in self.kept for d in x.past.shape}
        stays = [x for x in self.given if x.name in self.once]
        others = {str(d) for x in stays for d in x.shape} - batch
        fixed = {d: n for d, n in fixed.items() if d not in others}
        single = all(n == 1 for d, n in fixed.items() if d not in batch)
        return self._opened(tuple(sorted(fixed.items())) if single else ())

    def _opened(self, known: tuple[tuple[str, int], ...]) -> OpenProgram:
        """The program for numbers of some dimensions, and for all sizes of others."""
        program = self.program
        if known not in self._programs:
            self._programs[known] = OpenProgram(
                self.inputs,
                bound_dims(self.inputs, {**program.known, **dict(known)}),
                program.source,
                replace(program.options, caches=tuple(self.pairs.items())),
                program.cache,
                program.report,
            )
        return self._programs[known]

    def _run(
        self, variant: Variant, arrays: Mapping[str, Array], shapes: Shapes
    ) -> dict[str, Array]:
        """Append to what is kept, and give the rest."""
        kinds = {x.name: x for x in variant.library.outputs}
        total = kinds[self.kept[0].present].shape[0]
        self._make_room(total, {x.present: kinds[x.present].shape for x in self.kept})
        unread = {x.past.name: self._rows[x.present] for x in self.kept}
        read = [
            arrays[name] if name in arrays else shown(unread[name], shapes[name])
            for name in variant.inputs
        ]
        written = [
            self._rows[name][:total]
            if name in self._rows
            else empty(kinds[name].shape, kinds[name].element.dtype)
            for name in variant.outputs
        ]
        variant.instance.run(read, written)
        self.length = total
        made = zip(variant.outputs, written, strict=True)
        return {name: y for name, y in made if name not in self._rows}

    def _make_room(self, total: int, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Rows for so many tokens; twice as many if there are too few."""
        for x in self.kept:
            rows = self._rows.get(x.present)
            if rows is not None and len(rows) >= total:
                continue
            most = max(total, self.capacity, 0 if rows is None else 2 * len(rows))
            made = empty((most, *shapes[x.present][1:]), x.past.dtype)
            if rows is not None:
                made[: self.length] = rows[: self.length]
            self._rows[x.present] = made

    def _copied(self, arrays: Mapping[str, Array], shapes: Shapes) -> dict[str, Array]:
        """Call the program as it is; its outputs are kept."""
        none = {
            x.past.name: np.zeros(shapes[x.past.name], x.past.dtype) for x in self.kept
        }
        given = {**arrays, **none, **self.past()}
        given = {name: np.ascontiguousarray(x) for name, x in given.items()}
        lengths = {x.length for x in self.kept}
        sized = self.program.bound(shapes, self.threads, empty=lengths)
        made = self.whole(given) if sized is None else sized(given)
        for x in self.kept:
            self._rows[x.present] = np.moveaxis(made.pop(x.present), x.axis, 0)
            self.length = len(self._rows[x.present])
        return made


def shown(rows: Array, shape: tuple[int, ...]) -> Array:
    """Bytes of an array in a shape that only says how many rows there are."""
    return np.ndarray(shape, rows.dtype, rows)
