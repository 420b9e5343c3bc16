"""A number of a table of 256 bytes for each of many, in registers.

    for lane: result[lane] = table[places[lane]]

x86's shuffles look up 16 bytes at once by four bits of each place, and choices by one
bit halve the 16 results to one: 31 instructions for all lanes of a register.  AArch64's
look up 64, zeros elsewhere.  Other lanes than a register's load one after another.
"""

from __future__ import annotations

from nanoloom.ir.access import index
from nanoloom.ir.mlir import arith, ir, made_by, memref, named, vector
from nanoloom.target.facts import Target
from nanoloom.target.instructions import aarch64, x86
from nanoloom.target.instructions.choose import of_width
from nanoloom.vector.dialect import LOOKUP, make
from nanoloom.vector.nanokernel.instructions import emit
from nanoloom.vector.widths import filled

PIECE, PLACES = 16, 256
BYTE = 8  # bits


def is_table(buffer: ir.Value) -> bool:
    """Whether a buffer has a byte for each byte."""
    kind = ir.MemRefType(buffer.type)
    byte = kind.element_type == ir.IntegerType.get_signless(8)
    return byte and kind.rank == 1 and list(kind.shape) == [PLACES]


def byte_of(place: ir.Value) -> ir.Value | None:
    """The bytes that places in a table were made of, None for other numbers."""
    op = made_by(place, "arith.index_castui")
    if op is None:
        return None
    kind = ir.VectorType(op.operands[0].type)
    byte = kind.element_type == ir.IntegerType.get_signless(8)
    return op.operands[0] if byte else None


def lookup(table: ir.Value, places: ir.Value) -> ir.Value:
    """table[places], lane by lane."""
    return make(LOOKUP, [places.type], [table, places])[0]


def make_lookups(module: ir.Module, target: Target) -> None:
    """Make what these operations stand for."""
    for op in named(module, LOOKUP):
        table, places = op.operation.operands
        with ir.InsertionPoint(op), op.operation.location:
            op.operation.results[0].replace_all_uses_with(made(table, places, target))
        op.operation.erase()


def made(table: ir.Value, places: ir.Value, target: Target) -> ir.Value:
    (lanes,) = ir.VectorType(places.type).shape
    shuffle = of_width(target, x86.SHUFFLES, BYTE * lanes)
    if shuffle is not None:
        return by_halves(table, places, shuffle.function)
    if aarch64.LOOKUP.is_of(target) and lanes == PIECE:
        return by_zeros(table, places)
    return one_by_one(table, places, lanes)


def by_halves(table: ir.Value, places: ir.Value, shuffle: str) -> ir.Value:
    """Every piece by the low bits, then half of what is left by each higher one."""
    kind = ir.VectorType(places.type)
    zero = filled(kind, 0)
    low = arith.andi(places, all_lanes(kind, PIECE - 1))
    pieces = [
        emit(shuffle, kind, [repeated(piece, kind), low]) for piece in read(table)
    ]
    for bit in range(4, 8):
        top = arith.shli(places, all_lanes(kind, 7 - bit))
        chosen = arith.cmpi(arith.CmpIPredicate.slt, top, zero)
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        pieces = [arith.select(chosen, high, other) for other, high in pairs]
    return pieces[0]


def by_zeros(table: ir.Value, places: ir.Value) -> ir.Value:
    """Four pieces at a time; what lies outside of them gives 0."""
    kind, pieces = ir.VectorType(places.type), read(table)
    result: ir.Value | None = None
    for first in range(0, len(pieces), 4):
        here = arith.subi(places, all_lanes(kind, first * PIECE))
        found = emit(aarch64.LOOKUP.function, kind, [*pieces[first : first + 4], here])
        result = found if result is None else arith.ori(result, found)
    assert result is not None
    return result


def one_by_one(table: ir.Value, places: ir.Value, lanes: int) -> ir.Value:
    """A load for each lane."""
    kind, found = ir.VectorType(places.type), list[ir.Value]()
    for lane in range(lanes):
        place = vector.extract(places, [], [lane])
        at = arith.index_castui(ir.IndexType.get(), place)
        found.append(memref.load(table, [at]))
    return vector.from_elements(kind, found)


def read(table: ir.Value) -> list[ir.Value]:
    """A table in pieces of 16."""
    element = ir.MemRefType(table.type).element_type
    kind = ir.VectorType.get([PIECE], element)
    return [vector.load(kind, table, [index(i)]) for i in range(0, PLACES, PIECE)]


def repeated(piece: ir.Value, kind: ir.VectorType) -> ir.Value:
    """A piece in each 16 lanes: shuffles work in each by itself."""
    (lanes,) = kind.shape
    places = [lane % PIECE for lane in range(lanes)]
    return piece if lanes == PIECE else vector.shuffle(piece, piece, places)


def all_lanes(kind: ir.VectorType, number: int) -> ir.Value:
    signed = number - PLACES if number >= PLACES // 2 else number
    return filled(kind, signed)
