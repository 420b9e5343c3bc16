"""Generics on buffers become vector loops: what no nanokernel has taken.

Parallel dimensions are loops around one vector dimension, the one that the script says
vectors of; without a word all are plain loops.  The rest that does not fill a
vector runs masked.  Reductions keep their accumulators in registers, of several points
at once where the schedule says so (register_tile.py); along a reduced vector dimension
several vectors of them, combined at the end in a fixed order (reductions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from nanoloom.ir.access import Operand, index
from nanoloom.ir.known_factors import factors_of
from nanoloom.ir.linalg_query import (
    all_dims,
    body,
    input_count,
    iterators,
    maps,
)
from nanoloom.ir.mlir import ir, memref, named, run_pipeline
from nanoloom.nest.extent import ONE
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import DotUse, widens_products
from nanoloom.target.tail_forms import MASKED_REMAINDER, SCALAR_REMAINDER
from nanoloom.vector import combiner
from nanoloom.vector.body import gathers, is_vectorizable
from nanoloom.vector.choose_instruction import required_steps
from nanoloom.vector.compute_at_tile import compute_at_tile
from nanoloom.vector.full_vectors import (
    are_stored,
    is_full,
    is_masked,
    multiplies_and_adds,
)
from nanoloom.vector.read_guarded import guarded_rows
from nanoloom.vector.reduction_init import fill_of, number_of
from nanoloom.vector.reductions import reduce_along
from nanoloom.vector.register_tile import RegisterTile
from nanoloom.vector.require_vectors import require_taken, require_vectors
from nanoloom.vector.software_pipelining import refuse_inner
from nanoloom.vector.stationary import block
from nanoloom.vector.stationary.dot_products import dot_along
from nanoloom.vector.store_at import require_room
from nanoloom.vector.tile_loops import Emit, blocks, strips
from nanoloom.vector.transpose_vectors import fits, squares, turning_dimension
from nanoloom.vector.vector_plan import ResidentOperands, order_of, plan_of
from nanoloom.vector.vectorize import SCALAR

MANY = 32  # registers: of 16, sums that wait to be written are spilled


def vectorize_loops(module: ir.Module, target: Target, *, strict: bool) -> None:
    """Lower every generic on buffers to loops: vectors where possible, else scalars.

    The last one first: what adds to a number takes the fill in front of it along.
    strict: raises Error for a stage whose vectors are said and cannot be.
    """
    waiting = named(module, "linalg.generic")

    def begun(op: ir.OpView, strip: RegisterTile) -> RegisterTile:
        starts = [started(op, n, waiting) for n in range(len(strip.outputs))]
        return replace(strip, starts=starts)

    while waiting:
        op = waiting.pop()
        require_taken(op)
        with ir.InsertionPoint(op), op.operation.location:
            lowered = Loops.of(op, target)
            if strict:
                require_vectors(op, None if lowered is None else lowered.lanes)
            if lowered is None:
                continue
            lowered, taken = lowered.with_sources(op, target, begun)
            begin = begun(op, lowered) if lowered.begins_once else lowered.unbegun()
            begin.emit()
        op.operation.erase()
        for each in taken:
            plan = plan_of(each)
            if plan:
                points = prod(count for _, count in plan.jam)
                require_room(each, points, plan.lanes.count, target.vector)
            waiting.remove(each)
            each.operation.erase()
    run_pipeline(module, ("func.func(convert-linalg-to-loops)",), verify=False)


def started(op: ir.OpView, output: int, waiting: list[ir.OpView]) -> ir.Value | None:
    """The number that an output starts from, None if it has to be read.

    The fill that wrote it, one of those waiting, is erased.
    """
    fill = fill_of(op, output)
    if fill is None:
        return None
    waiting.remove(fill)
    number = number_of(fill)
    fill.operation.erase()
    return number


def combiners_of(op: ir.OpView) -> list[combiner.Combiner] | None:
    """How each output of a reduction combines, None if that is not known of all."""
    count = input_count(op)
    outputs = range(len(list(op.operation.operands)) - count)
    found = [combiner.of(body(op), n, count) for n in outputs]
    known = [c for c in found if c is not None]
    return known if len(known) == len(found) else None


def operands_of(op: ir.OpView) -> tuple[list[Operand], list[Operand]]:
    """Inputs and outputs."""
    pairs = zip(op.operation.operands, maps(op), strict=True)
    operands, count = [Operand(*pair) for pair in pairs], input_count(op)
    return operands[:count], operands[count:]


@dataclass
class Loops(RegisterTile):
    """One generic on its way to loops.

    chains: of a sum along the vector dimension, and how each output combines.  squares:
    of what lies across, None for single numbers; stays: what the order of all points
    follows (vectorize.py).  form: of the loop over vectors; by_places: whether its
    masks are made of where it is and where it ends, as one instruction of SVE does.
    dot: the instruction that multiplies and adds neighbours, where stays.
    joint: sums along vectors that are reduced together.
    """

    chains: int
    combiners: list[combiner.Combiner]
    squares: tuple[int, int] | None
    stays: ResidentOperands | None
    form: str
    by_places: bool
    dot: DotUse | None
    joint: int

    @classmethod
    def of(cls, op: ir.OpView, target: Target) -> Loops | None:
        """The plan for a generic, None if it stays scalar."""
        inputs, outputs = operands_of(op)
        kinds = iterators(op)
        plan, code = plan_of(op), body(op)
        if plan is None or SCALAR in op.operation.attributes:
            return None
        if not is_vectorizable(code, plan.axis):
            return None
        dim, of_sums = plan.axis, kinds[plan.axis] == "reduction"
        combiners = combiners_of(op) if of_sums else []
        if combiners is None:
            return None
        whole = not plan.lanes.scalable or is_full([*inputs, *outputs], dim, target)
        lanes = plan.lanes if whole else ONE
        if kinds[dim] == "parallel" and not are_stored(op, outputs, plan, lanes):
            return None
        made = cls(
            code,
            inputs,
            outputs,
            kinds,
            dim,
            lanes,
            order_of(plan, len(kinds)),
            dict(plan.unrolled),
            dict(plan.jam),
            {},
            [],
            "reduction" in kinds and multiplies_and_adds(outputs, target),
            frozenset(plan.ahead),
            {},
            None,
            target.has("sve"),
            frozenset(x for x in ("f16", "bf16") if widens_products(target, x)),
            is_masked(op, plan.lanes, target),
            guarded_rows(op, dim, plan.lanes, target),
            not plan.lanes.scalable and target.vector.registers >= MANY,
            plan.reuses,
            factors_of(op),
            plan.chains,
            combiners,
            plan.squares,
            plan.stays,
            plan.form if lanes != ONE else MASKED_REMAINDER,
            target.has("sve"),
            dot_along(op, plan, target),
            plan.joint,
        )
        return replace(made, steps=required_steps(op, plan, made, target))

    @property
    def begins_once(self) -> bool:
        """Whether each result is begun once, with what stands in front of it."""
        return self.stays is None or block.begins_once(self, self.stays)

    def unbegun(self) -> Loops:
        """The same with results that begin with what lies in memory."""
        return replace(self, starts=[None] * len(self.outputs))

    @property
    def formed(self) -> str:
        """The form that its loop over vectors can have: lanes that are loaded one by
        one are not masked."""
        return self.form if self.is_maskable() else SCALAR_REMAINDER

    @property
    def turning(self) -> int | None:
        """The dimension along which operands lie that are read in squares."""
        if self.squares is None:
            return None
        if "reduction" in self.kinds or self.lanes == ONE:
            return None
        if gathers(self.block, self.dim):
            return None
        if not fits(self.inputs, self.dim, self.lanes):
            return None
        return turning_dimension(self.inputs, self.dim)

    def with_sources(
        self,
        op: ir.OpView,
        target: Target,
        begun: Callable[[ir.OpView, RegisterTile], RegisterTile],
    ) -> tuple[Loops, list[ir.OpView]]:
        """With what is computed on the points of its tile, and the generics of that."""
        if self.turning is not None or self.stays is not None:
            return self, []

        def plan(op: ir.OpView) -> Loops | None:
            made = Loops.of(op, target)
            apart = made is None or made.turning is not None or made.stays is not None
            return None if apart else made

        made, taken = compute_at_tile(op, self, plan, begun)
        assert isinstance(made, Loops)
        return made, taken

    # ---- loops ---------------------------------------------------------------------

    def emit(self) -> None:
        """Loops over the parallel dimensions, then a tile of results."""
        if self.stays is not None:
            block.emit(self, self.stays)
            return
        outer = [d for d in self.order if self.kinds[d] == "parallel"]
        ivs = [index(0) for _ in self.kinds]
        turning = self.turning
        if turning is not None:
            outer = [d for d in outer if d not in (turning, self.dim)]
            within = replace(self, jam={turning: 1})
            within.nest(outer, ivs, lambda loops, at: squares(loops, at, turning))
        elif self.kinds[self.dim] == "parallel":
            self.nest(outer, ivs, Loops.tile)
        else:
            self.nest(outer, ivs, reduce_along)

    def nest(self, dims: Sequence[int], ivs: Sequence[ir.Value], inner: Emit) -> None:
        """Loops over these dimensions, the first one outermost."""
        loops = self.loaded(dims, ivs)
        if not dims:
            inner(loops, ivs)
            return
        dim, *rest = dims
        if dim in self.ahead and (rest or inner is not Loops.tile):
            refuse_inner(dim)

        def further(loops: Loops, at: Sequence[ir.Value]) -> None:
            loops.nest(rest, at, inner)

        if dim == self.dim:
            strips(loops, ivs, further)
        else:
            blocks(loops, dim, ivs, further)

    def loaded(self, dims: Sequence[int], ivs: Sequence[ir.Value]) -> Loops:
        """The same with what every element further in reads loaded before it.

        LLVM cannot: what the loops write might be that.
        """
        inner = {self.dim, *dims, *self.reduced, *self.jam}
        return replace(
            self,
            inputs=[
                x
                if x.is_scalar or inner & all_dims(x.indexing)
                else Operand(memref.load(x.buffer, x.indices(ivs)), x.indexing)
                for x in self.inputs
            ],
        )
