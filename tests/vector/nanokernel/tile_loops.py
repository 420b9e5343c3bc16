"""What AMX's instructions do, as loops over rows and lanes: for machines without it.

    in_loops(monkeypatch)

A tile register is a buffer of 16 rows of 16 lanes of 32 bits on the stack.  Each
instruction has one of its own, products write into that of their sums: nothing reads
those again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nanoloom.ir.access import index
from nanoloom.ir.mlir import arith, ir, llvm, memref, scf, vector
from nanoloom.target.instructions import meanings
from nanoloom.vector.nanokernel.amx import instructions as tiles
from tests.vector.nanokernel.instruction_meanings import DTYPES, Traced

TYPES = {name: types for types, name in tiles.PRODUCTS.items()}


def in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the definitions in place of the instructions."""
    for made in (zero, load, multiply, store):
        monkeypatch.setattr(tiles, made.__name__, made)


def zero(rows: int) -> ir.Value:
    tile = register()
    nothing = vector.broadcast(lanes("i32"), number(0))
    each(rows, lambda r: vector.store(nothing, tile, [r, index(0)]))
    return tile


def load(start: ir.Value, rows: int, distance: int) -> ir.Value:
    tile = register()

    def row(r: ir.Value) -> None:
        numbers = llvm.load(lanes("i32"), ahead(start, r, distance), alignment=1)
        vector.store(numbers, tile, [r, index(0)])

    each(rows, row)
    return tile


def store(value: ir.Value, start: ir.Value, rows: int, distance: int) -> None:
    def row(r: ir.Value) -> None:
        numbers = vector.load(lanes("i32"), value, [r, index(0)])
        llvm.store(numbers, ahead(start, r, distance), alignment=1)

    each(rows, row)


def multiply(
    product: str, rows: int, sums: ir.Value, left: ir.Value, right: ir.Value
) -> ir.Value:
    """sums[r] += left[r][k] * right[k] for the 16 groups k, each of 32 bits."""
    types = TYPES[product]
    total = "f32" if types[0] == "bf16" else "s32"

    def group(r: ir.Value, k: ir.Value) -> None:
        one = vector.broadcast(lanes("i32"), memref.load(left, [r, k]))
        other = vector.load(lanes("i32"), right, [k, index(0)])
        begun = vector.load(lanes("i32"), sums, [r, index(0)])
        given = zip((total, *types), (begun, one, other), strict=True)
        made = meanings.dot(*(Traced(x, np.int32).view(DTYPES[t]) for t, x in given))
        vector.store(made.view(np.int32).value, sums, [r, index(0)])

    each(rows, lambda r: each(tiles.ROWS, lambda k: group(r, k)))
    return sums


def register() -> ir.Value:
    """Room for a tile register, made once at the function's beginning."""
    function = ir.InsertionPoint.current.block.owner.operation
    while function.name != "func.func":
        function = function.parent.operation
    kind = ir.MemRefType.get([tiles.ROWS, tiles.COLUMNS], bits(32))
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        return memref.alloca(kind, [], [])


def each(count: int, body: Callable[[ir.Value], object]) -> None:
    loop = scf.ForOp(index(0), unknown(count), index(1))
    with ir.InsertionPoint(loop.body):
        body(loop.induction_variable)
        scf.yield_([])


def unknown(count: int) -> ir.Value:
    """A number that LLVM does not know: it takes seconds to unroll all the loops."""
    given = arith.constant(bits(64), count)
    said = llvm.inline_asm(bits(64), [given], "", "=r,0", has_side_effects=False)
    return arith.index_cast(ir.IndexType.get(), said)


def ahead(start: ir.Value, rows: ir.Value, distance: int) -> ir.Value:
    """The address so many rows behind another one."""
    number = arith.index_cast(bits(64), arith.muli(rows, index(distance)))
    base = llvm.ptrtoint(bits(64), start)
    return llvm.inttoptr(start.type, arith.addi(base, number))


def lanes(name: str) -> ir.VectorType:
    """A row of a tile register: as many numbers of a type as 64 bytes hold."""
    kind = ir.F32Type.get() if name == "f32" else bits(int(name[1:]))
    return ir.VectorType.get([8 * tiles.ROW_BYTES // kind.width], kind)


def number(value: int) -> ir.Value:
    return arith.constant(bits(32), value)


def bits(width: int) -> ir.IntegerType:
    return ir.IntegerType.get_signless(width)
