"""A part of a buffer, at numbers or at values that only a run knows."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.mlir import ir, memref
from nanoloom.linalg.builder.tensor_slices import DYNAMIC, Number, bounds, static


def subview(
    buffer: ir.Value, starts: Sequence[Number], sizes: Sequence[Number]
) -> ir.Value:
    """The part; its rows lie as those of the buffer do."""
    kind = ir.MemRefType(buffer.type)
    strides, offset = kind.get_strides_and_offset()
    moved = [
        (n, stride) for n, stride in zip(static(starts), strides, strict=True) if n
    ]
    if offset != DYNAMIC:
        known = not any(DYNAMIC in pair for pair in moved)
        offset = offset + sum(n * stride for n, stride in moved) if known else DYNAMIC
    layout = ir.StridedLayoutAttr.get(offset, strides)
    made = ir.MemRefType.get(
        static(sizes), kind.element_type, layout, kind.memory_space
    )
    return memref.SubViewOp(made, buffer, *bounds(starts, sizes)).result
