"""Resize to rows and columns that the program computes.

    Resize(x, sizes=Concat(n, c, Floor(shape(x)[2:] * (320 / ReduceMin(shape(x)[2:])))))

No polynomial of other sizes says how large such an image is.  So the program is bound
to its extents as to other sizes, and computes what they have to be (rooms.py).
"""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.data_dependent.rooms import (
    exact_rooms,
    is_of_shapes,
    is_outside,
    tell,
)
from nanoloom.graph.types import is_static, shape_of

SIZES = 3  # which input; scales are no sizes: they also say which pixels are read


def resize(m: Maker) -> bool:
    """Extents that the program is bound to; False where it cannot be asked for them."""
    sizes = m.optional(SIZES)
    if sizes is None or not m.decided.is_open or not is_outside(m.decided, m.graph):
        return False
    extents = elements(sizes)
    if extents is None or not is_of_shapes(sizes):
        return False
    places = [i for i, n in enumerate(extents) if n is None]
    found = exact_rooms(m, [f"{m.node.name} axis {i}" for i in places], [sizes])
    computed = m.one("Cast", sizes, to=int(ir.DataType.INT64))
    for place, exact in zip(places, found, strict=True):
        needed = m.one("Gather", computed, m.ints(place), axis=0)
        tell(m.decided, m.graph, exact.room, needed)
        extents[place] = exact.size
    known = m.ints(*[n for n in extents if n is not None])
    (made,) = m.again(m.input(0), m.optional(1), None, known)
    m.replace((made, {}))
    return True


def elements(shape: ir.Value) -> list[int | None] | None:
    """Its numbers, None for those that the program computes; None for no list."""
    if shape.const_value is not None:
        return [int(n) for n in shape.const_value.numpy().reshape(-1)]
    node = shape.producer()
    if node is not None and node.op_type == "Concat":
        parts = [None if x is None else elements(x) for x in node.inputs]
        if all(part is not None for part in parts):
            return [n for part in parts for n in part or ()]
    extents = shape_of(shape) if is_static(shape) else ()
    unknown: list[int | None] = [None] * extents[0] if len(extents) == 1 else []
    return unknown or None
