"""Whether a generic's operands are whole vectors, or parts of them, on a target."""

from __future__ import annotations

from nanoloom.ir.access import Access, Operand
from nanoloom.ir.linalg_query import bordered_by, dims_of
from nanoloom.ir.linalg_query import outputs as results
from nanoloom.ir.mlir import ir
from nanoloom.nest.extent import Lanes
from nanoloom.target.facts import Target
from nanoloom.target.masked_access import has_masked_loads
from nanoloom.vector.scalable_gather import has_distance

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


def are_stored(outputs: list[Operand], dim: int, lanes: Lanes) -> bool:
    """Whether vectors of results can be stored: side by side, or at one distance."""
    return all(
        x.access(dim) is Access.CONTIGUOUS
        or (lanes.scalable and x.access(dim) is Access.STRIDED)
        for x in outputs
    )


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
