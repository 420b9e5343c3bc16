"""Squares of a transposed operand, turned in registers.

An operand that is contiguous along another dimension than the result is read in vectors
along that one, L vectors of L elements at a time, and turned by log2(L) rounds of
shuffles, instead of one element a lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanoloom.kernels.structure import dims_of
from nanoloom.mlir import ir, scf, vector
from nanoloom.vector.access import Access, Operand, add, coefficient, index
from nanoloom.vector.extents import is_same, rounded_down

if TYPE_CHECKING:
    from nanoloom.vector.loops import Loops


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
    """L vectors of L elements: element i of vector j becomes element j of vector i.

    bf16 as integers: LLVM stops at some shuffles of it where there are conversions of
    bf16 and no AVX-512.
    """
    count, kind = len(rows), ir.VectorType(rows[0].type)
    is_bf16 = isinstance(kind.element_type, ir.BF16Type)
    bits = ir.VectorType.get(kind.shape, ir.IntegerType.get_signless(16))
    made = [vector.bitcast(bits, row) for row in rows] if is_bf16 else list(rows)
    distance = count // 2
    while distance:
        for i in range(count):
            if i & distance:
                continue
            one, other = made[i], made[i + distance]
            made[i] = vector.shuffle(one, other, low(count, distance))
            made[i + distance] = vector.shuffle(one, other, high(count, distance))
        distance //= 2
    return [vector.bitcast(kind, row) for row in made] if is_bf16 else made


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


def squares(loops: Loops, ivs: list[ir.Value], turning: int) -> None:
    """Squares of lanes x lanes, then what they leave of rows and columns."""
    rows, columns = loops.extent(turning), loops.extent(loops.dim)
    whole = rounded_down(columns, loops.lanes)
    full = rounded_down(rows, loops.lanes)
    outer = scf.ForOp(index(0), full, index(loops.lanes))
    with ir.InsertionPoint(outer.body):
        here = list(ivs)
        here[turning] = outer.induction_variable
        loops.stepped(
            here, index(0), whole, loops.lanes, lambda at: square(loops, at, turning)
        )
        scf.yield_([])
    singly(loops, ivs, turning, (index(0), full), (whole, columns))
    singly(loops, ivs, turning, (full, rows), (index(0), columns))


def square(loops: Loops, ivs: list[ir.Value], turning: int) -> None:
    """lanes x lanes results: read along `turning`, turn, compute, write along dim."""
    turned: dict[int, list[ir.Value]] = {}
    for number, x in enumerate(loops.inputs):
        if x.access(loops.dim) is not Access.STRIDED:
            continue
        kind = ir.VectorType.get([loops.lanes], x.element)
        loaded: list[ir.Value] = []
        for lane in range(loops.lanes):
            here = list(ivs)
            here[loops.dim] = add(ivs[loops.dim], index(lane))
            loaded.append(vector.load(kind, x.buffer, x.indices(here)))
        turned[number] = transpose(loaded)
    for row in range(loops.lanes):
        here = list(ivs)
        here[turning] = add(ivs[turning], index(row))
        known = {number: made[row] for number, made in turned.items()}
        loops.strip(here, None, known)


def singly(
    loops: Loops,
    ivs: list[ir.Value],
    turning: int,
    rows: tuple[ir.Value, ir.Value],
    columns: tuple[ir.Value, ir.Value],
) -> None:
    """One element at a time over a rectangle that squares do not fill."""
    if is_same(*rows) or is_same(*columns):
        return
    narrow = loops.single()
    loop = scf.ForOp(rows[0], rows[1], index(1))
    with ir.InsertionPoint(loop.body):
        here = list(ivs)
        here[turning] = loop.induction_variable
        loops.stepped(
            here, columns[0], columns[1], 1, lambda at: narrow.strip(at, None)
        )
        scf.yield_([])
