"""Vectors for what is no stage: the bodies of a model's own loops, parts put in place.

    for i in 0..29: for j: { total[j] += x[j, i];  y[j, i] = total[j] }
      ->  for i in 0..29: { total[jv] += x[jv, i];  ... }

A schedule says vectors of stages; a loop over tensors is one operation to it, and what
is in it has the registers that `VectorizeRest` says.
"""

from __future__ import annotations

from collections.abc import Iterator

from nanoloom.ir.access import Access, Operand
from nanoloom.ir.linalg_query import extents, input_count, iterators, maps
from nanoloom.ir.mlir import ir, named
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.language import VectorizeRest
from nanoloom.vector.body import keys
from nanoloom.vector.scalable_gather import has_distance
from nanoloom.vector.vectorize import vector_words

MARKS = "nanoloom."  # of what a schedule, or a stage of the compiler, says more of
FEWEST = 4  # lanes: of fewer numbers a vector is no fewer instructions
BYTE, HALF, WIDE = 8, 16, 32  # bits: floats of 16 are computed in 32


def vectorize_plain_loops(module: ir.Module, said: VectorizeRest | None) -> None:
    """Note vectors for every generic on buffers that nothing is noted of.

    said: of them; None for plain loops.
    """
    if said is None:
        return
    for op in named(module, "linalg.generic"):
        words = op.operation.attributes
        if any(name.startswith(MARKS) for name in keys(op.operation)):
            continue
        axis = axis_of(op, strided=said.scalable)
        if axis is not None:
            lanes = lanes_of(said, widest(op), extents(op)[axis])
            for name, word in vector_words(axis, lanes).items() if lanes else ():
                words[name] = word


def lanes_of(said: VectorizeRest, bits: int, extent: int) -> Lanes | None:
    """Vectors of numbers of so many bits along an axis.

    Of a known number of lanes they are no longer than a row; None for one of a length
    that only a run knows, most often a few, and for one that is shorter than any.
    """
    count = max(2, said.bits // bits)
    if said.scalable:
        return Lanes(count, scalable=True)
    whole = min(count, 1 << (extent.bit_length() - 1)) if extent > 0 else 0
    return Lanes(whole) if whole >= FEWEST else None


def axis_of(op: ir.OpView, *, strided: bool) -> int | None:
    """The innermost axis of a result or else of an operand, None for plain loops.

    The first along which all lies side by side; strided: or at a distance.
    """
    operands = [
        Operand(value, indexing)
        for value, indexing in zip(op.operation.operands, maps(op), strict=True)
    ]
    kinds, sizes = iterators(op), extents(op)
    results = operands[input_count(op) :]
    found = [d for d in innermost([*results, *operands]) if sizes[d] != 1]
    for dim in found:
        if all(x.access(dim) is not Access.STRIDED for x in operands):
            return dim
    for dim in found if strided else []:
        if kinds[dim] == "parallel" and all(has_distance(x, dim) for x in operands):
            return dim
    return None


def innermost(operands: list[Operand]) -> Iterator[int]:
    """The axes along which operands are innermost, in their order."""
    for x in operands:
        for last in list(x.indexing.results)[-1:]:
            if isinstance(last, ir.AffineDimExpr):
                yield last.position


def widest(op: ir.OpView) -> int:
    """Bits of the widest number that a generic computes with."""
    found = {BYTE}
    for value in op.operation.operands:
        kind = value.type
        shaped = isinstance(kind, ir.ShapedType)
        element = ir.ShapedType(kind).element_type if shaped else kind
        bits = getattr(element, "width", 64)  # of an index: 64
        half = isinstance(element, ir.FloatType) and bits == HALF
        found.add(WIDE if half else bits)
    return max(found)
