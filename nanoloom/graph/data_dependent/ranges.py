"""Range: of a known extent, of a number that counts, or of a size without a bound."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.graph.data_dependent.count import counts_of
from nanoloom.graph.data_dependent.integer_bounds import is_bounded
from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.data_dependent.rooms import exact_rooms, is_outside, tell

DOUBLE = int(ir.DataType.DOUBLE)
TOO_MANY = 2.0**62  # elements: no memory has them, and INT64 has the number


def unbounded_range(m: Maker) -> bool:
    """A size that the program is bound to; False where it cannot be asked for one."""
    if not is_outside(m.decided, m.graph):
        return False
    name, dtype = m.node.name or "", m.input(0).dtype
    (exact,) = exact_rooms(m, [name], [m.input(i) for i in range(3)])
    assert dtype is not None
    wide = [
        m.one("Reshape", m.one("Cast", m.input(i), to=DOUBLE), m.ints(1))
        for i in range(3)
    ]
    steps = m.one("Div", m.one("Sub", wide[1], wide[0]), wide[2])
    few = m.one("Min", m.one("Ceil", steps), m.constant(np.array([TOO_MANY])))
    needed = m.one("Cast", few, to=int(ir.DataType.INT64))
    tell(m.decided, m.graph, exact.room, m.one("Max", needed, m.ints(0)))
    places = m.one("Cast", m.positions(exact.size), to=int(dtype))
    start, delta = (m.one("Reshape", m.input(i), m.ints(1)) for i in (0, 2))
    made = m.one("Add", m.one("Mul", places, delta), start)
    m.replace((made, {}))
    return True


def known_range(m: Maker, start: int, step: int, extent: int) -> bool:
    """Whole numbers of a known extent, of inputs that the program computes."""
    made = m.one("Mul", m.positions(extent), m.ints(step)) if step != 1 else None
    made = m.positions(extent) if made is None else made
    if start:
        made = m.one("Add", made, m.ints(start))
    dtype = m.input(0).dtype
    if dtype is not None and dtype != ir.DataType.INT64:
        made = m.one("Cast", made, to=int(dtype))
    m.replace((made, {}))
    return True


def range_(m: Maker) -> bool:
    """start + i * delta; False where no one knows how many there may be."""
    inputs = [m.input(i) for i in range(3)]
    limits = [m.limits(x) for x in inputs]
    delta = limits[2]
    if any(n.size != 1 for x in limits for n in x):
        return False  # no numbers: what is inferred refuses it
    if not all(map(is_bounded, limits)) or (delta[0] != delta[1]).any():
        return unbounded_range(m)
    (step,) = delta[0].reshape(-1)
    if step == 0:
        return False
    start, end = ([int(n.reshape(-1)[0]) for n in x] for x in limits[:2])
    far = end[1] - start[0] if step > 0 else start[1] - end[0]
    most = m.decided.most(-(-far // abs(int(step))), 0)
    if start[0] == start[1] and end[0] == end[1]:
        return known_range(m, start[0], int(step), most)
    first, last = (m.flat(x) for x in inputs[:2])
    way = m.one("Sub", last, first) if step > 0 else m.one("Sub", first, last)
    way = m.one("Max", m.one("Add", way, m.ints(abs(int(step)) - 1)), m.ints(0))
    number = m.one("Div", way, m.ints(abs(int(step)))) if abs(step) > 1 else way
    made = m.one("Mul", m.positions(most), m.ints(int(step)))
    made = m.one("Add", made, first)
    dtype = inputs[0].dtype
    assert dtype is not None
    if dtype != ir.DataType.INT64:
        made = m.one("Cast", made, to=int(dtype))
    sources = [c for x in inputs for c in counts_of(x).values()]
    m.replace((made, {0: m.count(number, most, *sources)}))
    return True
