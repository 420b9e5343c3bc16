"""A program as the cache keeps it, loaded: for one set of shapes, or for all sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nanoloom.errors import UnfitBranch
from nanoloom.interface.data_dependent_outputs import counted, trimmed
from nanoloom.runtime.given_arrays import NOWHERE, place, run_exact
from nanoloom.runtime.library import Instance, Library
from nanoloom.runtime.parameters import Weights, load_parameters

Array = np.ndarray[Any, np.dtype[Any]]
LIBRARY = "program.so"  # in its folder, beside the parameters


class Variant:
    """The program in a folder of the cache, which has its name; on threads of its own.

    Code, threads and memory go when nobody refers to it.  One with `dims` runs when it
    is bound to numbers of them.

    otherwise: what runs where a run wants a branch that the program of all sizes lacks.
    """

    otherwise: Callable[[Mapping[str, Array]], Variant] | None = None

    def __init__(
        self,
        folder: Path,
        threads: int,
        weights: Weights,
        in_place: Sequence[tuple[str, str]] = (),
    ) -> None:
        """in_place: inputs, and outputs that lie in their memory."""
        self.name = folder.name
        self.library = Library(folder / LIBRARY)
        inputs = {x.name: i for i, x in enumerate(self.library.inputs)}
        outputs = {x.name: i for i, x in enumerate(self.library.outputs)}
        self.library.in_place = tuple([(inputs[x], outputs[y]) for x, y in in_place])
        self._block = None
        if self.library.parameter_bytes:
            self._block = load_parameters(folder, weights)
        self._show(self.library.create(threads, self._block))

    @property
    def dims(self) -> tuple[str, ...]:
        return self.library.dims

    def bound(self, dims: Mapping[str, int]) -> Variant:
        """The program for numbers of its dimensions, on the same threads."""
        made = Variant.__new__(Variant)
        made.name = self.name + "".join(f" {name}={n}" for name, n in dims.items())
        made.library = self.library.bound([dims[name] for name in self.dims])
        made._block = self._block
        made._show(made.library.create(self.instance, self._block))
        return made

    def _show(self, instance: Instance) -> None:
        self.instance = instance
        self.inputs = [x.name for x in self.library.inputs]
        self.outputs = [x.name for x in self.library.outputs]
        self.counted = counted(self.outputs)

    def exactly(self, inputs: Mapping[str, object]) -> dict[str, Array] | None:
        """The outputs, where inputs are just the arrays that it takes; None for others.

        The compiled code compares types and shapes, in a tenth of Python's time.
        """
        try:
            made = run_exact(self.library, self.instance, self.inputs, inputs)
        except UnfitBranch:
            return None
        return None if made is None else self._named(made)

    def __call__(
        self,
        inputs: Mapping[str, Array],
        nanoseconds: Array | None = None,
        into: Mapping[str, Array] = NOWHERE,
    ) -> dict[str, Array]:
        given = [inputs[name] for name in self.inputs]
        made = self.library.new_outputs()
        if into:
            place(self.outputs, made, into, [name for _, _, name in self.counted])
        try:
            self.instance.run(given, made, nanoseconds=nanoseconds)
        except UnfitBranch:
            if self.otherwise is None:
                raise
            return self.otherwise(inputs)(inputs, into=into)
        return self._named(made)

    def _named(self, made: list[Array]) -> dict[str, Array]:
        found = dict(zip(self.outputs, made, strict=True))
        return trimmed(found, self.counted) if self.counted else found
