"""What is put or summed at places, in torch's simpler operators."""

from __future__ import annotations

from typing import Any

import torch

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
        return torch.tensor(numbers[reduce], dtype=dtype)
    if dtype.is_floating_point:
        least = float("-inf") if reduce == "amax" else float("inf")
        return torch.tensor(least, dtype=dtype)
    ends = torch.iinfo(dtype)
    return torch.tensor(ends.min if reduce == "amax" else ends.max, dtype=dtype)


def index_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str,
    *, include_self: bool = True,
) -> torch.Tensor:  # fmt: skip
    """Rows along an axis; index has one place for each."""
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


RULES: dict[Any, Any] = {
    aten.scatter_reduce.two: scatter_reduce,
    aten.index_reduce.default: index_reduce,
    aten.put.default: put,
    aten.diagonal_scatter.default: diagonal_scatter,
}
