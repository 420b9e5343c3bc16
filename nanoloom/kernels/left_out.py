"""Pads at the ends of an image's rows, whose border a product leaves out.

    p = copy(x) in the middle of zeros;  y = conv(p, w)
      ->  one kernel, which reads x itself (nest/left_out.py)

An image whose channels stand in front of its pixels, as models take them: vectors lie
along the filters, and each number of the image is read by itself, or four bytes are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nanoloom.kernels.contraction import analyse
from nanoloom.kernels.group import Group
from nanoloom.kernels.nest import alone
from nanoloom.kernels.structure import (
    Kind,
    base,
    inputs,
    is_contraction,
    is_generic,
    kind,
)
from nanoloom.mlir import ir
from nanoloom.nest.left_out import may_leave_out
from nanoloom.nest.stage import Stage
from nanoloom.nest.windowed import is_window_pool

# Of images that loops read where they lie.  With RISC-V's tiles of 14 pixels a row of
# 16 takes 1.01 times the instructions of a copy, one of 56 pixels 0.93; filters of 11
# pixels 1.38, of 7 pixels 0.89.
FEWEST_PIXELS, MOST_TAPS = 48, 7

if TYPE_CHECKING:
    from nanoloom.kernels.pads import Border, Read


def leaves_out(
    read: Read,
    group: Group | None,
    border: Border,
    weights: Sequence[ir.Value],
    *,
    in_loops: bool = False,
) -> bool:
    """Whether a product reads what is inside of a border without what is around it.

    group: that of the reader.  weights: the arguments that are parameters.  in_loops:
    whether its tiles are loops.
    """
    reader, operand = read
    if group is None or not is_contraction(reader):
        return False
    behind = [
        op for op in group.ops if is_generic(op) and op.operation != reader.operation
    ]
    if not all(
        kind(op) is Kind.ELEMENTWISE or is_window_pool(alone(op)) for op in behind
    ):
        return False
    shape = analyse(reader)
    if shape is None:
        return False
    known = base(inputs(reader)[shape.right]) in weights
    number = number_of(border.number)
    if any(border.begin) or number is None:
        return False
    extents = ir.RankedTensorType(border.source.type).shape
    inside = (1 if p is None else border.sizes[p] for p in border.places)
    around = [
        low + high > 0 for low, high in zip(border.low, border.behind, strict=True)
    ]
    whole = list(inside) == list(extents)
    whole &= all(d in border.places for d, here in enumerate(around) if here)
    if in_loops and not suits_loops(alone(reader), operand, around):
        return False
    given = operand, around, number
    return whole and may_leave_out(alone(reader), shape, *given, known=known)


def suits_loops(product: Stage, operand: int, around: Sequence[bool]) -> bool:
    """Whether few tiles of loops are at ends of an image's rows, and those are short.

    What they do is written out at each step along a row; the innermost axis of the sum
    goes along none.
    """
    *_, last = (axis.name for axis in product.axes if axis.is_reduction)
    indices = product.reads[operand].indices
    if any(last in x.axes for x, here in zip(indices, around, strict=True) if here):
        return False
    row = [axis for name in indices[-1].axes if (axis := product.axis(name))]
    taps = [x.extent for x in row if x.is_reduction]
    pixels = [x.extent for x in row if not x.is_reduction]
    long = [n for n in pixels if isinstance(n, int) and n >= FEWEST_PIXELS]
    few = [n for n in taps if isinstance(n, int) and n <= MOST_TAPS]
    return len(long) == len(few) == 1


def number_of(number: ir.Attribute) -> float | None:
    return number.value if isinstance(number, (ir.FloatAttr, ir.IntegerAttr)) else None
