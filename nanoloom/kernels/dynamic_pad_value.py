"""Borders of a number that only a run knows, around what the model is given.

    p = x in the middle of copies of z;  y = conv(p)
      ->  one kernel:  p[i, j] = x[i - 1, j - 1] inside, z outside;  y = conv(p)

Of bytes that are quantized while the model runs that is their zero point.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import starmap

from nanoloom.kernels.fuse_padding import (
    border_around,
    fuse_pad,
    readers_of_value,
)
from nanoloom.kernels.linalg_query import Op, all_dims, base, inputs, is_copy, maps
from nanoloom.kernels.pad_op import Border
from nanoloom.kernels.padding_consumers import has_windows
from nanoloom.kernels.slices import SLICE, static
from nanoloom.kernels.tiled_shapes import matched
from nanoloom.mlir import ir, named

INSERT = "tensor.insert_slice"


def pass_pad_values(module: ir.Module) -> None:
    """Let products of windows make such borders, in place."""
    for op in named(module, INSERT):
        number = copied_into(op)
        reads = [] if number is None else readers_of_value(op)
        if number is None or not reads or not all(starmap(has_windows, reads)):
            continue
        source = op.operation.operands[0]
        made = list(ir.RankedTensorType(source.type).shape)
        found = [border_around(op, read, source, made, number) for read in reads]
        borders = [pad_whole(border) for border in found if border is not None]
        if len(borders) < len(reads):
            continue
        fuse_pad(zip(reads, borders, strict=True), op)


def pad_whole(border: Border) -> Border:
    """The same around what its source is a slice of, itself around anything else."""
    cut = border.source.owner
    if isinstance(cut, ir.Block) or cut.name != SLICE or len(list(cut.operands)) > 1:
        return border
    if set(static(cut.opview, "strides")) > {1}:
        return border
    sizes = static(cut.opview, "sizes")
    kept = matched(ir.RankedTensorType(border.source.type).shape, sizes)
    places = dict(zip(kept, border.places, strict=True))
    return replace(
        border,
        source=cut.operands[0],
        begin=tuple(static(cut.opview, "offsets")),
        places=tuple(places.get(d) for d in range(len(sizes))),
    )


def copied_into(op: Op) -> ir.Value | None:
    """The number that a tensor holds everywhere, in which an insertion puts another."""
    if len(list(op.operation.operands)) != 2:
        return None
    owner = base(op.operation.operands[1]).owner
    if isinstance(owner, ir.Block) or not is_copy(owner.opview):
        return None
    reading, _ = maps(owner.opview)
    return None if all_dims(reading) else inputs(owner.opview)[0]
