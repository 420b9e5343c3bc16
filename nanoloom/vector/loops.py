"""Generics on buffers become vector loops: what no nanokernel has taken.

Parallel dimensions are loops around one vector dimension, the innermost of the result
(or, where that is reduced, the innermost of the input).  The rest that does not fill a
vector runs masked.  Reductions keep their accumulators in registers: several vectors of
them along a reduced vector dimension, combined at the end in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from nanoloom.kernels.structure import (
    all_dims,
    body,
    input_count,
    iterators,
    maps,
)
from nanoloom.mlir import arith, ir, memref, named, run_pipeline, scf, vector
from nanoloom.vector import combine
from nanoloom.vector.access import Access, Operand, add, index, vector_dimension
from nanoloom.vector.body import (
    Lanes,
    Uniform,
    Vector,
    VectorBody,
    gathers,
    is_vectorizable,
    read,
    read_lanes,
)
from nanoloom.vector.extents import is_next, is_same, rounded_down, size
from nanoloom.vector.reductions import reduce_along
from nanoloom.vector.transposes import squares, turning_dimension
from nanoloom.vector.vectorize import VectorPlan, is_stage, plan_of

Emit = Callable[[list[ir.Value]], None]
NOTHING: Mapping[int, ir.Value] = MappingProxyType({})


def vectorize_loops(module: ir.Module, vector_bits: int) -> None:
    """Lower every generic on buffers to loops: vectors where possible, else scalars."""
    for op in named(module, "linalg.generic"):
        with ir.InsertionPoint(op), op.operation.location:
            lowered = Loops.of(op, vector_bits)
            if lowered is not None:
                lowered.emit()
                op.operation.erase()
    run_pipeline(module, ("func.func(convert-linalg-to-loops)",))


def lanes_for(elements: Sequence[ir.Type], vector_bits: int) -> int:
    """Lanes of a loop: full vectors of f32, of the only width if all are the same."""
    widths = {e.width for e in elements if hasattr(e, "width")}
    width = widths.pop() if len(widths) == 1 else 32
    return vector_bits // max(8, min(width, 64))


@dataclass
class Loops:
    """One generic on its way to loops."""

    block: ir.Block
    inputs: list[Operand]
    outputs: list[Operand]
    kinds: list[str]
    dim: int
    lanes: int
    chains: int
    combiners: list[combine.Combiner]

    @classmethod
    def of(cls, op: ir.OpView, vector_bits: int) -> Loops | None:
        """The plan for a generic, None if it stays scalar."""
        count = input_count(op)
        operands = [
            Operand(v, m) for v, m in zip(op.operation.operands, maps(op), strict=True)
        ]
        inputs, outputs = operands[:count], operands[count:]
        kinds = iterators(op)
        plan = plan_of(op)
        if plan is None and not is_stage(op):
            dim = vector_dimension(inputs, outputs, kinds)
            lanes = lanes_for([x.element for x in operands], vector_bits)
            plan = None if dim is None else VectorPlan(dim, lanes, 1)
        block = body(op)
        if plan is None or not is_vectorizable(block, plan.axis):
            return None
        dim = plan.axis
        combiners: list[combine.Combiner] = []
        if kinds[dim] == "reduction":
            found = [combine.of(block, i, count) for i in range(len(outputs))]
            if any(c is None for c in found):
                return None
            combiners = [c for c in found if c is not None]
        elif any(x.access(dim) is not Access.CONTIGUOUS for x in outputs):
            return None
        return cls(
            block, inputs, outputs, kinds, dim, plan.lanes, plan.chains, combiners
        )

    # ---- extents -------------------------------------------------------------------

    def extent(self, dim: int) -> ir.Value:
        for x in (*self.outputs, *self.inputs):
            for place, expr in enumerate(x.indexing.results):
                if isinstance(expr, ir.AffineDimExpr) and expr.position == dim:
                    return size(x.buffer, place)
        raise AssertionError(f"dimension {dim} has no extent")

    # ---- loops ---------------------------------------------------------------------

    def emit(self) -> None:
        """Loops over the parallel dimensions, the vector dimension innermost."""
        outer = [
            d for d, k in enumerate(self.kinds) if k == "parallel" and d != self.dim
        ]
        ivs = [index(0) for _ in self.kinds]
        turning = None
        if "reduction" not in self.kinds and self.lanes > 1 and not gathers(self.block):
            turning = turning_dimension(self.inputs, self.dim)
        if turning is not None:
            outer.remove(turning)
            self.nest(outer, ivs, lambda at: squares(self, at, turning))
        elif self.kinds[self.dim] == "parallel":
            self.nest(outer, ivs, self.strips)
        else:
            self.nest(outer, ivs, lambda at: reduce_along(self, at))

    def nest(self, dims: list[int], ivs: list[ir.Value], inner: Emit) -> None:
        if not dims:
            inner(ivs)
            return
        loop = scf.ForOp(index(0), self.extent(dims[0]), index(1))
        with ir.InsertionPoint(loop.body):
            here = list(ivs)
            here[dims[0]] = loop.induction_variable
            self.nest(dims[1:], here, inner)
            scf.yield_([])

    def strips(self, ivs: list[ir.Value]) -> None:
        """Full vectors along the vector dimension, then the rest."""
        extent = self.extent(self.dim)
        whole = rounded_down(extent, self.lanes)
        loops = self.loaded(ivs)
        self.stepped(ivs, index(0), whole, self.lanes, lambda at: loops.strip(at, None))
        loops.rest(ivs, whole, extent, loops.strip)

    def loaded(self, ivs: list[ir.Value]) -> Loops:
        """The same with what every element reads loaded before the loop.

        LLVM cannot: what the loop writes might be that.
        """
        inner = {d for d, k in enumerate(self.kinds) if k == "reduction"} | {self.dim}
        return replace(
            self,
            inputs=[
                x
                if x.is_scalar or inner & all_dims(x.indexing)
                else Operand(memref.load(x.buffer, x.indices(ivs)), x.indexing)
                for x in self.inputs
            ],
        )

    def stepped(
        self, ivs: list[ir.Value], start: ir.Value, end: ir.Value, by: int, inner: Emit
    ) -> None:
        loop = scf.ForOp(start, end, index(by))
        with ir.InsertionPoint(loop.body):
            here = list(ivs)
            here[self.dim] = loop.induction_variable
            inner(here)
            scf.yield_([])

    def rest(
        self,
        ivs: list[ir.Value],
        whole: ir.Value,
        extent: ir.Value,
        step: Callable[[list[ir.Value], ir.Value | None], None],
    ) -> None:
        """What is left after full vectors: one masked step, or single elements."""
        if is_same(whole, extent):
            return
        if not self.is_maskable() or is_next(whole, extent):
            narrow = self.single()
            self.stepped(ivs, whole, extent, 1, lambda at: narrow.strip(at, None))
            return
        left = arith.cmpi(arith.CmpIPredicate.slt, whole, extent)
        branch = scf.IfOp(left)
        with ir.InsertionPoint(branch.then_block):
            here = list(ivs)
            here[self.dim] = whole
            kind = ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(1))
            step(here, vector.create_mask(kind, [arith.subi(extent, whole)]))
            scf.yield_([])

    def is_maskable(self) -> bool:
        """Whether a partial vector may be loaded through a mask."""
        strided = any(x.access(self.dim) is Access.STRIDED for x in self.inputs)
        return not strided and not gathers(self.block)

    def single(self) -> Loops:
        """The same generic one element at a time."""
        return replace(self, lanes=1)

    # ---- one vector of results -------------------------------------------------------

    def strip(
        self,
        ivs: list[ir.Value],
        mask: ir.Value | None,
        known: Mapping[int, ir.Value] = NOTHING,
    ) -> None:
        """Compute `lanes` elements of every output and write them.

        known: vectors of inputs, by number, that are in registers already.
        """
        start = [self.read(x, ivs, mask) for x in self.outputs]
        reduced = [d for d, k in enumerate(self.kinds) if k == "reduction"]
        results = self.accumulate(reduced, ivs, start, mask, known)
        for x, value in zip(self.outputs, results, strict=True):
            at = x.indices(ivs)
            if self.lanes == 1:
                memref.store(vector.extract(value, [], [0]), x.buffer, at)
            elif mask is None:
                vector.store(value, x.buffer, at)
            else:
                vector.maskedstore(x.buffer, at, mask, value)

    def accumulate(
        self,
        dims: list[int],
        ivs: list[ir.Value],
        values: list[ir.Value],
        mask: ir.Value | None,
        known: Mapping[int, ir.Value] = NOTHING,
    ) -> list[ir.Value]:
        """Run the reduction loops with the results as loop-carried vectors."""
        if not dims:
            made = self.compute(ivs, values, mask, known)
            inner = VectorBody(self.lanes, self.dim, ivs, mask)
            return [inner.vector(v) for v in made]
        loop = scf.ForOp(index(0), self.extent(dims[0]), index(1), values)
        with ir.InsertionPoint(loop.body):
            here = list(ivs)
            here[dims[0]] = loop.induction_variable
            carried = list(loop.inner_iter_args)
            scf.yield_(self.accumulate(dims[1:], here, carried, mask, known))
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
