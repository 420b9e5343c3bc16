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
from math import prod

from nanoloom.sizes import decided, operators
from nanoloom.sizes.differs import Differs
from nanoloom.sizes.floor import floors_of
from nanoloom.sizes.floors import Samples, is_part, told_apart
from nanoloom.sizes.samples import are_of_images
from nanoloom.sizes.size import Dims, Size, found
from nanoloom.sizes.trace import Seen, Visit, Walks
from nanoloom.sizes.windows import ONLY_MOVED, WINDOWS, are_steady

SHAPES = ("Shape", "Size")
COUNTED = ("Range",)
REPEATED = ("Expand", "Tile")
WALKS = 4  # what samples confuse is taken for something else: then others walk
MOST = 16  # elements of a constant whose numbers are sizes


@dataclass(frozen=True)
class Open:
    """What is not known before the sizes are.

    kept: names of values that the program computes.  limits: sizes, never below 0.
    samples: those of the dimensions, and of the floors that sizes are made of.
    """

    kept: Set[str]
    limits: tuple[Size, ...]
    samples: tuple[Dims, ...] = ()


def open_values(walks: Walks, samples: Sequence[Dims]) -> Open:
    """What depends on the sizes of a model; raises Differs."""
    given = list(samples[0])
    for _ in range(WALKS):
        walk = walked(walks, samples)
        told = told_apart(walk.samples)
        if told == tuple(walk.samples):
            break
        samples = [{name: sample[name] for name in given} for sample in told]
    else:
        raise Differs("samples do not tell its sizes apart", for_images=True)
    limits = (*limits_of_parts(walk.samples), *walk.limits)
    return Open(frozenset(walk.kept), limits, tuple(walk.samples))


def walked(walks: Walks, samples: Sequence[Dims]) -> Comparing:
    """The walk through a model for each sample."""
    walk = Comparing([dict(sample) for sample in samples])
    for visits in zip(*walks.through(samples), strict=True):
        walk.node(visits)
    return walk


def limits_of_parts(samples: Samples) -> list[Size]:
    """What is left over of a dimension that is a multiple, times -1."""
    return [
        Size(((floor.over, (floor.name,)), (-1, (floor.dim,))))
        for floor in floors_of(samples[0])
        if is_part(floor, samples)
    ]


def are_places(visit: Visit) -> bool:
    """Whether integers say which rows are read, and not how large something is.

    What is repeated for each row of a batch is a matrix, which no shape is.
    """
    if visit.operator in COUNTED:
        return True
    return visit.operator in REPEATED and is_matrix(visit.outputs[0])


def is_matrix(value: Seen) -> bool:
    shape = value.shape or ()
    return len(shape) > 1 and prod(shape) > 1


@dataclass
class Comparing:
    """The walk through all samples at once."""

    samples: Samples
    kept: set[str] = field(default_factory=set[str])
    differing: set[str] = field(default_factory=set[str])  # constants, by their numbers
    limits: dict[Size, None] = field(default_factory=dict[Size, None])

    def node(self, visits: Sequence[Visit]) -> None:
        first = visits[0]
        if self.is_chosen(first):
            return  # the nodes of its branch are visited behind it
        made = [x for x in first.outputs if x.is_known and first.operator != "Constant"]
        depends = any(x and self.depends(x) for x in first.inputs)
        shaped = first.operator in SHAPES
        if made and (depends or shaped):
            self.constants(visits)
        if len(made) < len(first.outputs) or self.is_kept(first):
            self.computed(visits, depends)

    def is_chosen(self, visit: Visit) -> bool:
        """Whether it is an If whose condition is the same for all sizes."""
        condition = visit.inputs[0] if visit.operator == "If" else None
        if condition is None or not condition.is_known:
            return False
        return not self.depends(condition)

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
            differs = not decided.alike(rows)
            if (
                are_places(visits[0])
                or not small
                or self.reads_kept(visits[0])
                or (differs and is_matrix(outputs[0]))
            ):
                self.kept.add(outputs[0].name)
                continue
            decided.require(visits, self.samples)
            if differs:
                self.differing.add(outputs[0].name)

    def computed(self, visits: Sequence[Visit], depends: bool) -> None:
        """A node that runs when the program does."""
        values = zip(*[(*v.inputs, *v.outputs) for v in visits], strict=True)
        shapes = [{x.shape for x in row if x is not None} for row in values]
        if not depends and all(len(each) <= 1 for each in shapes):
            return
        for numbers in self.numbers(visits):
            size = found(numbers, self.samples)
            if size is None:
                raise Differs(f"{visits[0].name}: {', '.join(map(str, numbers))}")
            if size.number is None or size.number < 0:
                self.limits[size] = None

    def numbers(self, visits: Sequence[Visit]) -> Sequence[tuple[int, ...]]:
        """What may not be below 0 for a node."""
        first = visits[0]
        if (rule := WINDOWS.get(first.operator)) is None:
            return operators.limits(visits, self.kept)
        floors = first.operator not in ONLY_MOVED and not are_steady(visits)
        if floors and not are_of_images(self.samples):
            reason = f"{first.name} is compiled for known sizes only"
            raise Differs(reason, for_images=True)
        try:
            return rule(visits, self.samples)
        except Differs as reason:
            raise Differs(f"{first.name}: {reason}", for_images=True) from None
