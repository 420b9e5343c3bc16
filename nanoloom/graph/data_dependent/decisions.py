"""What shapes that depend on data were decided by, where sizes are known at run time.

Rules compare extents, which are numbers of one sample of the sizes here.  Of several
bounds that would do, the one of the first sample is taken for all; what must hold is
noted, and asked of other sizes by who compares the samples (dynamic/graph.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

Array = np.ndarray
Way = tuple[str, int]  # a node, a number


@dataclass
class Decisions:
    """Those of one walk through a graph.

    is_open: whether there are such sizes.  where: the node that is looked at, in the
    words of a message.  ways: which of some numbers was taken.  given: the same of the
    first sample, which are taken again; None for that one.  differences: what may not
    be below 0.  root: the model's graph, whose inputs say what room there is
    (data_dependent/rooms.py).  unfit: branches that do not run for one of the samples.
    """

    is_open: bool = False
    where: str = ""
    given: Sequence[Way] | None = None
    ways: list[Way] = field(default_factory=list[Way])
    differences: list[Way] = field(default_factory=list[Way])
    root: ir.Graph | None = None
    unfit: set[str] = field(default_factory=set[str])

    def bound(self, *numbers: int) -> int:
        """The least of upper bounds; each of them would do."""
        return int(self.bounds([np.array(n) for n in numbers]))

    def bounds(self, numbers: Sequence[Array]) -> Array:
        """The same, element by element."""
        rows = np.stack(np.broadcast_arrays(*numbers))
        flat = rows.reshape(len(rows), -1)
        taken = [int(i) for i in np.argmin(flat, axis=0)]
        if self.given is not None:
            before = self.given[len(self.ways) : len(self.ways) + len(taken)]
            known = [way for where, way in before if where == self.where]
            taken = known if len(known) == len(taken) else taken
        self.ways += [(self.where, i) for i in taken]
        found = flat[taken, np.arange(len(taken))]
        return found.reshape(rows.shape[1:])

    def most(self, *numbers: int) -> int:
        """The largest of some numbers."""
        return int(self.largest([np.array(n) for n in numbers]))

    def largest(self, numbers: Sequence[Array]) -> Array:
        """The same, element by element."""
        rows = np.stack(np.broadcast_arrays(*numbers))
        found = np.max(rows, axis=0)
        self.require(found - rows)
        return found

    def is_less(self, one: int, other: int) -> bool:
        found = one < other
        self.require(np.array(other - one - 1 if found else one - other))
        return found

    def require(self, differences: Array) -> None:
        """Let numbers be 0 or more, as they are."""
        if self.is_open:
            self.differences += [(self.where, int(n)) for n in differences.flat]

    def last(self, extent: int) -> int:
        """The last place of an axis; 0 of one without elements."""
        return self.most(extent - 1, 0)
