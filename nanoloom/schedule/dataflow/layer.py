"""What a dataflow needs to know of a kernel: which loops of its product are which."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.errors import Error
from nanoloom.nest.contraction import bits, roles
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.nest.taps import Window
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import plain_dot


@dataclass(frozen=True)
class Layer:
    """A convolution, or any product of two operands, by its axes' names.

    input, weight: the numbers of the operands; the result is the one behind them.
    vectors: the axis that becomes lanes.  pixels: axes of the result that the input has
    and the weights have not; window: sums that move the input's place along these;
    filters: axes of the weights alone; groups: of both; channels: other sums.
    """

    stage: Statement
    input: int
    weight: int
    vectors: str
    pixels: tuple[str, ...]
    window: tuple[str, ...]
    filters: tuple[str, ...]
    groups: tuple[str, ...]
    channels: tuple[str, ...]

    @property
    def operands(self) -> dict[str, int]:
        """The numbers of what can be stationary."""
        return {"output": 2, "weight": self.weight, "input": self.input}

    def extents(self, axes: tuple[str, ...]) -> list[int]:
        """The points of some axes; those that are no number count as one."""
        found = [self.stage.axis(name) for name in axes]
        sizes = [axis.extent for axis in found if axis is not None]
        return [size if isinstance(size, int) else 1 for size in sizes]

    @property
    def taps(self) -> int:
        """R of the paper: points of the window."""
        return prod(self.extents(self.window))

    @property
    def outputs(self) -> int:
        """E of the paper: pixels of the result."""
        return prod(self.extents(self.pixels))

    def bits(self, target: Target) -> int:
        """Of a number that fills a lane: of a sum, or of an operand where
        an instruction multiplies and adds up neighbours."""
        total = bits(self.stage.writes[0].element)
        axis = self.stage.axis(self.vectors)
        summed = axis is not None and axis.is_reduction and total == bits("i32")
        one, other = (x.element for x in self.stage.reads)
        dots = summed and plain_dot(target, one, other) is not None
        return bits(one) if dots else total

    def steps(self, anchor: str) -> Window:
        """The steps of the block of code in which one operand is the anchor."""
        place = self.stage.place
        points, sums = map(place, self.pixels), map(place, self.window)
        number = self.operands[anchor]
        return Window.of(self.stage, number, tuple(points), tuple(sums))


def layer_of(nest: LoopNest) -> Layer:
    """The only product of a kernel.  Raises Error if dataflows know no such."""
    products = nest.products
    if len(products) != 1:
        hint = "compile a convolution of its own"
        raise Error(
            f"the kernel has {len(products)} sums of products, not one", hint=hint
        )
    (stage,) = products
    source = input_of(stage)
    read, weights = stage.reads[source], stage.reads[1 - source]
    vectors = vectors_of(stage)
    parallel = [a.name for a in stage.axes if not a.is_reduction and a.name != vectors]
    sums = [a.name for a in stage.axes if a.is_reduction and a.name != vectors]
    both = read.axes & weights.axes
    pixels = tuple(a for a in parallel if a in read.axes - weights.axes)
    if not pixels:
        reason = f"{stage.name} has no pixels beside its vectors, along {vectors}"
        raise Error(reason, hint="a dataflow is for convolutions with several pixels")
    moving = {a for x in read.indices for a in x.axes if set(x.axes) & set(pixels)}
    return Layer(
        stage,
        source,
        1 - source,
        vectors,
        pixels,
        tuple(a for a in sums if a in moving),
        tuple(a for a in parallel if a in weights.axes - read.axes),
        tuple(a for a in parallel if a in both),
        tuple(a for a in sums if a not in moving),
    )


def input_of(stage: Statement) -> int:
    """The operand that a window moves over; of a plain product the left one."""
    for number, x in enumerate(stage.reads):
        for index in x.indices:
            kinds = {axis.is_reduction for a in index.axes if (axis := stage.axis(a))}
            if len(kinds) > 1:
                return number
    shape = roles(stage)
    return 0 if shape is None else shape.left


def vectors_of(stage: Statement) -> str:
    """The axis along which all lies, the result's innermost or one that is summed.

    The result's innermost one, if there is none: numbers are read one by one then.
    """
    written = stage.writes[0].plain
    last = written[-1] if written else None
    if last is None:
        raise Error(f"{stage.name} has no innermost axis to have vectors along")
    if all(x.lies_along(last) for x in stage.reads):
        return last
    for axis in stage.axes:
        rows = [x.lies_along(axis.name) and axis.name in x.axes for x in stage.reads]
        if axis.is_reduction and all(rows):
            return axis.name
    return last
