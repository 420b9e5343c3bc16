"""Squares of a transposed operand, turned in registers.

An operand that is contiguous along another dimension than the result is read in vectors
along that one, L vectors of L elements at a time, and turned by log2(L) rounds of
shuffles, instead of one element a lane.
"""

from __future__ import annotations

from nanoloom.kernels.structure import dims_of
from nanoloom.mlir import ir, vector
from nanoloom.vector.access import Access, Operand, coefficient


def turning_dimension(inputs: list[Operand], dim: int) -> int | None:
    """The one dimension along which every strided operand is contiguous."""
    found: set[int] = set()
    for x in inputs:
        if x.access(dim) is not Access.STRIDED:
            continue
        results = list(x.indexing.results)
        last = results[-1]
        if not isinstance(last, ir.AffineDimExpr) or last.position == dim:
            return None
        strides, _ = ir.MemRefType(x.buffer.type).get_strides_and_offset()
        linear = [e for e in results[:-1] if dim in dims_of(e)]
        if strides[-1] != 1 or any(coefficient(e, dim) is None for e in linear):
            return None
        if any(last.position in dims_of(e) for e in results[:-1]):
            return None
        found.add(last.position)
    return found.pop() if len(found) == 1 else None


def transpose(rows: list[ir.Value]) -> list[ir.Value]:
    """L vectors of L elements: element i of vector j becomes element j of vector i."""
    count = len(rows)
    made = list(rows)
    distance = count // 2
    while distance:
        for i in range(count):
            if i & distance:
                continue
            one, other = made[i], made[i + distance]
            made[i] = vector.shuffle(one, other, low(count, distance))
            made[i + distance] = vector.shuffle(one, other, high(count, distance))
        distance //= 2
    return made


def low(count: int, distance: int) -> list[int]:
    """Lanes of the first vector in place, of the second moved up by `distance`."""
    return [
        lane if not lane & distance else count + lane - distance
        for lane in range(count)
    ]


def high(count: int, distance: int) -> list[int]:
    return [
        lane + distance if not lane & distance else count + lane
        for lane in range(count)
    ]
