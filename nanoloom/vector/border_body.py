"""A border around an image, in vectors: what is in the image is loaded under a mask.

    p[i, j] = select(0 <= i - 1 < h and 0 <= j - 1 < w, x[i - 1, j - 1], 0)
      ->  p[i, j .. j + 15] = load x[i - 1, j - 1 ..] where lanes are inside, else 0

No lane outside is touched; a row that is outside has no lanes inside.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.mlir import arith, ir, vector
from nanoloom.vector.access import SECOND
from nanoloom.vector.body import VectorBody, read
from nanoloom.vector.lane_values import Lane, LaneValue, Row, Uniform, Vector
from nanoloom.vector.widths import filler

CLAMPS = ("arith.maxsi", "arith.minsi")  # of places, to those that there are


@dataclass
class BorderBody(VectorBody):
    """The body of a pad (kernels/pads.py), whose load waits for its mask.

    step: every such lane is taken, and no other one is loaded.  mask: of those.
    """

    step: int = 1

    def operation(self, op: ir.Operation) -> list[LaneValue]:
        operands = [self.lookup(v) for v in op.operands]
        if op.name in CLAMPS and isinstance(operands[0], Lane):
            return [operands[0]]
        match op.name, operands:
            case "arith.cmpi", (Lane(start), Uniform(end)):
                return [Vector(self.compared(op, start, end))]
            case "memref.load", (Uniform(buffer), *outer, Lane(start)):
                return [Row(buffer, (*(x.value for x in outer), start))]
            case "arith.select", (Vector(inside), Row() as row, Uniform(number)):
                return [Vector(self.loaded(row, inside, number))]
            case _:
                return super().operation(op)

    @property
    def taken(self) -> ir.Value | None:
        """The lanes that are loaded, None for all."""
        kind = self.kind(ir.IntegerType.get_signless(1))
        return taken_lanes(kind, self.mask, self.step)

    def row(self, value: Row) -> ir.Value:
        kind = self.kind(ir.MemRefType(value.buffer.type).element_type)
        return read(kind, value.buffer, list(value.at), self.taken)

    def compared(self, op: ir.Operation, start: ir.Value, end: ir.Value) -> ir.Value:
        """Lanes' places against a bound, in 32 bits: a register of them."""
        i32 = ir.IntegerType.get_signless(32)
        first, bound = (arith.index_cast(i32, x) for x in (start, end))
        kind = self.kind(i32)
        places = arith.addi(vector.broadcast(kind, first), steps(kind))
        predicate = op.attributes["predicate"]
        return arith.cmpi(predicate, places, vector.broadcast(kind, bound))

    def loaded(self, row: Row, inside: ir.Value, number: ir.Value) -> ir.Value:
        """What is within the image, and the number of its border."""
        rest = vector.broadcast(self.kind(number.type), number)
        mask = inside if self.taken is None else arith.andi(inside, self.taken)
        return vector.maskedload(rest.type, row.buffer, list(row.at), mask, rest)


def taken_lanes(
    kind: ir.VectorType, mask: ir.Value | None, step: int
) -> ir.Value | None:
    """Which lanes are loaded if some between them are left out; None for all."""
    if step == 1:
        return mask
    count = kind.shape[0] // step
    short = ir.VectorType.get([count], kind.element_type)
    some = mask if mask is not None else number_of(short, 1)
    places = [n // step if n % step == 0 else count for n in range(kind.shape[0])]
    return vector.shuffle(some, number_of(short, 0), places)


def number_of(kind: ir.VectorType, number: int) -> ir.Value:
    """The same in every lane."""
    attribute = ir.IntegerAttr.get(kind.element_type, number)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, attribute))


def every(step: int, dense: ir.Value) -> ir.Value:
    """Every such lane of a vector, from the first one on."""
    return vector.shuffle(
        dense, dense, range(0, ir.VectorType(dense.type).shape[0], step)
    )


def read_second(
    kind: ir.VectorType, buffer: ir.Value, at: list[ir.Value], mask: ir.Value | None
) -> ir.Value:
    """Every second element from a place on; those between are not touched."""
    dense = ir.VectorType.get([SECOND * kind.shape[0]], kind.element_type)
    bits = ir.VectorType.get(dense.shape, ir.IntegerType.get_signless(1))
    taken = taken_lanes(bits, mask, SECOND)
    rest = vector.broadcast(dense, filler(kind.element_type))
    return every(SECOND, vector.maskedload(dense, buffer, at, taken, rest))


def steps(kind: ir.VectorType) -> ir.Value:
    """0, 1, 2, ..."""
    numbers = [ir.IntegerAttr.get(kind.element_type, n) for n in range(kind.shape[0])]
    return arith.constant(kind, ir.DenseElementsAttr.get(numbers, kind))
