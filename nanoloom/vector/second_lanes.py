"""Every second number of a row as a vector: two loads, of which half is taken.

    x[2 i .. 2 i + 14]  ->  load x[2 i ..], load x[2 i + 8 ..], both under masks of the
                            lanes that are taken, and a shuffle

What lies between them is not touched.  Of a vector of both under one mask LLVM 22 reads
the upper half without it on AVX2, where none of its lanes count.
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir, vector
from nanoloom.vector.access import SECOND


def masks(count: int, mask: ir.Value | None) -> list[ir.Value]:
    """Which lanes of each load are taken; mask: those of the vector that count."""
    kind = ir.VectorType.get([count], ir.IntegerType.get_signless(1))
    some = number_of(kind, 1) if mask is None else mask
    made: list[ir.Value] = []
    for part in range(SECOND):
        first = part * count // SECOND
        places = [
            first + n // SECOND if n % SECOND == 0 else count for n in range(count)
        ]
        made.append(vector.shuffle(some, number_of(kind, 0), places))
    return made


def joined(parts: list[ir.Value]) -> ir.Value:
    """The lanes that are taken of what was loaded."""
    low, high = parts
    count = ir.VectorType(low.type).shape[0]
    return vector.shuffle(low, high, range(0, SECOND * count, SECOND))


def number_of(kind: ir.VectorType, number: int) -> ir.Value:
    """The same in every lane."""
    attribute = ir.IntegerAttr.get(kind.element_type, number)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, attribute))
