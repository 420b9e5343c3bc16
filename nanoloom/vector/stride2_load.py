"""Every second number of a row as a vector: two loads, of which half is taken.

    x[2 i .. 2 i + 14]  ->  load x[2 i ..], load x[2 i + 8 ..], both under masks of the
                            lanes that are taken, and a shuffle

What lies between them is not touched.  Of a vector of both under one mask LLVM 22 reads
the upper half without it on AVX2, where none of its lanes count.

What is loaded with a border around it is within the image: taps of a window take their
lanes of the same two loads, as far as these reach.
"""

from __future__ import annotations

from nanoloom.ir.access import SECOND, Parts, constant_of
from nanoloom.ir.mlir import ir, made_by, vector
from nanoloom.vector.widths import filled


def masks(count: int, mask: ir.Value | None) -> list[ir.Value]:
    """Which lanes of each load are taken; mask: those of the vector that count."""
    kind = ir.VectorType.get([count], ir.IntegerType.get_signless(1))
    some = filled(kind, 1) if mask is None else mask
    made: list[ir.Value] = []
    for part in range(SECOND):
        first = part * count // SECOND
        places = [
            first + n // SECOND if n % SECOND == 0 else count for n in range(count)
        ]
        made.append(vector.shuffle(some, filled(kind, 0), places))
    return made


def joined(parts: list[ir.Value], shift: int = 0) -> ir.Value:
    """The lanes that are taken of what was loaded, from one of them on."""
    low, high = parts
    wide = SECOND * ir.VectorType(low.type).shape[0]
    lanes = range(shift, shift + wide, SECOND)
    return vector.shuffle(low, high, [min(lane, wide - 1) for lane in lanes])


def shared(place: Parts, count: int, mask: ir.Value | None) -> tuple[Parts, int]:
    """Where two loads begin that many taps share, and the first lane that is taken.

    place: of that lane.  count: of the lanes of a vector; mask: those that count.
    """
    base, number = place
    shift = number % (SECOND * count)
    if shift + SECOND * (counted(mask, count) - 1) >= SECOND * count:
        shift = number % SECOND
    return (base, number - shift), shift


def counted(mask: ir.Value | None, count: int) -> int:
    """How many lanes of a vector count, at most."""
    owner = None if mask is None else made_by(mask, "vector.create_mask")
    known = None if owner is None else constant_of(owner.operands[0])
    return count if known is None else known
