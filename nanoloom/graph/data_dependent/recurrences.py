"""LSTM, GRU and RNN over as many steps as data decide: the others are behind the end.

ONNX's sequence_lens say so: results of steps behind the end are 0, the last state is
that of the last step, and what goes backward begins there.
"""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.data_dependent.count import Count, counts_of
from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.types import shape_of

LENGTHS, WEIGHTS, STATES = 4, (1, 2, 3, 7), (4, 5, 6)  # inputs
FEATURES = 2  # the axis of x


def recur(m: Maker) -> None:
    x, counts = m.input(0), counts_of(m.input(0))
    first = m.attribute("layout", 0)  # whether a batch comes first
    steps, batch = (counts.get(axis) for axis in (first, 1 - first))
    if FEATURES in counts or any(counts_of(m.optional(i)) for i in WEIGHTS):
        raise m.refused("it multiplies by weights whose size depends on the data")
    states = [i for i in STATES if m.optional(i) is not None]
    if any(counts_of(m.optional(i)) for i in states) or (batch and states):
        raise m.refused("its batch depends on the data, and has states or lengths")
    given = [m.optional(i) for i in range(max(len(m.node.inputs), LENGTHS + 1))]
    if steps is not None:
        given[LENGTHS] = lengths(m, steps, shape_of(x)[1 - first])
    every = {1 if first else 0: steps, 0 if first else 2: batch}
    last = {0 if first else 1: batch}
    made = m.again(*given)
    m.replace(*[(y, known(every if i == 0 else last)) for i, y in enumerate(made)])


def lengths(m: Maker, steps: Count, rows: int) -> ir.Value:
    """How many steps each row of the batch has, int32: as the model says, at most."""
    number = m.one("Cast", steps.value, to=int(ir.DataType.INT32))
    said = m.optional(LENGTHS)
    if said is not None:
        return m.one("Min", said, number)
    return m.one("Expand", number, m.ints(rows))


def known(counts: dict[int, Count | None]) -> dict[int, Count]:
    return {axis: count for axis, count in counts.items() if count is not None}
