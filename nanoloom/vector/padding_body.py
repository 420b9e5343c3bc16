"""A border around an image, in vectors: what is in the image is loaded under a mask.

    p[i, j] = select(0 <= i - 1 < h and 0 <= j - 1 < w, x[i - 1, j - 1], 0)
      ->  p[i, j .. j + 15] = load x[i - 1, j - 1 ..] where lanes are inside, else 0

No lane outside is touched; a row that is outside has no lanes inside, and where that
is known it is the border's number alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.mlir import arith, ir, vector
from nanoloom.vector.access import add, constant_of
from nanoloom.vector.body import VectorBody
from nanoloom.vector.lane_values import Lane, LaneValue, RowVector, Uniform, Vector

CLAMPS = ("arith.maxsi", "arith.minsi")  # of places, to those that there are


@dataclass
class PaddingBody(VectorBody):
    """The body of a pad (kernels/pad_op.py), whose load waits for its mask."""

    def operation(self, op: ir.Operation) -> list[LaneValue]:
        operands = [self.lookup(v) for v in op.operands]
        if op.name in CLAMPS and isinstance(operands[0], Lane):
            return [operands[0]]
        match op.name, operands:
            case "arith.addi", (Uniform(one), Uniform(other)):
                return [Uniform(add(one, other))]
            case "arith.cmpi", (Uniform(at), Uniform(end)) if is_beyond(op, at, end):
                return [Uniform(arith.constant(op.results[0].type, 0))]
            case "arith.andi", _ if nowhere := [x for x in operands if is_outside(x)]:
                return nowhere[:1]
            case "arith.select", (inside, RowVector(), Uniform()) if is_outside(inside):
                return operands[2:]
            case "arith.cmpi", (Lane(start), Uniform(end)):
                return [Vector(self.compared(op, start, end))]
            case "memref.load", (Uniform(buffer), *outer, Lane(start)):
                return [RowVector(buffer, (*(x.value for x in outer), start))]
            case "arith.select", (Vector(inside), RowVector() as row, Uniform(number)):
                return [Vector(self.loaded(row, inside, number))]
            case _:
                return super().operation(op)

    def compared(self, op: ir.Operation, start: ir.Value, end: ir.Value) -> ir.Value:
        """Lanes' places against a bound, in 32 bits: a register of them."""
        i32 = ir.IntegerType.get_signless(32)
        first, bound = (arith.index_cast(i32, x) for x in (start, end))
        kind = self.kind(i32)
        places = arith.addi(vector.broadcast(kind, first), steps(kind))
        predicate = op.attributes["predicate"]
        return arith.cmpi(predicate, places, vector.broadcast(kind, bound))

    def loaded(self, row: RowVector, inside: ir.Value, number: ir.Value) -> ir.Value:
        """What is within the image, and the number of its border."""
        rest = vector.broadcast(self.kind(number.type), number)
        mask = inside if self.mask is None else arith.andi(inside, self.mask)
        return vector.maskedload(rest.type, row.buffer, list(row.at), mask, rest)


def is_beyond(op: ir.Operation, at: ir.Value, bound: ir.Value) -> bool:
    """Whether a place is known to be in front of an image, or behind it."""
    here, there = constant_of(at), constant_of(bound)
    if here is None or there is None:
        return False
    behind = op.attributes["predicate"].value == int(arith.CmpIPredicate.slt)  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    return here >= there if behind else here < there


def is_outside(inside: LaneValue) -> bool:
    """Whether no lane is inside of an image."""
    return isinstance(inside, Uniform) and constant_of(inside.value) == 0


def is_zero(value: ir.Value) -> bool:
    """Whether all lanes of a vector are known to be 0."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "vector.broadcast":
        return False
    number = owner.operands[0].owner
    if isinstance(number, ir.Block) or number.name != "arith.constant":
        return False
    return number.attributes["value"].value == 0  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes


def steps(kind: ir.VectorType) -> ir.Value:
    """0, 1, 2, ..."""
    numbers = [ir.IntegerAttr.get(kind.element_type, n) for n in range(kind.shape[0])]
    return arith.constant(kind, ir.DenseElementsAttr.get(numbers, kind))
