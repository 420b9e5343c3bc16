"""The ways to call a program: by position or name, for some outputs, into memory that
is there, or later."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from nanoloom.errors import InputError, public, some_of
from nanoloom.interface.check_inputs import listing, signature
from nanoloom.interface.converted_inputs import converted
from nanoloom.interface.dlpack import can_share, shared_array
from nanoloom.runtime.library import Instance
from nanoloom.runtime.limits import Cancellation, Limits, limited
from nanoloom.runtime.memory_use import MemoryUse, memory_use
from nanoloom.runtime.threads import default_threads

Array = np.ndarray[Any, np.dtype[Any]]
Into = Mapping[str, Any]  # arrays to be written, by the names of outputs
Pairs = Sequence[tuple[str, str]]  # names of inputs, and of outputs


class Side(Protocol):
    """An input or output: name, shape and element type."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int | str, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


class Running(Protocol):
    """What is loaded, and runs."""

    @property
    def instance(self) -> Instance: ...


class CallableProgram(ABC):
    """What has inputs and outputs, and runs.

    inputs, outputs: name, shape and dtype of each.  _in_place: inputs, and outputs that
    are computed in their memory.
    """

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    _in_place: Pairs = ()

    @abstractmethod
    def _run(self, inputs: Mapping[str, object], into: Into) -> dict[str, Array]:
        """Run once; outputs that are in `into` are written there."""

    @property
    @abstractmethod
    def _title(self) -> str:
        """What it is called where it is printed."""

    @public
    def __call__(self, *arrays: object, **named: object) -> dict[str, Array]:
        """Run it: one dict of arrays, or arrays in the order of `inputs`, or by name.

        Arrays have exactly the declared element type; dimensions with a name take the
        size of the array.  An output that is a sequence is a list.  Raises InputError
        for arrays that do not fit, or whose indices lead out of range, and what
        compiling raises at the first call with new shapes.
        """
        if len(arrays) == 1 and not named and type(arrays[0]) is dict:
            return self._run(arrays[0], {})
        return self._run(feeds(self.inputs, arrays, named), {})

    @public
    def run(
        self,
        inputs: Mapping[str, object],
        outputs: Sequence[str] | None = None,
        *,
        into: Into | None = None,
        convert: bool = False,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> dict[str, Array]:
        """The same with choices.

        outputs: names of those that are wanted, in this order; all of them are
        computed.  into: arrays that outputs are written to, by name, of exactly their
        shapes and types, which share no memory with anything else of the call; arrays
        of other libraries, too, that show their memory by DLPack.
        convert: whether arrays of other element types are cast to the declared ones.
        timeout: seconds that it may take; compiling is not interrupted, but counts.
        cancel: who ends it from another thread.  What ended early is called again as
        if nothing had been.
        Raises what a call raises, InputError for outputs that the model has not,
        TimedOut and Cancelled.
        """
        limits = Limits.of(timeout, cancel)
        return self._run_within(limits, inputs, outputs, into, convert)

    def _run_within(
        self,
        limits: Limits | None,
        inputs: Mapping[str, object],
        outputs: Sequence[str] | None,
        into: Into | None,
        convert: bool,
    ) -> dict[str, Array]:
        given, names = memory_of(into), names_of(outputs)
        require_outputs(self.outputs, (*(names or ()), *given))
        into = {name: writable(name, array) for name, array in given.items()}
        if convert:
            inputs = converted(self.inputs, inputs)
        if into:
            require_numbers(self.outputs, into)
            require_apart(inputs, into, self._in_place)
        with limited(limits):
            made = self._run(inputs, into) | dict(given)
        return made if names is None else {name: made[name] for name in names}

    @property
    def memory(self) -> MemoryUse:
        """What it takes now of memory: weights, code, arena, scratch; it prints."""
        return memory_use(each.instance for each in self._loaded())

    @abstractmethod
    def _loaded(self) -> Iterable[Running]:
        """What is loaded of it."""

    @public
    def run_async(
        self,
        inputs: Mapping[str, object],
        outputs: Sequence[str] | None = None,
        *,
        into: Into | None = None,
        convert: bool = False,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Future[dict[str, Array]]:
        """`run` in another thread: the result, or what it raises, is in the future.

        timeout: from now on, not from when a thread is free.
        """
        given = Limits.of(timeout, cancel), inputs, outputs, into, convert
        return later().submit(public(self._run_within), *given)

    def __repr__(self) -> str:
        """Inputs and outputs with their types and shapes."""
        return f"<{self._title.strip()}: {sides(self.inputs)} -> {sides(self.outputs)}>"


def sides(of: Iterable[Side]) -> str:
    return ", ".join(" ".join(filter(None, words_of(x))) for x in of)


def words_of(x: Side) -> tuple[str, str, str]:
    """Name, "list" or "optional" where it is one, element type and shape."""
    shape = signature(x.dtype, x.shape)
    if getattr(x, "is_text", False):
        shape = shape.replace(x.dtype.name, "string", 1)
    return x.name, getattr(x, "holds", ""), shape


def feeds(
    inputs: Sequence[Side], arrays: Sequence[object], named: Mapping[str, object]
) -> Mapping[str, object]:
    """The arrays of a call by their names, whichever way they are given.

    Raises InputError for too many, and for a name that is given twice.
    """
    if len(arrays) == 1 and not named and is_single(arrays[0], inputs):
        return arrays[0]  # type: ignore[return-value] - what is none is refused as such
    if len(arrays) > len(inputs):
        said = f"are {len(arrays)}, the model takes {listing(inputs)}"
        raise InputError(said, where="inputs")
    found = {x.name: array for x, array in zip(inputs, arrays, strict=False)}
    twice = [name for name in named if name in found]
    if twice:
        raise InputError("is given by position and by name", where=f"input {twice[0]}")
    return found | dict(named)


def is_single(given: object, inputs: Sequence[Side]) -> bool:
    """Whether the only thing that is given stands for all inputs: a mapping, or what is
    no array either."""
    is_array = hasattr(given, "__array__") or hasattr(given, "__dlpack__")
    return not (is_array and len(inputs) == 1)


def memory_of(into: object) -> Into:
    """What was given to be written; raises InputError for what is no dict."""
    if into is None:
        return {}
    if not isinstance(into, Mapping):
        kind = type(into).__name__
        raise InputError(f"into is of type {kind}", hint="give a dict by outputs")
    return into  # type: ignore[return-value] # of names to arrays: looked at behind


def names_of(outputs: object) -> tuple[str, ...] | None:
    """The names of outputs that are wanted; raises InputError for what is no list."""
    if outputs is None:
        return None
    if isinstance(outputs, str) or not isinstance(outputs, Iterable):
        raise InputError(f"outputs are {outputs!r}", hint="give a list of names")
    return tuple(map(str, outputs))


def require_outputs(outputs: Sequence[Side], names: Iterable[str]) -> None:
    known = [x.name for x in outputs]
    for name in names:
        if name not in known:
            raise InputError(
                "the model has no such output",
                where=f"output {name}",
                hint=some_of(set(known), str(name)),
            )


def require_numbers(outputs: Sequence[Side], into: Into) -> None:
    for output in outputs:
        if output.name in into and getattr(output, "is_text", False):
            raise InputError(
                "holds strings, which are new at each call",
                where=f"output {output.name}",
                hint="take the array that the call returns",
            )


def writable(name: str, array: object) -> Array:
    """Memory for an output: an array, or what another library's stands on."""
    where = f"output {name}"
    if isinstance(array, np.ndarray):
        return array
    if not can_share(array):
        raise InputError(
            f"is a {type(array).__name__}",
            where=where,
            hint="give a numpy array, or one with DLPack, to write to",
        )
    found = shared_array(array, where)
    if not found.flags.writeable:
        raise InputError(
            f"is a {type(array).__name__} that nobody may write to",
            where=where,
            hint="give a numpy array to write to",
        )
    return found


def require_apart(inputs: Mapping[str, object], into: Into, pairs: Pairs = ()) -> None:
    """That outputs share no memory with inputs, nor with each other.

    pairs: inputs and outputs that may be one array.
    """
    seen = [
        (f"input {n}", shared_array(x, f"input {n}") if can_share(x) else x)
        for n, x in inputs.items()
        if isinstance(x, np.ndarray) or can_share(x)
    ]
    own = {f"input {x}": y for x, y in pairs if inputs.get(x) is into.get(y)}
    for name, array in into.items():
        for where, other in seen:
            if own.get(where) != name and np.may_share_memory(array, other):
                raise InputError(
                    f"shares memory with {where}",
                    where=f"output {name}",
                    hint="give it an array of its own",
                )
        seen.append((f"output {name}", array))


class _Later:
    """The threads of calls that nobody waits for; a forked child has none yet."""

    pool: ThreadPoolExecutor | None = None

    @classmethod
    def forget(cls) -> None:
        cls.pool = None


os.register_at_fork(after_in_child=_Later.forget)


def later() -> ThreadPoolExecutor:
    if _Later.pool is None:
        _Later.pool = ThreadPoolExecutor(default_threads(), "nanoloom-call")
    return _Later.pool
