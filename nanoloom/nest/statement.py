"""One operation of a kernel: its axes, what it reads and writes, how it combines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from nanoloom.nest.extent import Extent
from nanoloom.nest.index import Access, Index
from nanoloom.nest.reduction import SUMS_OF_PRODUCTS

SIMPLE_MATH = (
    "math.absf",
    "math.absi",
    "math.sqrt",
    "math.fma",
    "math.floor",
    "math.ceil",
    "math.trunc",
    "math.roundeven",
    "math.copysign",
)  # an instruction, or a few: others are series of them


class AxisKind(Enum):
    """PARALLEL: its points do not wait for each other.  REDUCTION: they add up."""

    PARALLEL = "parallel"
    REDUCTION = "reduction"


@dataclass(frozen=True)
class Axis:
    """One loop of a stage before anything is scheduled.

    is_sample: the extent is one of many that it will have when the kernel runs.
    """

    name: str
    kind: AxisKind
    extent: Extent
    is_sample: bool = False

    @property
    def is_reduction(self) -> bool:
        return self.kind is AxisKind.REDUCTION

    def __str__(self) -> str:
        word = " (sum)" if self.is_reduction else ""
        return f"{self.name} in 0..{self.extent}{word}"


@dataclass(frozen=True)
class Semiring:
    """How a reduction makes its result: combine(result, product(widened operands)).

    Operations by MLIR's names: ("arith.addf", "arith.mulf") is the sum of products,
    ("arith.maximumf", "arith.addf") the largest of sums.  product: "" where what is
    combined is anything else, or one operand.  widening: of every operand, "" for none.
    """

    combine: str
    product: str = ""
    widening: tuple[str, ...] = ()

    @property
    def is_sum_of_products(self) -> bool:
        """What nanokernels multiply."""
        return (self.combine, self.product) in SUMS_OF_PRODUCTS


@dataclass(frozen=True)
class Statement:
    """An operation over its axes, outermost first.

    reads, writes: of one point.  starts: for each of `writes`, the number that it
    starts from or is written over, as text, "" where it starts from what is there.
    begins: the buffers in which other stages leave that, "" for none.
    semiring: of a reduction, None if it is known by no such form.  lanewise: whether a
    point is arithmetic only, which works on a vector as on a number.  body: of one
    point, the names of its operations in order.  found: the element types of what it
    reads at places that it computes.  inside: of a pad, what it reads where
    that is within its buffer; outside of it, it writes the number `outside`, as text,
    or what it reads there.
    cropped: whether the buffer has other numbers where that is.  adds: operands that
    are floats added to others, and do nothing else: (this one, the other), by number.
    calls: whether a function of it has no vectors, and is called for each number.
    factors: whether the numbers of its first operand are known while compiling.
    """

    name: str
    axes: tuple[Axis, ...]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    starts: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    semiring: Semiring | None = None
    lanewise: bool = True
    body: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    inside: Access | None = None
    outside: str | Access = ""
    cropped: bool = False
    adds: tuple[tuple[int, int], ...] = ()
    calls: bool = False
    factors: bool = False

    @property
    def extents(self) -> tuple[Extent, ...]:
        return tuple(axis.extent for axis in self.axes)

    # A schedule asks each stage of a nest, again at each of its steps.
    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the axes."""
        return tuple(axis.name for axis in self.axes)

    @cached_property
    def is_reduction(self) -> bool:
        return any(axis.is_reduction for axis in self.axes)

    @property
    def is_contraction(self) -> bool:
        """A sum of products of two operands."""
        return self.semiring is not None and self.semiring.is_sum_of_products

    @property
    def on_lanes(self) -> bool:
        """Whether points can be lanes of a vector of any width: arithmetic, their own
        places, and what is found at places that they compute."""
        known = ("linalg.index", "tensor.extract")
        plain = all(x.startswith(("arith.", "math.")) or x in known for x in self.body)
        return plain and "arith.remf" not in self.body

    @property
    def has_functions(self) -> bool:
        """Whether an exp or its kin is in a point: these have numbers enough of their
        own to hold in registers."""
        return any(x.startswith("math.") and x not in SIMPLE_MATH for x in self.body)

    @property
    def is_copy(self) -> bool:
        """Whether it writes what it reads, each number to the same place of another."""
        if self.body or self.is_reduction or len(self.reads) != 1:
            return False
        if self.inside is not None or len(self.writes) != 1:
            return False
        read, written = self.reads[0].indices, self.writes[0].indices
        same = [index.terms for index in read] == [index.terms for index in written]
        return same and not any(index.other for index in read)

    @cached_property
    def taken(self) -> tuple[Access, ...]:
        """All that it takes: what it reads, what is inside of its border, and what its
        results begin with."""
        pairs = zip(self.writes, self.begins, strict=False)
        begun = (Access(name, w.indices, w.element) for w, name in pairs if name)
        around = [x for x in (self.inside, self.outside) if isinstance(x, Access)]
        return *self.reads, *around, *begun

    @cached_property
    def sources(self) -> frozenset[str]:
        """The buffers of all that it takes."""
        return frozenset(taken.buffer for taken in self.taken)

    def axis(self, name: str) -> Axis | None:
        return next((axis for axis in self.axes if axis.name == name), None)

    def place(self, axis: str) -> int:
        """Which of the loops an axis is."""
        return self.names.index(axis)

    def follows(self, read: tuple[Index, ...]) -> bool:
        """Whether it can be the epilogue of what it reads at these indices.

        Elementwise, at the same place; and an epilogue reads vectors along its last
        axis: nothing transposed, no steps.
        """
        if self.is_reduction or not self.lanewise:
            return False
        places = tuple(index.axis for index in read), *(x.plain for x in self.writes)
        if any(place != self.names for place in places):
            return False
        operands = (*self.reads, *self.writes)
        return not self.axes or all(x.lies_along(self.names[-1]) for x in operands)

    def leading_parallel(self) -> int:
        """Parallel axes before the first reduction, 0 if the order is mixed."""
        kinds = [axis.is_reduction for axis in self.axes]
        if True not in kinds:
            return len(kinds)
        rows = kinds.index(True)
        return rows if all(kinds[rows:]) else 0

    def __str__(self) -> str:
        written = ", ".join(map(str, self.writes))
        read = ", ".join(map(str, self.reads))
        if self.inside is not None:
            inside = "inside a part" if self.cropped else "inside"
            read = f"{self.inside} {inside}, {self.outside} outside"
        return f"{self.name}: {written} <- {read}"
