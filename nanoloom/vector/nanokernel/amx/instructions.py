"""AMX instructions as LLVM intrinsics, and the addresses they take."""

from __future__ import annotations

from nanoloom.ir.access import apply, coefficient
from nanoloom.ir.mlir import arith, ir, llvm
from nanoloom.target.instructions import x86
from nanoloom.vector import addresses
from nanoloom.vector.addresses import bytes_of
from nanoloom.vector.nanokernel.instructions import emit_alone

ROWS = COLUMNS = 16  # of a tile register of sums
ROW_BYTES = 64  # of any tile register
# Of the operands as they are extended.
PRODUCTS = {(x.left, x.right): x.name for x in x86.TILE_PRODUCTS}


def row_distance(buffer: ir.Value, indexing: ir.AffineMap, row: int) -> int:
    """Bytes from one row of the tile to the next."""
    if row < 0:
        return 64
    strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    steps = [
        (coefficient(e, row) or 0) * s
        for e, s in zip(indexing.results, strides, strict=True)
    ]
    return sum(steps) * bytes_of(buffer)


def row_distance_of(right: ir.Value) -> int:
    strides, _ = ir.MemRefType(right.type).get_strides_and_offset()
    return strides[-2] * bytes_of(right)


def address(
    buffer: ir.Value, indexing: ir.AffineMap, ivs: list[ir.Value], ahead: int
) -> ir.Value:
    """The address of an element, `ahead` bytes behind it, as a pointer."""
    return addresses.address(buffer, [apply(e, ivs) for e in indexing.results], ahead)


def i16(value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(16), value)


def i64(value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(64), value)


def tile_type() -> ir.Type:
    return ir.Type.parse("!llvm.x86_amx")


def intrinsic(result: ir.Type | None, name: str, operands: list[ir.Value]) -> ir.Value:
    return llvm.call_intrinsic(result, f"llvm.x86.{name}.internal", operands, [], [])  # type: ignore[arg-type]


def zero(rows: int) -> ir.Value:
    return intrinsic(tile_type(), "tilezero", [i16(rows), i16(4 * COLUMNS)])


def places(
    buffer: ir.Value,
    indexing: ir.AffineMap,
    ivs: list[ir.Value],
    parts: list[int],
    distance: int,
    apart: int,
) -> list[tuple[ir.Value, int, int]]:
    """Address, rows and distance of a tile's registers of sums.

    parts: rows of those below each other, apart: bytes between these; two are beside
    each other.
    """
    return [
        (
            address(buffer, indexing, ivs, part * apart + v * ROW_BYTES),
            rows,
            distance,
        )
        for part, rows in enumerate(parts)
        for v in range(2)
    ]


def load(start: ir.Value, rows: int, distance: int) -> ir.Value:
    """Rows of 64 bytes, `distance` bytes apart."""
    operands = [i16(rows), i16(ROW_BYTES), start, i64(distance)]
    return intrinsic(tile_type(), "tileloadd64", operands)


def multiply(
    product: str,
    rows: int,
    sums: ir.Value,
    left: ir.Value,
    right: ir.Value,
) -> ir.Value:
    """sums + left @ right."""
    operands = [i16(rows), i16(4 * COLUMNS), i16(ROW_BYTES), sums, left, right]
    return intrinsic(tile_type(), product, operands)


def store(value: ir.Value, start: ir.Value, rows: int, distance: int) -> None:
    """Write a tile register: rows of 16 sums, `distance` bytes apart."""
    given = [i16(rows), i16(4 * COLUMNS), start, i64(distance), value]
    emit_alone("llvm.x86.tilestored64.internal", given)
