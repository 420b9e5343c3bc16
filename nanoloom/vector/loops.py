"""Generics on buffers become vector loops: what no nanokernel has taken.

Parallel dimensions are loops around one vector dimension, the innermost of the result
(or, where that is reduced, the innermost of the input).  The rest that does not fill a
vector runs masked.  Reductions keep their accumulators in registers: several vectors of
them along a reduced vector dimension, combined at the end in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nanoloom.kernels.structure import (
    all_dims,
    body,
    input_count,
    iterators,
    maps,
)
from nanoloom.mlir import arith, ir, memref, named, run_pipeline, scf, vector
from nanoloom.vector import combine
from nanoloom.vector.access import Access, Operand, index, vector_dimension
from nanoloom.vector.body import (
    gathers,
    is_vectorizable,
)
from nanoloom.vector.extents import (
    is_next,
    is_same,
    rounded_down,
)
from nanoloom.vector.jam import jammed
from nanoloom.vector.reductions import reduce_along
from nanoloom.vector.strip import Strip
from nanoloom.vector.transposes import squares, turning_dimension
from nanoloom.vector.vectorize import VectorPlan, is_stage, plan_of

Emit = Callable[[list[ir.Value]], None]


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
class Loops(Strip):
    """One generic on its way to loops.

    chains: of a sum along the vector dimension, and how each output combines.
    """

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
            block,
            inputs,
            outputs,
            kinds,
            dim,
            plan.lanes,
            plan.unrolled,
            plan.jam,
            plan.chains,
            combiners,
        )

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
        elif self.kinds[self.dim] != "parallel":
            self.nest(outer, ivs, lambda at: reduce_along(self, at))
        elif self.jam[0] in outer:
            outer.remove(self.jam[0])
            self.nest(outer, ivs, lambda at: jammed(self, at))
        else:
            replace(self, jam=(-1, 1)).nest(outer, ivs, self.strips)

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
        reduced = {d for d, k in enumerate(self.kinds) if k == "reduction"}
        inner = reduced | {self.dim, self.jam[0]}
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
