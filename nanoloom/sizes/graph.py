"""Which constants of a model depend on its sizes, and what its sizes must fulfil.

A model is bound to samples of its dimensions, and each of them is walked through as a
graph of static shapes.  What is not alike in all of them depends on the sizes:

    small integers    stay constants, and become sizes (sizes/lift.py)
    other constants   are computed when the program runs: `kept`

Numbers that are decided otherwise for other sizes than the samples' (a minimum, a
slice that ends where the axis does) stop the model; so do operators that nobody has
looked at.  What holds for the samples because they are large enough is required:
`limits` are sizes that may not be below 0.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import onnx_ir as ir

from nanoloom.sizes import decided, operators
from nanoloom.sizes.differs import Differs
from nanoloom.sizes.size import Dims, Size, found
from nanoloom.sizes.trace import Seen, Visit, visits_of

SHAPES = ("Shape", "Size")
COUNTED = ("Range",)
MOST = 16  # elements of a constant whose numbers are sizes


@dataclass(frozen=True)
class Open:
    """What is not known before the sizes are.

    kept: names of values that the program computes.  limits: sizes, never below 0.
    """

    kept: Set[str]
    limits: tuple[Size, ...]


def open_values(
    models: Sequence[ir.Model], direct: Set[str], samples: Sequence[Dims]
) -> Open:
    """What depends on the sizes of a model, bound to each of the samples.

    The models are used up.  Raises Differs.
    """
    rows = [visits_of(model, direct) for model in models]
    if len({tuple(v.name for v in row) for row in rows}) > 1:
        raise Differs("its nodes")
    walk = Comparing(samples)
    for visits in zip(*rows, strict=True):
        walk.node(visits)
    return Open(frozenset(walk.kept), tuple(walk.limits))


@dataclass
class Comparing:
    """The walk through all samples at once."""

    samples: Sequence[Dims]
    kept: set[str] = field(default_factory=set[str])
    differing: set[str] = field(default_factory=set[str])  # constants, by their numbers
    limits: dict[Size, None] = field(default_factory=dict[Size, None])

    def node(self, visits: Sequence[Visit]) -> None:
        first = visits[0]
        made = [x for x in first.outputs if x.is_known and first.operator != "Constant"]
        depends = any(x and self.depends(x) for x in first.inputs)
        shaped = first.operator in SHAPES
        if made and (depends or shaped):
            self.constants(visits)
        if len(made) < len(first.outputs) or self.is_kept(first):
            self.computed(visits, depends)

    def depends(self, value: Seen) -> bool:
        return value.name in self.differing or value.name in self.kept

    def reads_kept(self, visit: Visit) -> bool:
        """Whether it reads numbers, not only the shape, of what is computed."""
        names = [x.name for x in visit.inputs if x is not None]
        return visit.operator not in SHAPES and any(n in self.kept for n in names)

    def is_kept(self, visit: Visit) -> bool:
        return any(x.name in self.kept for x in visit.outputs)

    def constants(self, visits: Sequence[Visit]) -> None:
        """A node whose outputs are known, from what depends on sizes."""
        for outputs in zip(*[v.outputs for v in visits], strict=True):
            rows = [x.numbers for x in outputs]
            small = len({x.shape for x in outputs}) == 1 and all(
                row is not None and row.size <= MOST for row in rows
            )
            counted = visits[0].operator in COUNTED  # places, and no shape
            if counted or not small or self.reads_kept(visits[0]):
                self.kept.add(outputs[0].name)
                continue
            decided.require(visits, self.samples)
            if not decided.alike(rows):
                self.differing.add(outputs[0].name)

    def computed(self, visits: Sequence[Visit], depends: bool) -> None:
        """A node that runs when the program does."""
        values = zip(*[(*v.inputs, *v.outputs) for v in visits], strict=True)
        shapes = [{x.shape for x in row if x is not None} for row in values]
        if not depends and all(len(each) <= 1 for each in shapes):
            return
        for numbers in operators.limits(visits, self.kept):
            size = found(numbers, self.samples)
            if size is None:
                raise Differs(f"{visits[0].name}: {', '.join(map(str, numbers))}")
            if size.number is None or size.number < 0:
                self.limits[size] = None
