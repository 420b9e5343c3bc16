"""Whether a generic's operands are whole vectors, or parts of them, on a target."""

from __future__ import annotations

from nanoloom.ir.access import Access, Operand
from nanoloom.ir.linalg_query import body, bordered_by, dims_of, iterators
from nanoloom.ir.linalg_query import outputs as results
from nanoloom.ir.mlir import ir
from nanoloom.nest.extent import Lanes
from nanoloom.target.facts import Target
from nanoloom.target.masked_access import has_masked_loads
from nanoloom.vector.interleaved_store import between
from nanoloom.vector.scalable_gather import has_distance
from nanoloom.vector.vector_plan import VectorPlan, order_of

FUSED = (32, 64)  # bits of the floats that a multiply-add takes


def multiplies_and_adds(outputs: list[Operand], target: Target) -> bool:
    """Whether an instruction of the target adds products to these."""
    floats = all(
        isinstance(x.element, ir.FloatType) and x.element.width in FUSED
        for x in outputs
    )
    return floats and target.fuses


def is_full(operands: list[Operand], dim: int, target: Target) -> bool:
    """Whether a body works on whole vectors: no lane is taken out by its number."""
    return not any(
        x.access(dim) is Access.STRIDED
        and not (target.isa.strided_loads and has_distance(x, dim))
        for x in operands
    )


def are_stored(
    op: ir.OpView, outputs: list[Operand], plan: VectorPlan, lanes: Lanes
) -> bool:
    """Whether vectors of results can be stored: side by side, at one distance, or
    between each other, over what was there."""
    order = order_of(plan, len(iterators(op)))
    arguments = list(body(op).arguments)[-len(outputs) :]

    def is_stored(x: Operand, before: ir.Value) -> bool:
        if x.access(plan.axis) is Access.CONTIGUOUS:
            return True
        if lanes.scalable:
            return x.access(plan.axis) is Access.STRIDED
        fills = between(x, plan.axis, dict(plan.jam), order) is not None
        return fills and plan.stays is None and not list(before.uses)

    return all(map(is_stored, outputs, arguments))


def is_masked(op: ir.OpView, lanes: Lanes, target: Target) -> bool:
    """Whether vectors of a known width, of numbers like a generic's results, can be
    read in part."""
    kinds = [ir.MemRefType(x.type).element_type for x in results(op)]
    bits: list[int] = [getattr(kind, "width", 0) for kind in kinds]
    masked = all(n and has_masked_loads(target, n // 8) for n in bits)
    return not lanes.scalable and masked


def reads_rows(pad: ir.OpView, dim: int, lanes: Lanes, target: Target) -> bool:
    """Whether vectors of a pad are parts of rows of what is inside, under masks."""
    *outer, last = bordered_by(pad).results
    along = dim in dims_of(last) and not any(dim in dims_of(e) for e in outer)
    return along and is_masked(pad, lanes, target)
