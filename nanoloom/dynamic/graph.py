"""Which constants of a model depend on its sizes, and what its sizes must fulfil.

A model is bound to samples of its dimensions, and each of them is walked through as a
graph of static shapes.  What is not alike in all of them depends on the sizes:

    small integers    stay constants, and become sizes (dynamic/dynamic_kernel.py)
    other constants   are computed when the program runs: `kept`

Numbers that are decided otherwise for other sizes than the samples' (a minimum, a
slice that ends where the axis does) stop the model; so do operators that nobody has
looked at.  What holds for the samples because they are large enough is required:
`limits` are sizes that may not be below 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from nanoloom.dynamic import operators, size_predicates
from nanoloom.dynamic.dynamic_refusal import NotDynamic, Others, no_size, with_dims
from nanoloom.dynamic.dynamic_windows import (
    ONLY_MOVED,
    WINDOWS,
    are_steady,
    changing_axes,
    is_fixed,
)
from nanoloom.dynamic.fit_floors import Samples, distinguished, is_ambiguous, is_part
from nanoloom.dynamic.floor_division import floors_of
from nanoloom.dynamic.node_dims import dims_of
from nanoloom.dynamic.polynomial import Dims, Size, found
from nanoloom.dynamic.roles import COUNTED, are_places, is_matrix, told_sizes
from nanoloom.dynamic.sample_walk import NodeSample, Visit, Walks
from nanoloom.dynamic.samples import are_of_images
from nanoloom.errors import Error
from nanoloom.graph.data_dependent.decisions import Decisions
from nanoloom.graph.data_dependent.rooms import Unbounded
from nanoloom.graph.shared_decisions import BY_SIZES

SHAPES = ("Shape", "Size")
WALKS = 8  # what samples confuse is taken for something else: then others walk
MOST = 16  # elements of a constant whose numbers are sizes


@dataclass(frozen=True)
class Open:
    """What is not known before the sizes are.

    kept: names of values that the program computes.  limits: sizes, never below 0.
    samples: those of the dimensions, and of the floors that sizes are made of.  fixed:
    nodes whose windows and tables are the same for all sizes.  resized: along which
    axes some sizes resize an image, by node.  unfit: branches that do not run for all
    of the samples.
    """

    kept: Set[str]
    limits: tuple[Size, ...]
    samples: tuple[Dims, ...] = ()
    fixed: Set[str] = frozenset()
    unfit: Set[str] = frozenset()
    resized: Mapping[str, Set[int]] = field(default_factory=dict[str, Set[int]])


def open_values(walks: Walks, samples: Sequence[Dims]) -> Open:
    """What depends on the sizes of a model; raises Differs."""
    given, kept, reason = list(samples[0]), frozenset[str](), ""
    divides = False
    for _ in range(WALKS):
        try:
            walk = walked(walks, samples, kept)
        except (NotDynamic, Error) as error:
            if not reason:
                raise
            others = error.others if isinstance(error, NotDynamic) else Others.NONE
            others = others or (Others.OF_IMAGES if divides else Others.NONE)
            wanted = error if isinstance(error, Unbounded) else None
            raise NotDynamic(reason, others=others, wanted=wanted) from error
        told, reason = distinguished(walk.samples), walk.reason or reason
        divides = divides or walk.divides
        settled = not walk.again or frozenset(walk.kept) == kept
        if told == tuple(walk.samples) and settled:
            break
        kept = frozenset(walk.kept) if walk.again else kept
        samples = [{name: sample[name] for name in given} for sample in told]
    else:
        raise NotDynamic("samples do not tell its sizes apart", others=Others.ANY)
    limits = (*limits_of_parts(walk.samples), *walk.limits)
    fixed = frozenset(name for name, is_fixed in walk.fixed.items() if is_fixed)
    unfit = frozenset(walks.unfit)
    told = frozenset(walk.kept), limits, tuple(walk.samples), fixed, unfit
    return Open(*told, walk.resized)


def walked(walks: Walks, samples: Sequence[Dims], kept: Set[str]) -> Comparing:
    """The walk through a model for each sample.  kept: what the program computes."""
    found = walks.through(samples, kept)
    walk = Comparing([dict(sample) for sample in samples], {*kept})
    walk.told = told_sizes(found[0].visits)
    try:
        for visits in zip(*[each.visits for each in found], strict=True):
            walk.node(visits)
        walk.compare([each.decided for each in found])
    except NotDynamic as error:
        if walk.kept == kept and not is_ambiguous(walk.samples):
            raise
        # What is computed, and no constant, in the next walk may let it pass, or what
        # samples tell apart then.
        walk.again, walk.reason = True, walk.reason or str(error)
    walk.again = walk.again or bool(found[0].counted)
    return walk


def limits_of_parts(samples: Samples) -> list[Size]:
    """What is left over of a dimension that is a multiple, times -1."""
    return [
        Size(((floor.over, (floor.name,)), (-1, (floor.dim,))))
        for floor in floors_of(samples[0])
        if is_part(floor, samples)
    ]


@dataclass
class Comparing:
    """The walk through all samples at once.

    again: whether it is another one with what is kept.  reason: why that is more.
    fixed: of nodes by name, whether windows and tables are the same for all sizes.
    divides: whether sizes are divided that only samples of images have floors of.
    told: names of values that nothing but operators' sizes are made of.
    """

    samples: Samples
    kept: set[str] = field(default_factory=set[str])
    again: bool = False
    reason: str = ""
    differing: set[str] = field(default_factory=set[str])  # constants, by their numbers
    limits: dict[Size, None] = field(default_factory=dict[Size, None])
    fixed: dict[str, bool] = field(default_factory=dict[str, bool])
    resized: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    divides: bool = False
    told: Set[str] = frozenset()

    def node(self, visits: Sequence[Visit]) -> None:
        first = visits[0]
        self.given(visits)
        if first.operator in BY_SIZES:
            name = first.node.name or ""
            self.fixed[name] = self.fixed.get(name, True) and is_fixed(visits)
            self.resized.setdefault(name, set()).update(changing_axes(visits))
        if self.is_chosen(first):
            return  # the nodes of its branch are visited behind it
        made = [x for x in first.outputs if x.is_known and first.operator != "Constant"]
        depends = any(x and self.depends(x) for x in first.inputs)
        shaped = first.operator in SHAPES
        if made and (depends or shaped):
            self.constants(visits)
        elif depends and all(x is None or x.is_known for x in first.inputs):
            # A table that is resized: else who optimizes the graph computes it.
            self.kept.update(x.name for x in first.outputs)
        if len(made) < len(first.outputs) or self.is_kept(first):
            self.computed(visits, depends)

    def is_chosen(self, visit: Visit) -> bool:
        """Whether it is an If whose condition is the same for all sizes."""
        condition = visit.inputs[0] if visit.operator == "If" else None
        if condition is None or not condition.is_known:
            return False
        return not self.depends(condition)

    def depends(self, value: NodeSample) -> bool:
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
            differs, name = not size_predicates.alike(rows), outputs[0].name
            if (
                are_places(visits[0])
                or not small
                or self.reads_kept(visits[0])
                or (differs and is_matrix(outputs[0]) and name not in self.told)
            ):
                self.kept.add(name)
                # How many, of what is computed: other nodes take its place then.
                counted = visits[0].operator in COUNTED
                self.again = self.again or (counted and self.reads_kept(visits[0]))
                continue
            is_right = size_predicates.is_right(visits, self.samples)
            if not is_right and not self.is_floor(visits):
                self.keep(name, f"{visits[0].name} decides by a size")
            elif differs:
                self.differing.add(name)

    def is_floor(self, visits: Sequence[Visit]) -> bool:
        """Whether sizes are divided by numbers; samples of images get the floors."""
        limits = size_predicates.rounded_down(visits, self.samples)
        if not are_of_images(self.samples):
            self.divides = self.divides or size_predicates.is_division(visits)
        for numbers in limits or ():
            self.limit(visits[0].name, numbers)
        return limits is not None

    def keep(self, name: str, reason: str) -> None:
        """Let another walk see what a constant is for as computed."""
        self.kept.add(name)
        self.again, self.reason = True, self.reason or reason

    def given(self, visits: Sequence[Visit]) -> None:
        """Constants that differ and that no node gave: extents of largest shapes."""
        for row in zip(*[v.inputs for v in visits], strict=True):
            known = [x for x in row if x is not None and x.is_known]
            if not known or self.depends(known[0]):
                continue
            rows, shapes = [x.numbers for x in known], {x.shape for x in known}
            if len(shapes) == 1 and size_predicates.alike(rows):
                continue
            if len(shapes) > 1 or len(known) < len(row) or not self.are_sizes(rows):
                reason = NotDynamic(
                    f"{visits[0].name} reads {known[0].name}, which depends on sizes"
                )
                raise with_dims(reason, dims_of(visits, self.samples))
            self.differing.add(known[0].name)

    def are_sizes(self, rows: Sequence[np.ndarray | None]) -> bool:
        """Whether the elements of constants are sizes, each for itself."""
        numbers = [[int(n) for n in row.flat] for row in rows if row is not None]
        whole = len(numbers) == len(rows) and len(numbers[0]) <= MOST
        columns = zip(*numbers, strict=True)
        return whole and all(found(each, self.samples) for each in columns)

    def compare(self, each: Sequence[Decisions]) -> None:
        """What shapes that depend on data went by, for each of the samples."""
        ways = [x.ways for x in each]
        for row in zip(*ways, strict=False):
            if len(set(row)) > 1:
                raise NotDynamic(
                    f"{row[0][0]}: a size decides which bound holds", others=Others.ANY
                )
        rows = [x.differences for x in each]
        if any(len({*map(len, pairs)}) > 1 for pairs in (ways, rows)):
            raise NotDynamic("its shapes go by data otherwise for other sizes")
        for row in zip(*rows, strict=True):
            self.limit(row[0][0], [n for _, n in row])

    def limit(self, where: str, numbers: Sequence[int]) -> None:
        """Let a size be 0 or more."""
        size = found(numbers, self.samples)
        if size is None:
            raise no_size(f"{where}: what it reaches", self.samples[0])
        if size.number is None or size.number < 0:
            self.limits[size] = None

    def computed(self, visits: Sequence[Visit], depends: bool) -> None:
        """A node that runs when the program does."""
        values = zip(*[(*v.inputs, *v.outputs) for v in visits], strict=True)
        shapes = [{x.shape for x in row if x is not None} for row in values]
        if not depends and all(len(each) <= 1 for each in shapes):
            return
        try:
            limits = self.numbers(visits)
        except NotDynamic as reason:
            if not reason.computed or reason.computed in self.kept:
                dims = dims_of(visits, self.samples)
                raise with_dims(reason, dims) from None
            self.keep(reason.computed, str(reason))
            return
        for numbers in limits:
            self.limit(visits[0].name, numbers)

    def numbers(self, visits: Sequence[Visit]) -> Sequence[tuple[int, ...]]:
        """What may not be below 0 for a node."""
        first = visits[0]
        if (rule := WINDOWS.get(first.operator)) is None:
            return operators.limits(visits, self.kept, self.samples)
        moved = first.operator in ONLY_MOVED or are_steady(visits, self.samples)
        if not (moved or are_of_images(self.samples)):
            reason = f"{first.name} is compiled for known sizes only"
            raise NotDynamic(reason, others=Others.OF_IMAGES)
        try:
            return rule(visits, self.samples)
        except NotDynamic as reason:
            raise NotDynamic(f"{first.name}: {reason}", others=Others.ANY) from None
