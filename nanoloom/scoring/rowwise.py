"""A model as a function of rows: which axis is the batch, and how large it may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nanoloom.api.loaded import Loaded
from nanoloom.errors import InputError
from nanoloom.interface.bounds import Bounds
from nanoloom.interface.interface import Interface
from nanoloom.scoring.place import Runs

RowShape = tuple[int | str, ...]
HINT = "export the model with a batch as the first axis of every input and output"


@dataclass(frozen=True)
class Rowwise:
    """inputs, outputs: as declared, with numbers for bound dimensions.

    batch: names of the first axes; fixed: their number, where they have one.
    most: rows that one call takes.
    """

    inputs: tuple[Interface, ...]
    outputs: tuple[Interface, ...]
    dims: Mapping[str, int]
    batch: frozenset[str]
    fixed: int | None
    most: int | None

    @classmethod
    def of(cls, program: Runs) -> Rowwise:
        """Raises InputError for a model whose inputs have no rows."""
        inputs, outputs = program.inputs, program.outputs
        dims = {} if isinstance(program, Loaded) else dict(program.dims)
        for x in inputs:
            if x.holds or not x.shape:
                reason = "is a list or optional" if x.holds else "is one number"
                reason += ", not a row of a table"
                raise InputError(reason, where=f"input {x.name}", hint=HINT)
        if not inputs:
            raise InputError("the model has no inputs", where="scoring")
        firsts = {dims.get(str(x.shape[0]), x.shape[0]) for x in inputs}
        numbers = {n for n in firsts if isinstance(n, int)}
        if len(numbers) > 1 or (numbers and len(firsts) > 1):
            said = ", ".join(sorted(map(str, firsts)))
            reason = f"the first axes of its inputs differ: {said}"
            raise InputError(reason, where="inputs", hint=HINT)
        names = frozenset(str(x.shape[0]) for x in inputs)
        bounds = bounds_of(program)
        least = [bounds[n].most for n in names if n in bounds]
        fixed = numbers.pop() if numbers else None
        most = fixed if fixed is not None else min(least, default=None)
        return cls(inputs, outputs, dims, names, fixed, most)

    def row(self, side: Interface) -> RowShape:
        """The shape of one row of an input or output."""
        return tuple(self.dims.get(str(n), n) for n in side.shape[1:])

    def chosen(self, names: Sequence[str] | None) -> tuple[Interface, ...]:
        """The outputs of these names, all for None; raises InputError for others."""
        known = {x.name: x for x in self.outputs}
        for name in names or ():
            if name not in known:
                reason, there = "the model has no such output", ", ".join(known)
                raise InputError(reason, where=f"output {name}", hint=f"has: {there}")
        return self.outputs if names is None else tuple(known[n] for n in names)


def bounds_of(program: Runs) -> Mapping[str, Bounds]:
    if not isinstance(program, Loaded):
        return program.bounds
    return program.library.open.bounds if program.library.open else {}
