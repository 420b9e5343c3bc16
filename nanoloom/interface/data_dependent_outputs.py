"""Outputs whose shapes depend on data: cut to what counts of their largest shapes.

A program gives the number of elements along such an axis as an output of its own, whose
name says of which output and axis (graph/data_dependent/publish_counts.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nanoloom.errors import Unsupported

Array = np.ndarray[Any, np.dtype[Any]]
PREFIX = "nanoloom.count"  # in front of axis, length of the output's name, it, the node
Counted = Sequence[tuple[str, int, str]]  # a number's name, its axis, its output's name


def number_name(axis: int, output: str, node: str) -> str:
    """The name of the output that says how much of an output counts.

    node: that decides about it, in the words of a message.
    """
    return f"{PREFIX} {axis} {len(output)} {output} {node}"


def counted(names: Sequence[str]) -> Counted:
    """The numbers among a program's outputs."""
    found: list[tuple[str, int, str]] = []
    for name in names:
        if name.startswith(f"{PREFIX} "):
            _, axis, length, rest = name.split(" ", 3)
            found.append((name, int(axis), rest[: int(length)]))
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


def require_static(names: Sequence[str]) -> None:
    """Raise Unsupported for an output of a bare object whose shape depends on data."""
    for name, _, output in counted(names):
        node = name.partition(f" {output} ")[2]
        raise Unsupported(
            f"the shape of the output {output} depends on the data, which a bare "
            "object cannot say",
            where=node,
            hint="compile an executable or a library, or end the model in front of it",
        )
