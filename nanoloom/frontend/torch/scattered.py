"""What is put or summed at places, in torch's simpler operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from nanoloom.errors import Unsupported

aten: Any = torch.ops.aten


def scatter_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str,
    *, include_self: bool = True,
) -> torch.Tensor:  # fmt: skip
    """Means, and what takes the place of what was there."""
    if x.dim() == 0:
        one, at, new = (t.reshape(1) for t in (x, index, src))
        made = scatter_reduce(one, 0, at, new, reduce, include_self=include_self)
        return made.reshape(())
    if x.dtype == torch.bool and reduce in ("amax", "amin"):
        made = scatter_reduce(
            x.to(torch.uint8), dim, index, src.to(torch.uint8), reduce,
            include_self=include_self,
        )  # fmt: skip
        return made.to(torch.bool)
    ones = torch.ones_like(index)
    count = torch.zeros(x.shape, dtype=torch.int64).scatter_add(dim, index, ones)
    start = x if include_self else torch.where(count > 0, neutral(x.dtype, reduce), x)
    if reduce != "mean":
        return start.scatter_reduce(dim, index, src, reduce)
    total = start.scatter_reduce(dim, index, src, "sum")
    count = (count + 1 if include_self else count.clamp(min=1)).to(x.dtype)
    rounding = None if x.is_floating_point() else "floor"
    return torch.div(total, count, rounding_mode=rounding)


def neutral(dtype: torch.dtype, reduce: str) -> torch.Tensor:
    """What changes no result."""
    numbers: dict[str, float] = {"sum": 0, "mean": 0, "prod": 1}
    if reduce in numbers:
        return torch.full((), numbers[reduce], dtype=dtype)
    if dtype.is_floating_point:
        least = float("-inf") if reduce == "amax" else float("inf")
        return torch.full((), least, dtype=dtype)
    ends = torch.iinfo(dtype)
    end = ends.min if reduce == "amax" else ends.max
    return torch.full((), end, dtype=dtype)


def index_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str,
    *, include_self: bool = True,
) -> torch.Tensor:  # fmt: skip
    """Rows along an axis; index has one place for each."""
    if x.dim() == 0:
        one, all_of = x.reshape(1), source.reshape(-1)
        made = index_reduce(one, 0, index, all_of, reduce, include_self=include_self)
        return made.reshape(())
    shape = [1] * source.dim()
    shape[dim] = -1
    at = index.to(torch.int64).reshape(shape).expand(source.shape)
    return scatter_reduce(x, dim, at, source, reduce, include_self=include_self)


def put(
    x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False
) -> torch.Tensor:
    """At places that are counted over all of x."""
    flat, at = x.reshape(-1), index.reshape(-1)
    return flat.index_put((at,), source.reshape(-1), accumulate).reshape(x.shape)


def diagonal_scatter(
    x: torch.Tensor, src: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> torch.Tensor:
    places = torch.arange(x.numel()).reshape(x.shape)
    at = places.diagonal(offset, dim1, dim2).reshape(-1)
    flat = x.reshape(-1).scatter(0, at, src.to(x.dtype).reshape(-1))
    return flat.reshape(x.shape)


def put_by_mask(
    x: torch.Tensor, indices: Sequence[torch.Tensor | None], values: torch.Tensor,
    accumulate: bool = False,
) -> torch.Tensor:  # fmt: skip
    """A row for each place where a mask is true, in the order that they are counted."""
    ((axis, mask),) = ((i, at) for i, at in enumerate(indices) if at is not None)
    if mask.dtype not in (torch.bool, torch.uint8):
        raise Unsupported("puts values at places, by a rule for masks")
    head, tail = x.shape[:axis], x.shape[axis + mask.dim() :]
    wide = values.to(x.dtype)
    for _ in range(axis + 1 + len(tail) - values.dim()):
        wide = wide.unsqueeze(0)
    some, count = mask.bool().reshape(-1), wide.shape[axis]
    if not (isinstance(count, int) and count == 1):  # each has one of its own
        nothing = wide.new_zeros([*wide.shape[:axis], 1, *wide.shape[axis + 1 :]])
        number = (some.cumsum(0) - 1).clamp(max=count - 1)
        at = torch.where(some, number, count)
        wide = torch.cat([wide, nothing], axis).index_select(axis, at)
    rows = x.reshape([*head, -1, *tail])
    new = rows + wide if accumulate else wide
    holds = some.reshape([-1, *[1] * len(tail)])
    return torch.where(holds, new, rows).reshape(x.shape)


def as_strided_scatter(
    x: torch.Tensor, src: torch.Tensor, size: Sequence[int], stride: Sequence[int],
    storage_offset: int | None = None,
) -> torch.Tensor:  # fmt: skip
    """Put where as_strided would read."""
    at = torch.full((), storage_offset or 0, dtype=torch.int64)
    for count, step in zip(size, stride, strict=True):
        at = at.unsqueeze(-1) + torch.arange(count) * step
    flat = x.reshape(-1).scatter(0, at.reshape(-1), src.to(x.dtype).reshape(-1))
    return flat.reshape(x.shape)


def nonzero_static(x: torch.Tensor, *, size: int, fill_value: int = -1) -> torch.Tensor:
    """So many places of what is not 0, filled up with a number."""
    some = (x != 0).reshape(-1)
    number = some.cumsum(0) - 1
    at = torch.where(some & (number < size), number, size)
    empty = torch.full((size + 1,), -1, dtype=torch.int64)
    place = empty.scatter(0, at, torch.arange(x.numel()))[:size]
    axes, rest = list[torch.Tensor](), place
    for count in reversed(x.shape):
        axes.append(torch.where(place < 0, fill_value, rest % count))
        rest = rest // count
    return torch.stack(axes[::-1], 1) if axes else place.new_zeros((size, 0))


RULES: dict[Any, Any] = {
    aten.scatter_reduce.two: scatter_reduce,
    aten.index_reduce.default: index_reduce,
    aten.put.default: put,
    aten.diagonal_scatter.default: diagonal_scatter,
    aten.index_put.default: put_by_mask,
    aten._unsafe_index_put.default: put_by_mask,
    aten.as_strided_scatter.default: as_strided_scatter,
    aten.nonzero_static.default: nonzero_static,
}
