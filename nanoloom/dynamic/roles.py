"""What integers that are computed from sizes are for: sizes of others, or places.

Reshape(x, [n, 64])           a size is told
Gather(x, Range(0, n))        rows are read: data, which the program computes
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import prod

from nanoloom.dynamic import size_predicates
from nanoloom.dynamic.sample_walk import NodeSample, Visit

COUNTED = ("Range",)
REPEATED = ("Expand", "Tile")
# Which inputs of operators are sizes.
SIZES = {"Expand": (1,), "Pad": (1,), "Reshape": (1,), "Slice": (1, 2), "Tile": (1,)}


def told_sizes(visits: Sequence[Visit]) -> Set[str]:
    """Names of values that are moved until operators take them for sizes, or pads.

    PyTorch's exporter puts the pads of an image in order in a matrix.
    """
    told, others = set[str](), set[str]()
    for visit in reversed(visits):
        sizes = SIZES.get(visit.operator, ())
        made = {x.name for x in visit.outputs}
        moved = visit.operator in size_predicates.MOVES and made <= told - others
        for place, value in enumerate(visit.inputs):
            if value is not None and (moved or place in sizes):
                told.add(value.name)
            elif value is not None:
                others.add(value.name)
    return told - others


def are_places(visit: Visit) -> bool:
    """Whether integers say which rows are read, and not how large something is.

    What is repeated for each row of a batch is a matrix, which no shape is.
    """
    if visit.operator in COUNTED:
        return True
    return visit.operator in REPEATED and is_matrix(visit.outputs[0])


def is_matrix(value: NodeSample) -> bool:
    shape = value.shape or ()
    return len(shape) > 1 and prod(shape) > 1
