"""Outputs whose shapes depend on data: cut to what counts of their largest shapes.

A program gives the number of elements along such an axis as an output of its own, whose
name says of which output and axis (graph/counted/publish.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nanoloom.errors import Unsupported

Array = np.ndarray[Any, np.dtype[Any]]
PREFIX = "nanoloom.count"  # in front of the axis and the name of an output
Counted = Sequence[tuple[str, int, str]]  # a number's name, its axis, its output's name


def number_name(axis: int, output: str) -> str:
    """The name of the output that says how much of an output counts."""
    return f"{PREFIX} {axis} {output}"


def counted(names: Sequence[str]) -> Counted:
    """The numbers among a program's outputs."""
    found: list[tuple[str, int, str]] = []
    for name in names:
        if name.startswith(f"{PREFIX} "):
            _, axis, output = name.split(" ", 2)
            found.append((name, int(axis), output))
    return found


def trimmed(made: Mapping[str, Array], numbers: Counted) -> dict[str, Array]:
    """A program's outputs without the numbers, each cut to what counts."""
    found = dict(made)
    for name, axis, output in numbers:
        (count,) = found.pop(name)
        part = [slice(None)] * axis + [slice(int(count))]
        found[output] = found[output][tuple(part)]
    for _, _, output in numbers:
        found[output] = found[output].copy()  # the rest of its memory goes
    return found


def require_static(names: Sequence[str], form: str) -> None:
    """Raise Unsupported for what cannot say how much of an output counts."""
    for _, _, output in counted(names):
        raise Unsupported(
            "its shape depends on the data, which only a program in Python says",
            where=f"output {output}",
            hint=f"run it from Python, or cut the model in front of it for a {form}",
        )
