"""Outputs that are sequences, as lists: a program has an output for each tensor."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

Array = np.ndarray


class Named(Protocol):
    @property
    def name(self) -> str: ...


def grouped(made: dict[str, Array], outputs: Iterable[Named]) -> dict[str, Any]:
    """The outputs by the names that the model gives them.

    made: those of the program, where y[0], y[1] ... are the tensors of the sequence y.
    """
    names = [x.name for x in outputs]
    if all(name in made for name in names):
        return made
    return {n: made[n] if n in made else tensors(made, n) for n in names}


def are_known(made: Collection[str], outputs: Iterable[Named]) -> bool:
    """Whether a program's outputs say all of a model's, none of which is empty."""
    return all(x.name in made or f"{x.name}[0]" in made for x in outputs)


def tensors(made: Mapping[str, Array], name: str) -> list[Array]:
    found: list[Array] = []
    while (array := made.get(f"{name}[{len(found)}]")) is not None:
        found.append(array)
    return found
