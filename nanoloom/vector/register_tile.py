"""A tile of a generic's results: so many points at once, their sums in registers.

    for k of the reductions: results[point 0] = f(...); results[point 1] = f(...); ...

A point is a vector of every result.  What points share is read once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType

from nanoloom.ir.access import Access, Operand, add, as_index, index
from nanoloom.ir.linalg_query import all_dims
from nanoloom.ir.mlir import ir, memref, vector
from nanoloom.nest.extent import ONE, Lanes
from nanoloom.vector import inlined_producers as producers
from nanoloom.vector.body import VectorBody, gathers, read, takes_any
from nanoloom.vector.choose_instruction import in_groups, summed
from nanoloom.vector.extents import size
from nanoloom.vector.factors import Factors, no_term
from nanoloom.vector.guarded_operand import GuardedOperand
from nanoloom.vector.instruction_steps import InstructionSteps
from nanoloom.vector.interleaved_store import together, write_points
from nanoloom.vector.lane_values import LaneValue, Uniform, Vector
from nanoloom.vector.loop_partition import at_ends, limits, points_at_steps
from nanoloom.vector.operand_loads import load_operand
from nanoloom.vector.reduction_iterations import in_rounds, looped
from nanoloom.vector.scalable_gather import Strided
from nanoloom.vector.sliding_window_reuse import shared_operand, written_out
from nanoloom.vector.tile_points import Point, Step
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.widths import elements, filled, vector_type

NOTHING: Mapping[int, ir.Value] = MappingProxyType({})


@dataclass
class RegisterTile:
    """A generic on buffers with its vector dimension.

    order: of the dimensions, outermost first, also of the points in a tile. unrolled:
    of dimensions of a sum, how many steps stand behind each other, 0 for all. jam: of
    dimensions, how many points are computed at once, of the vector dimension so many
    vectors. masks: of these, by their numbers. starts: the number that each output
    starts from, None to read it. fuses: products are added in one rounding. ahead:
    dimensions loaded a round ahead. sources: of inputs, by number, what computes them
    at the tile. steps: several of a sum at once. near: places of lanes are counted
    in 32 bits. halves: types of 16 bits whose products the target adds to f32. partial:
    vectors of a known width can be loaded in part. guarded: what a pad reads. early:
    points are written between products. reuses: steps of sums follow places read.
    factors: the numbers of the first input, None if they are not known (factors.py).
    """

    block: ir.Block
    inputs: list[Operand]
    outputs: list[Operand]
    kinds: list[str]
    dim: int
    lanes: Lanes
    order: tuple[int, ...]
    unrolled: Mapping[int, int]
    jam: Mapping[int, int]
    masks: Mapping[int, ir.Value]
    starts: list[ir.Value | None]
    fuses: bool
    ahead: frozenset[int]
    sources: Mapping[int, producers.InlinedProducer]
    steps: InstructionSteps | None
    near: bool
    halves: frozenset[str]
    partial: bool
    guarded: GuardedOperand | None
    early: bool
    reuses: bool
    factors: Factors

    @property
    def reduced(self) -> list[int]:
        """The dimensions of sums, in order."""
        return [d for d in self.order if self.kinds[d] == "reduction"]

    def extent(self, dim: int) -> ir.Value:
        for x in sorted((*self.outputs, *self.inputs), key=lambda x: x.is_within):
            for place, expr in enumerate(x.indexing.results):
                if isinstance(expr, ir.AffineDimExpr) and expr.position == dim:
                    return size(x.buffer, place)
        raise AssertionError(f"dimension {dim} has no extent")

    def is_maskable(self) -> bool:
        """Whether a partial vector may be loaded through a mask."""
        strided = any(
            x.access(self.dim) is Access.STRIDED and not self.takes_second(x)
            for x in self.inputs
        )
        sources = all(source.strip.is_maskable() for source in self.sources.values())
        masked = self.lanes.scalable or self.guarded is not None
        lone = gathers(self.block, self.dim) and not masked
        return (self.lanes.scalable or not strided) and not lone and sources

    def takes_second(self, x: Operand) -> bool:
        """Whether an operand's lanes are every second element of what is loaded."""
        return self.partial and self.lanes != ONE and x.step(self.dim) > 1

    def points(self, ivs: Sequence[ir.Value]) -> list[Point]:
        """All points that are computed at once, in the order of the loops."""
        axes = sorted(self.jam, key=self.order.index)
        made: list[Point] = []
        for numbers in product(*(range(self.jam[d]) for d in axes)):
            places = dict(zip(axes, numbers, strict=True))
            point = Point(tuple(ivs))
            for dim, number in places.items():
                here = elements(self.lanes, number) if dim == self.dim else number
                point = point.moved(dim, add(ivs[dim], as_index(here)))
            made.append(replace(point, mask=self.masks.get(places.get(self.dim, 0))))
        return made

    def tile(
        self,
        ivs: Sequence[ir.Value],
        known: Mapping[int, ir.Value] = NOTHING,
        once: ValueCache | None = None,
    ) -> None:
        """Compute all points that begin here, and write them.

        known: vectors of inputs at hand, by number; once: the same, by their places.
        """
        points, once, written = self.points(ivs), once or ValueCache(), set[int]()

        def step(
            here: list[Point], values: list[ir.Value], once: ValueCache
        ) -> list[ir.Value]:
            return self.computed(here, values, once, known)

        def write(which: int, _: ir.Value) -> None:
            written.add(which)
            self.finish(points[which : which + 1], step, replace(once, added=None))

        one = self.early and not self.reduced and producers.sums_at_tile(self) == 1
        one = one and not any(together(self, x) > 1 for x in self.outputs)
        producers.compute_sums(
            self, points, replace(once, added=write) if one else once
        )
        self.finish([p for n, p in enumerate(points) if n not in written], step, once)

    def finish(self, points: list[Point], step: Step, once: ValueCache) -> None:
        """Compute some points and write them."""
        write_points(self, points, self.summed(points, step, once, []))

    def summed(
        self, points: list[Point], step: Step, once: ValueCache, start: list[ir.Value]
    ) -> list[ir.Value]:
        """The results of some points together; start: what they begin with, or []."""
        start = start or [self.started(x, p) for p in points for x in self.outputs]
        return summed(self, points, start, step, once)

    def write(self, value: ir.Value, x: Operand, point: Point) -> None:
        at = x.indices(point.ivs)
        if self.lanes == ONE:
            memref.store(vector.extract(value, [], [0]), x.buffer, at)
        elif x.access(self.dim) is Access.STRIDED:
            Strided(x, self.dim, self.near).write(value, at, point.mask)
        elif point.mask is None:
            vector.store(value, x.buffer, at)
        else:
            vector.maskedstore(x.buffer, at, point.mask, value)

    def accumulate(
        self,
        dims: list[int],
        points: list[Point],
        values: list[ir.Value],
        inner: Step,
        once: ValueCache,
    ) -> list[ir.Value]:
        """Run the reduction loops with the results as loop-carried vectors."""
        if not dims:
            return inner(points, values, once)
        x = shared_operand(self, dims) if self.reuses else None
        if x is not None:
            return written_out(self, x, dims, points, values, inner, once)
        dim, *rest = dims
        ends = points_at_steps(self, dim, points)
        if ends is not None:
            return at_ends(self, ends, dims, points, values, inner, once)

        def steps(
            begin: ir.Value, count: int, values: list[ir.Value], once: ValueCache
        ) -> list[ir.Value]:
            whole, values = in_groups(self, (dims, begin, count), points, values, once)
            for number in range(whole, count):
                at = add(begin, index(number))
                here = [point.moved(dim, at) for point in points]
                values = self.accumulate(rest, here, values, inner, once)
            return values

        inside = limits(self, dim, points)
        if inside is not None:
            return looped(self, inside, 1, values, steps)
        return in_rounds(self, dims, points, values, steps, once)

    def computed(
        self,
        points: list[Point],
        values: list[ir.Value],
        once: ValueCache,
        known: Mapping[int, ir.Value] = NOTHING,
    ) -> list[ir.Value]:
        """The body at every point; values: the results so far, a point's together."""
        count, made = len(self.outputs), list[ir.Value]()
        for n, point in enumerate(points):
            sofar = values[n * count : (n + 1) * count]
            made += self.compute(point, sofar, once, known)
            if once.passed is not None:
                along = self.read_along(*self.ahead)
                once.passed([self.place(n, point, once) for n in along])
        return [*made, *values[len(points) * count :]]

    def compute(
        self,
        point: Point,
        sofar: Sequence[ir.Value],
        once: ValueCache,
        known: Mapping[int, ir.Value] = NOTHING,
    ) -> list[ir.Value]:
        """The body at one point; `sofar`: the outputs' old values, which stay where a
        border of zeros is multiplied."""
        if self.guarded is not None:
            return [self.guarded.value(self, point, once)]
        stays = self.reduced and takes_any(self.block)
        if no_term(self, point) or (stays and producers.is_outside(self, point, once)):
            return list(sofar)
        arguments = list(self.block.arguments)
        sums = arguments[len(self.inputs) :]
        fused = tuple(sums) if self.fuses else ()
        emitter = VectorBody(
            self.lanes, self.dim, list(point.ivs), point.mask, once, fused
        )
        for number, argument in enumerate(arguments[: len(self.inputs)]):
            if number in known:
                emitter.values[argument] = Vector(known[number])
            elif list(argument.uses):
                emitter.values[argument] = self.lanes_of(number, point, once)
        emitter.values |= zip(sums, map(Vector, sofar), strict=True)
        return [emitter.vector(v) for v in emitter.emit(self.block)]

    def started(self, x: Operand, point: Point) -> ir.Value:
        """What a result begins with: what lies there."""
        number = self.outputs.index(x)
        argument = self.block.arguments[len(self.inputs) + number]
        kind = vector_type(self.lanes, x.element)
        start = self.starts[number]
        if start is not None:
            return vector.broadcast(kind, start)
        if not list(argument.uses):  # overwritten: nothing to read
            return filled(kind, 0)
        at = x.indices(point.ivs)
        if self.lanes == ONE:
            return vector.broadcast(kind, memref.load(x.buffer, at))
        if x.access(self.dim) is Access.STRIDED:
            return Strided(x, self.dim, self.near).read(kind, at, point.mask)
        return read(kind, x.buffer, at, point.mask, self.block)

    def lanes_of(self, number: int, point: Point, once: ValueCache) -> LaneValue:
        """An input at a point, read if it is not at hand."""
        x = self.inputs[number]
        if x.is_scalar:
            return Uniform(x.buffer)
        if number in self.sources:
            return self.sources[number].value(self, number, point, once)
        place = self.place(number, point, once)
        if place not in once.read:
            once.read[place] = load_operand(self, number, point, once)
        return once.read[place]

    def vector_of(self, number: int, point: Point, once: ValueCache) -> ir.Value:
        """The same as a vector."""
        emitter = VectorBody(self.lanes, self.dim, [], point.mask, once)
        return emitter.vector(self.lanes_of(number, point, once))

    def place(self, number: int, point: Point, once: ValueCache) -> Hashable:
        """What an input at a point is known by."""
        x = self.inputs[number]
        access = x.access(self.dim)
        mask = None if access is Access.UNIFORM else point.mask
        return x.buffer, access, mask, *(i.known_as for i in once.indices(x, point.ivs))

    def read_along(self, *dims: int) -> list[int]:
        """The inputs that are read at another place for each step of dimensions."""
        arguments = list(self.block.arguments)
        return [
            number
            for number, x in enumerate(self.inputs)
            if not x.is_scalar
            and number not in self.sources
            and list(arguments[number].uses)
            and set(dims) & all_dims(x.indexing)
        ]
