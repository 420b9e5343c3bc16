"""Pads around images, whose border a product leaves out.

    p = copy(x) in the middle of zeros;  y = conv(p, w)
      ->  one kernel, which reads x itself (nest/implicit_padding.py)

Vectors lie along the filters, and each number of the image is read by itself, or four
bytes are, wherever its channels stand.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.kernels.contraction import analyse
from nanoloom.kernels.group import Group
from nanoloom.kernels.linalg_query import (
    Kind,
    base,
    inputs,
    is_contraction,
    is_generic,
    kind,
)
from nanoloom.kernels.nest import alone
from nanoloom.kernels.pad_op import Border, Read
from nanoloom.mlir import ir
from nanoloom.nest.implicit_padding import may_be_implicit


def has_implicit_padding(
    read: Read, group: Group | None, border: Border, weights: Sequence[ir.Value]
) -> bool:
    """Whether a product reads what is inside of a border without what is around it.

    group: that of the reader.  weights: the arguments that are parameters.
    """
    reader, operand = read
    if group is None or not is_contraction(reader):
        return False
    behind = [
        op for op in group.ops if is_generic(op) and op.operation != reader.operation
    ]
    if not all(kind(op) in (Kind.ELEMENTWISE, Kind.REDUCTION) for op in behind):
        return False
    shape = analyse(reader)
    if shape is None:
        return False
    known = base(inputs(reader)[shape.right]) in weights
    number = number_of(border.number)
    if any(border.begin) or number is None:
        return False
    around = [
        low + high > 0 for low, high in zip(border.low, border.behind, strict=True)
    ]
    whole = not border.is_cropped
    axes = {*border.places, *border.alone}
    whole &= all(d in axes for d, here in enumerate(around) if here)
    given = operand, around, number
    return whole and may_be_implicit(alone(reader), shape, *given, known=known)


def number_of(number: ir.Attribute) -> float | None:
    return number.value if isinstance(number, (ir.FloatAttr, ir.IntegerAttr)) else None
