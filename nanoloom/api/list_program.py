"""A program of a model some of whose inputs are lists of arrays, or may be left out.

It is one program for each number of arrays: how many there are is known at a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nanoloom.api.calling import Into
from nanoloom.api.program import MOST_VARIANTS, Array, Program
from nanoloom.cache import Cache
from nanoloom.cache.digest import of
from nanoloom.errors import Error, InputError, public
from nanoloom.interface.check_inputs import listing
from nanoloom.interface.interface import Interface
from nanoloom.model.source import Source, answer
from nanoloom.runtime.bounded_cache import BoundedCache
from nanoloom.runtime.variant import Variant

if TYPE_CHECKING:
    import onnx_ir

    from nanoloom.frontend.list_inputs import Held

Key = tuple[tuple[str, "Held"], ...]


class HeldSource(Source):
    """The model with an input for each array that a call holds."""

    def __init__(self, source: Source, held: Key) -> None:
        super().__init__(b"", Cache.temporary())
        self.given, self.source, self.held = source.given, source, held
        self._hashed: Future[str] = Future()
        answer(self._hashed, lambda: of("held", source.digest, repr(held)))

    def model(self) -> onnx_ir.Model:
        if self._model is None:
            from nanoloom.frontend.list_inputs import with_arrays

            self._model = with_arrays(self.source.model(), dict(self.held))
        return self._model


class ListProgram(Program):
    """What `compile` gives for such a model; saving and sessions are refused."""

    def _declare(self, source: Source, dims: Mapping[str, object]) -> None:
        self.source = source
        self.inputs, self.outputs = source.interface(self.cache)
        self.entries, self.dims, self.bounds = self.inputs, {}, {}
        self._given_dims = dict(dims)
        self._programs = BoundedCache[Key, Program](MOST_VARIANTS, 0, lambda *_: 0)

    def _run(self, inputs: Mapping[str, object], into: Into) -> dict[str, Array]:
        held, arrays = opened(self.inputs, inputs)
        return self._for_held(held)._run(arrays, into)

    def _for_held(self, held: Key) -> Program:
        found = self._programs.get(held)
        if found is None:
            found = Program(
                HeldSource(self.source, held),
                self.options,
                threads=self.threads,
                dims=self._given_dims,
                cache=self.cache,
                report=self.report,
            )
            self._programs.put(held, found)
        return found

    def _loaded(self) -> tuple[Variant, ...]:
        return tuple(x for each in self._programs.values() for x in each._loaded())

    @public
    def save(self, path: str | Path, name: str | None = None, **how: Any) -> NoReturn:
        """Raises Error: a library takes as many arrays as it was written for."""
        self.refuse("a saved program")

    @public
    def session(self, *how: Any, **more: Any) -> NoReturn:
        """Raises Error."""
        self.refuse("a session")

    @public
    def nests(self) -> NoReturn:
        """Raises Error: its kernels are known at a call."""
        self.refuse("a model before it is called")

    @public
    def explain(self, *how: Any, **more: Any) -> NoReturn:
        """Raises Error."""
        self.refuse("a report")

    @public
    def profile(self, *how: Any, **more: Any) -> NoReturn:
        """Raises Error."""
        self.refuse("a profile")

    def refuse(self, what: str) -> NoReturn:
        """Raise Error for what takes a number of arrays that is known."""
        names = ", ".join(x.name for x in self.inputs if x.holds)
        raise Error(
            f"{what} cannot take lists of arrays, or arrays that may be left out, as"
            f" input {names} is",
            hint="call the model from Python, or export it with tensors there",
        )


def opened(
    inputs: Sequence[Interface], given: Mapping[str, object]
) -> tuple[Key, dict[str, object]]:
    """What a call holds, and its arrays by the names of the inputs they become.

    Raises InputError for what is no list, or missing.
    """
    names = [x.name for x in inputs]
    required = [x.name for x in inputs if not x.holds.startswith("optional")]
    unknown = [str(name) for name in given if name not in names]
    missing = [name for name in required if name not in given]
    if unknown or missing:
        said = [f"{', '.join(missing)} is missing"] if missing else []
        said += [f"{', '.join(unknown)} is not one of them"] if unknown else []
        hint = f"the model takes {listing(inputs)}"
        raise InputError(" and ".join(said), where="inputs", hint=hint)
    held, arrays = dict[str, "Held"](), dict[str, object]()
    for x in inputs:
        value = given.get(x.name)
        if not x.holds:
            arrays[x.name] = value
        elif value is None and x.holds.startswith("optional"):
            held[x.name] = None
        elif x.holds.endswith("list"):
            values = list_of(x, value)
            own = {f"{x.name}[{i}]": each for i, each in enumerate(values)}
            held[x.name] = tuple(rank_of(name, x, one) for name, one in own.items())
            arrays |= own
        else:
            held[x.name] = rank_of(x.name, x, value)
            arrays[x.name] = value
    return tuple(held.items()), arrays


def rank_of(name: str, x: Interface, value: object) -> int:
    """Of an array, whose element type must be the input's."""
    if isinstance(value, np.ndarray) and value.dtype != x.dtype:
        raise InputError(
            f"is {value.dtype.name}, the model wants {x.dtype.name}",
            where=f"input {name}",
            hint=f"convert it with array.astype({x.dtype.name!r})",
        )
    return np.ndim(value)  # type: ignore[arg-type] - any array


def list_of(x: Interface, value: object) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InputError(
            f"is a {type(value).__name__}, the model wants a list of arrays",
            where=f"input {x.name}",
            hint=f"give a list, [array] for one of {x.dtype.name}",
        )
    return value
