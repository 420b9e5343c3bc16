"""A border around an image, in vectors: what is in the image is loaded under a mask.

    p[i, j] = select(0 <= i - 1 < h and 0 <= j - 1 < w, x[i - 1, j - 1], 0)
      ->  p[i, j .. j + 15] = load x[i - 1, j - 1 ..] where a lane is inside, 0 elsewhere

No lane outside is touched; a row that is outside has no lanes inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.mlir import arith, ir, memref, vector
from nanoloom.vector.body import VectorBody
from nanoloom.vector.lane_values import Lane, LaneValue, Uniform, Vector

CLAMPS = ("arith.maxsi", "arith.minsi")  # of places, to those that there are


@dataclass
class BorderBody(VectorBody):
    """The body of a pad (kernels/pads.py), a load in it waits for its mask.

    loads: by what a body has of them, the places of the first lane.
    """

    def operation(self, op: ir.Operation) -> list[LaneValue]:
        operands = [self.lookup(v) for v in op.operands]
        if op.name in CLAMPS and isinstance(operands[0], Lane):
            return [operands[0]]
        match op.name, operands:
            case "arith.cmpi", (Lane(start), Uniform(end)):
                return [Vector(self.compared(op, start, end))]
            case "memref.load", (Uniform(), *_, Lane()):
                return [operands[-1]]
            case "arith.select", (Vector(inside), Lane(), Uniform(number)):
                return [Vector(self.loaded(op, inside, number))]
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

    def loaded(
        self, select: ir.Operation, inside: ir.Value, number: ir.Value
    ) -> ir.Value:
        """What is within the image, and the number of its border."""
        load = select.operands[1].owner
        source, *places = (self.lookup(v) for v in load.operands)
        at = [x.start if isinstance(x, Lane) else x.value for x in places]
        rest = vector.broadcast(self.kind(number.type), number)
        mask = inside if self.mask is None else arith.andi(inside, self.mask)
        return vector.maskedload(rest.type, source.value, at, mask, rest)


def steps(kind: ir.VectorType) -> ir.Value:
    """0, 1, 2, ..."""
    numbers = [ir.IntegerAttr.get(kind.element_type, n) for n in range(kind.shape[0])]
    return arith.constant(kind, ir.DenseElementsAttr.get(numbers, kind))
