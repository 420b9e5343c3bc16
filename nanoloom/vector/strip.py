"""One vector of a generic's results, or several beside each other, with their sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nanoloom.mlir import arith, ir, memref, scf, vector
from nanoloom.vector.access import Access, Operand, add, index
from nanoloom.vector.body import Lanes, Uniform, Vector, VectorBody, read, read_lanes
from nanoloom.vector.extents import constant_index, size

NOTHING: Mapping[int, ir.Value] = MappingProxyType({})


@dataclass
class Strip:
    """A generic on buffers with its vector dimension.

    unrolled: loops of a sum whose steps stand behind each other.  jam: a dimension, and
    how many of its points are computed at once.
    """

    block: ir.Block
    inputs: list[Operand]
    outputs: list[Operand]
    kinds: list[str]
    dim: int
    lanes: int
    unrolled: tuple[int, ...]
    jam: tuple[int, int]

    def extent(self, dim: int) -> ir.Value:
        for x in (*self.outputs, *self.inputs):
            for place, expr in enumerate(x.indexing.results):
                if isinstance(expr, ir.AffineDimExpr) and expr.position == dim:
                    return size(x.buffer, place)
        raise AssertionError(f"dimension {dim} has no extent")

    def strip(
        self,
        ivs: list[ir.Value],
        mask: ir.Value | None,
        known: Mapping[int, ir.Value] = NOTHING,
    ) -> None:
        """Compute `lanes` elements of every output and write them.

        known: vectors of inputs, by number, that are in registers already.
        """
        points = self.points(ivs)
        start = [self.read(x, at, mask) for at in points for x in self.outputs]
        reduced = [d for d, k in enumerate(self.kinds) if k == "reduction"]
        results = iter(self.accumulate(reduced, points, start, mask, known))
        for here in points:
            for x in self.outputs:
                self.write(next(results), x, x.indices(here), mask)

    def points(self, ivs: list[ir.Value]) -> list[list[ir.Value]]:
        """The loop variables of all points that are computed at once."""
        axis, count = self.jam
        return [
            [add(iv, index(n)) if d == axis else iv for d, iv in enumerate(ivs)]
            for n in range(count)
        ]

    def write(
        self, value: ir.Value, x: Operand, at: list[ir.Value], mask: ir.Value | None
    ) -> None:
        if self.lanes == 1:
            memref.store(vector.extract(value, [], [0]), x.buffer, at)
        elif mask is None:
            vector.store(value, x.buffer, at)
        else:
            vector.maskedstore(x.buffer, at, mask, value)

    def accumulate(
        self,
        dims: list[int],
        points: list[list[ir.Value]],
        values: list[ir.Value],
        mask: ir.Value | None,
        known: Mapping[int, ir.Value] = NOTHING,
    ) -> list[ir.Value]:
        """Run the reduction loops with the results as loop-carried vectors."""
        count = len(self.outputs)
        if not dims:
            made: list[ir.Value] = []
            for number, ivs in enumerate(points):
                sofar = values[number * count : (number + 1) * count]
                inner = VectorBody(self.lanes, self.dim, ivs, mask)
                results = self.compute(ivs, sofar, mask, known)
                made += [inner.vector(v) for v in results]
            return made

        def step(at: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            here = [[*ivs[: dims[0]], at, *ivs[dims[0] + 1 :]] for ivs in points]
            return self.accumulate(dims[1:], here, values, mask, known)

        extent = self.extent(dims[0])
        steps = constant_index(extent)
        if dims[0] in self.unrolled and steps is not None:
            for number in range(steps):
                values = step(index(number), values)
            return values
        loop = scf.ForOp(index(0), extent, index(1), values)
        with ir.InsertionPoint(loop.body):
            scf.yield_(step(loop.induction_variable, list(loop.inner_iter_args)))
        return list(loop.results)

    def compute(
        self,
        ivs: list[ir.Value],
        sofar: Sequence[ir.Value],
        mask: ir.Value | None,
        known: Mapping[int, ir.Value] = NOTHING,
    ) -> list[Lanes]:
        """The body at one point; `sofar` stands for the outputs' old values."""
        emitter = VectorBody(self.lanes, self.dim, ivs, mask)
        arguments = list(self.block.arguments)
        for number, (argument, x) in enumerate(
            zip(arguments, self.inputs, strict=False)
        ):
            if number in known:
                emitter.values[argument] = Vector(known[number])
            elif list(argument.uses):
                emitter.values[argument] = self.lanes_of(x, ivs, mask)
        for argument, value in zip(arguments[len(self.inputs) :], sofar, strict=True):
            emitter.values[argument] = Vector(value)
        return emitter.emit(self.block)

    def read(self, x: Operand, ivs: list[ir.Value], mask: ir.Value | None) -> ir.Value:
        argument = self.block.arguments[len(self.inputs) + self.outputs.index(x)]
        kind = ir.VectorType.get([self.lanes], x.element)
        if not list(argument.uses):  # overwritten: nothing to read
            zero = 0.0 if isinstance(x.element, ir.FloatType) else 0
            return vector.broadcast(kind, arith.constant(x.element, zero))
        if self.lanes == 1:
            return vector.broadcast(kind, memref.load(x.buffer, x.indices(ivs)))
        return read(kind, x.buffer, x.indices(ivs), mask)

    def lanes_of(self, x: Operand, ivs: list[ir.Value], mask: ir.Value | None) -> Lanes:
        if x.is_scalar:
            return Uniform(x.buffer)
        access = x.access(self.dim)
        if access is Access.UNIFORM:
            return Uniform(memref.load(x.buffer, x.indices(ivs)))
        kind = ir.VectorType.get([self.lanes], x.element)
        if access is Access.CONTIGUOUS and self.lanes > 1:
            return Vector(read(kind, x.buffer, x.indices(ivs), mask))
        places: list[list[ir.Value]] = []
        for lane in range(self.lanes):
            here = list(ivs)
            here[self.dim] = add(ivs[self.dim], index(lane))
            places.append(x.indices(here))
        return Vector(read_lanes(kind, self.lanes, places, x.buffer))
