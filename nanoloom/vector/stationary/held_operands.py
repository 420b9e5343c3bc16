"""The numbers that are in registers while the points of a stage are computed.

Each is known by its operand and its place, from where the current step is.  What has
been added to a result is written when it leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nanoloom.errors import Error
from nanoloom.ir.access import Operand, add, coefficient, index
from nanoloom.ir.mlir import arith, ir, memref, vector
from nanoloom.nest.extent import Lanes
from nanoloom.nest.reuse import Place, moved
from nanoloom.nest.taps import Tap, Window
from nanoloom.vector.lane_values import Uniform, Vector
from nanoloom.vector.operand_loads import load_operand
from nanoloom.vector.stationary import dot_products
from nanoloom.vector.tile_points import Point
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.vector_plan import ResidentOperands
from nanoloom.vector.widths import vector_type

if TYPE_CHECKING:
    from nanoloom.vector.vectorize_loops import Loops

Key = tuple[int, Place]  # an operand, and where
NOTHING: frozenset[int] = frozenset()


def window_of(loops: Loops, stays: ResidentOperands) -> Window:
    """How the operands of a generic move with its dimensions.

    Raises Error where that is no sum of them.
    """
    operands = (*loops.inputs, *loops.outputs)
    factors = tuple(
        tuple(factors_of(number, x, dim) for dim in range(len(loops.kinds)))
        for number, x in enumerate(operands)
    )
    return Window(stays.anchor, stays.points, stays.sums, factors)


def factors_of(number: int, x: Operand, dim: int) -> Place:
    """How far an operand's place moves with a dimension."""
    found = [coefficient(each, dim) for each in x.indexing.results]
    if None in found:
        raise Error(f"operand {number} lies at no sum of axes: nothing of it stays")
    return tuple(factor for factor in found if factor is not None)


@dataclass
class HeldOperands:
    """window: of the step.  kept: how many vectors of each operand stay.  turns: steps
    behind each other.  fixed: what does not change while it is here.  now: what is used
    again, and the tap that it was used at, for its place in memory."""

    loops: Loops
    window: Window
    kept: Mapping[int, int]
    turns: int
    fixed: dict[Key, ir.Value] = field(default_factory=dict[Key, ir.Value])
    now: dict[Key, tuple[ir.Value, Tap]] = field(
        default_factory=dict[Key, tuple[ir.Value, Tap]]
    )

    @property
    def result(self) -> int:
        """The number of the result among the operands."""
        return self.window.result

    def point(self, ivs: Sequence[ir.Value], tap: Tap) -> Point:
        """Where a tap is, of a step that begins there."""
        made = Point(tuple(ivs), self.loops.masks.get(0))
        for dim, number in zip(self.window.sums, tap.sums, strict=True):
            made = made.moved(dim, index(number))
        for dim, number in zip(self.window.points, tap.points, strict=True):
            made = made.moved(dim, add(ivs[dim], index(number)))
        return made

    def load(self, operand: int, ivs: Sequence[ir.Value], tap: Tap) -> ir.Value:
        """An operand from memory, as a vector."""
        point = self.point(ivs, tap)
        if operand == self.result:
            return self.started(point)
        found = load_operand(self.loops, operand, point)
        if isinstance(found, Uniform):
            kind = vector_type(self.loops.lanes, found.value.type)
            return vector.broadcast(kind, found.value)
        assert isinstance(found, Vector), "loads give nothing else"
        return found.value

    def compute(
        self,
        ivs: Sequence[ir.Value],
        tap: Tap,
        keep: Collection[int] = NOTHING,
        known: bool = True,
    ) -> None:
        """One point.  keep: operands that are used again; known: whether it is known
        where the point is, and so what is there."""
        values: list[ir.Value] = []
        for operand in range(self.result + 1):
            key = operand, self.window.place(operand, tap)
            if key in self.fixed:
                values.append(self.fixed[key])
            elif known and key in self.now:
                values.append(self.now.pop(key)[0])
            else:
                values.append(self.load(operand, ivs, tap))
        point = self.point(ivs, tap)
        made = values[self.result] = self.added(values, point)
        for operand in keep:
            self.now[operand, self.window.place(operand, tap)] = values[operand], tap
        if self.result not in keep:
            self.store(made, point)

    def added(self, values: Sequence[ir.Value], point: Point) -> ir.Value:
        """A result, the last of the values, and the product of the operands."""
        *given, total = values
        if self.loops.dot is not None:
            return dot_products.added(self.loops.dot, given, total, point.mask)
        known = dict(enumerate(given))
        (made,) = self.loops.compute(point, [total], ValueCache(), known)
        return made

    def advance(self) -> None:
        """The next step of the innermost loop: all that is held lies further back."""
        points = self.window.points
        back = (*(0 for _ in points[:-1]), -1)
        self.now = {
            (operand, moved(at, self.window.factors[operand][points[-1]], -1)): (
                value,
                replace(tap, points=moved(tap.points, back)),
            )
            for (operand, at), (value, tap) in self.now.items()
        }

    def release(self, ivs: Sequence[ir.Value], but: Iterable[Key] = ()) -> None:
        """Write what has been added to results and is not needed any more."""
        for key in [key for key in self.now if key not in set(but)]:
            value, tap = self.now.pop(key)
            if key[0] == self.result:
                self.store(value, self.point(ivs, tap))

    def started(self, point: Point) -> ir.Value:
        """What a result begins with: what lies there; of lanes that are summed, 0."""
        (x,) = self.loops.outputs
        if self.loops.kinds[self.loops.dim] == "parallel":
            return self.loops.started(x, point)
        (combiner,) = self.loops.combiners
        lanes, dot = self.loops.lanes, self.loops.dot
        if dot is not None:
            lanes = Lanes(lanes.count // dot.dot.group)
        return vector.broadcast(vector_type(lanes, x.element), combiner.neutral())

    def store(self, value: ir.Value, point: Point) -> None:
        """Write a result; lanes that are summed are added to what lies there."""
        (x,) = self.loops.outputs
        if self.loops.kinds[self.loops.dim] == "parallel":
            self.loops.write(value, x, point)
            return
        (combiner,) = self.loops.combiners
        if point.mask is not None and self.loops.dot is None:
            nothing = vector.broadcast(value.type, combiner.neutral())
            value = arith.select(point.mask, value, nothing)
        at = x.indices(point.ivs)
        before = memref.load(x.buffer, at)
        memref.store(combiner.apply(before, combiner.across(value)), x.buffer, at)
