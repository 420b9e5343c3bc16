"""A call of a program that is put together, before its kernel is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nanoloom.fusion.constants_to_arguments import Arguments
from nanoloom.ir.mlir import ir
from nanoloom.memory.calls import Place, Storage


@dataclass(frozen=True)
class Draft:
    """A call whose kernel is not made yet.

    name, root: of the kernel.  outline: makes it, with these numbers as arguments.
    form: its text without `numbers`, the constants that may be arguments.  nodes: of
    the model, whose operations are in it.
    """

    name: str
    root: str
    layer: str
    outline: Callable[[Arguments], ir.Module]
    inputs: tuple[Place, ...]
    results: tuple[Place, ...]
    form: str
    numbers: tuple[ir.Attribute, ...]
    nodes: tuple[str, ...] = ()

    @property
    def constants(self) -> tuple[bool, ...]:
        """Which inputs are parameters."""
        return tuple(p.storage is Storage.PARAMETER for p in self.inputs)
