"""Numbers of the nodes of a walk, one for each sample of the sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.sample_walk import Visit

Numbers = tuple[int, ...]  # one for each sample
Limits = list[Numbers]


def sizes(visits: Sequence[Visit], index: int, axis: int) -> Numbers:
    """The extents of an input's axis."""
    found: list[int] = []
    for visit in visits:
        value = visit.inputs[index]
        if value is None or value.shape is None:
            raise NotDynamic("an input of unknown shape")
        found.append(value.shape[axis])
    return tuple(found)


def rank(visits: Sequence[Visit], index: int = 0) -> int:
    value = visits[0].inputs[index]
    if value is None or value.shape is None:
        raise NotDynamic("an input of unknown shape")
    return len(value.shape)


def numbers(visits: Sequence[Visit], index: int) -> list[Numbers] | None:
    """The elements of a small constant input, each for all samples; None without it."""
    if len(visits[0].inputs) <= index or visits[0].inputs[index] is None:
        return None
    rows: list[list[int]] = []
    for visit in visits:
        value = visit.inputs[index]
        if value is None or value.numbers is None:
            raise NotDynamic("numbers that are known at run time")
        rows.append([int(n) for n in value.numbers.flat])
    if len({len(row) for row in rows}) > 1:
        raise NotDynamic("other sizes give it more numbers, or fewer")
    return list(zip(*rows, strict=True))


def attribute(visits: Sequence[Visit], name: str, default: int) -> int:
    found = visits[0].node.attributes.get(name)
    return found.as_int() if isinstance(found, ir.Attr) else default


def is_alike(row: Numbers) -> bool:
    return len(set(row)) == 1


def less(one: Numbers, other: Numbers) -> Numbers:
    return tuple(int(n) for n in np.subtract(one, other))
