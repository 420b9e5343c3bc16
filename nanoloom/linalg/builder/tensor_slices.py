"""Parts of tensors, at numbers or at values that only a run knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nanoloom.ir.mlir import arith, ir, memref, tensor

Number = int | ir.Value
DYNAMIC = ir.ShapedType.get_dynamic_size()


def static(numbers: Sequence[Number]) -> list[int]:
    """The numbers, with a mark where a value stands."""
    return [x if isinstance(x, int) else DYNAMIC for x in numbers]


def bounds(
    starts: Sequence[Number], sizes: Sequence[Number], steps: Sequence[int] = ()
) -> list[Any]:
    """Offsets, sizes and steps as MLIR takes them: values, then numbers."""
    values = [[x for x in row if not isinstance(x, int)] for row in (starts, sizes)]
    every = list(steps) or [1] * len(starts)
    return [*values, [], static(starts), static(sizes), every]


def sliced(
    source: ir.Value,
    starts: Sequence[Number],
    sizes: Sequence[Number],
    *,
    steps: Sequence[int] = (),
    shape: Sequence[int] | None = None,
) -> ir.Value:
    """A part of a tensor.  shape: its own, without extents of 1 that are dropped."""
    element = ir.RankedTensorType(source.type).element_type
    kind = ir.RankedTensorType.get(static(sizes) if shape is None else shape, element)
    return tensor.ExtractSliceOp(kind, source, *bounds(starts, sizes, steps)).result


def inserted(
    source: ir.Value,
    into: ir.Value,
    starts: Sequence[Number],
    sizes: Sequence[Number],
) -> ir.Value:
    """`into` with a part replaced by `source`, which may lack extents of 1."""
    return tensor.InsertSliceOp(source, into, *bounds(starts, sizes)).result


def bounds_of(part: ir.Operation) -> tuple[list[Number], list[Number]]:
    """Where a slice begins, and its sizes; of a part of a buffer, too."""
    segments = list(ir.DenseI32ArrayAttr(part.attributes["operandSegmentSizes"]))
    given = iter(list(part.operands)[sum(segments[:-3]) :])
    begins, sizes = (
        [next(given) if n == DYNAMIC else n for n in ir.DenseI64ArrayAttr(word)]
        for word in (part.attributes["static_offsets"], part.attributes["static_sizes"])
    )
    return begins, sizes


def extents_of(value: ir.Value) -> list[Number]:
    """Of a tensor or a buffer, values where only a run knows them."""
    kind = ir.ShapedType(value.type)
    on_tensors = isinstance(value.type, ir.RankedTensorType)
    dim, none = tensor.dim if on_tensors else memref.dim, ir.IndexType.get()
    return [
        dim(value, arith.constant(none, place)) if kind.is_dynamic_dim(place) else n
        for place, n in enumerate(kind.shape)
    ]
