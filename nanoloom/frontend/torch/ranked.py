"""Operators about the order of numbers and their distances, in torch's simpler ones."""

from __future__ import annotations

from typing import Any

import torch

from nanoloom.errors import Unsupported

aten: Any = torch.ops.aten


def median(
    x: torch.Tensor, dim: int, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The lower one of two in the middle; NaN where there is one."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, places = torch.sort(x, dim=dim)
    middle = (x.shape[dim] - 1) // 2
    value, place = (t.narrow(dim, middle, 1) for t in (values, places))
    if x.is_floating_point():
        unknown = torch.isnan(x)
        some = unknown.any(dim, keepdim=True)
        value = torch.where(some, float("nan"), value)
        first = unknown.to(torch.int64).argmax(dim, keepdim=True)
        place = torch.where(some, first, place)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def median_of_all(x: torch.Tensor) -> torch.Tensor:
    return median(x.reshape(-1), 0)[0]


def median_of_known(
    x: torch.Tensor, dim: int, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The lower one in the middle of what is not NaN; NaN where all are."""
    if x.dim() == 0 or not x.is_floating_point():
        return median(x, dim, keepdim)
    values, places = torch.sort(x, dim=dim)  # NaN is behind all numbers
    count = x.isnan().logical_not().sum(dim, keepdim=True)
    middle = (count - 1).clamp(min=0) // 2
    value, place = (t.gather(dim, middle) for t in (values, places))
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def median_of_all_known(x: torch.Tensor) -> torch.Tensor:
    return median_of_known(x.reshape(-1), 0)[0]


def kth(
    x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k-th smallest number, counted from 1."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    found = [t.narrow(dim, k - 1, 1) for t in torch.sort(x, dim=dim)]
    value, place = found if keepdim else [t.squeeze(dim) for t in found]
    return value, place


def mode(
    x: torch.Tensor, dim: int = -1, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest of the numbers that occur most often, and where its last one is.

    So torch finds it, too, in rows of up to 16 numbers; in others anywhere.
    """
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, places = torch.sort(x.movedim(dim, -1), dim=-1)
    times = (values.unsqueeze(-1) == values.unsqueeze(-2)).sum(-1)
    first = times.argmax(-1, keepdim=True)
    at = first + times.gather(-1, first) - 1
    found = [t.gather(-1, at).movedim(-1, dim) for t in (values, places)]
    value, place = found if keepdim else [t.squeeze(dim) for t in found]
    return value, place


def searchsorted(
    rows: torch.Tensor, x: torch.Tensor, *, out_int32: bool = False,
    right: bool = False, side: str | None = None, sorter: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """How many numbers of a row are in front of each: all are compared."""
    if sorter is not None:
        rows = torch.gather(rows, -1, sorter)
    row, number = rows.unsqueeze(-2) if rows.dim() > 1 else rows, x.unsqueeze(-1)
    # NaN, which no comparison holds for, is behind all numbers.
    behind = row > number if right or side == "right" else row >= number
    count = (~behind).sum(-1)
    return count.to(torch.int32) if out_int32 else count


def searchsorted_number(rows: torch.Tensor, x: float, **said: Any) -> torch.Tensor:
    return searchsorted(rows, torch.full((), x, dtype=rows.dtype), **said)


def bucketized(
    x: torch.Tensor, rows: torch.Tensor, *, out_int32: bool = False, right: bool = False
) -> torch.Tensor:
    return searchsorted(rows, x, out_int32=out_int32, right=right)


def repeated(repeats: torch.Tensor, *, output_size: int | None = None) -> torch.Tensor:
    """Each place as often as is said of it; the sum of that has to be known.

    A run begins behind the sum of those in front of it, where one more is counted.
    """
    if not isinstance(output_size, int):
        raise Unsupported("repeats as often as data says, without output_size")
    ends = repeats.to(torch.int64).cumsum(0)
    zeros = torch.zeros(output_size + 1, dtype=torch.int64)
    begun = zeros.scatter_add(0, ends, torch.ones_like(ends))
    return begun.cumsum(0)[:output_size].to(repeats.dtype)


def distances(
    x: torch.Tensor, y: torch.Tensor, p: float, compute_mode: int | None
) -> torch.Tensor:
    """Between all rows of x and y; of differences, whatever the mode."""
    apart = (x.unsqueeze(-2) - y.unsqueeze(-3)).abs()
    if p == 0:
        return (apart != 0).to(x.dtype).sum(-1)
    if p == 1:
        return apart.sum(-1)
    if p == 2:
        return (apart * apart).sum(-1).sqrt()
    if p == float("inf"):
        return apart.amax(-1) if x.shape[-1] else apart.sum(-1)
    return apart.pow(p).sum(-1).pow(1 / p)


def distances_of_pairs(x: torch.Tensor, p: float = 2) -> torch.Tensor:
    """Between each row and those behind it."""
    if not isinstance(x.shape[0], int):
        raise Unsupported("has an open number of rows")
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1)
    return distances(x[first].unsqueeze(1), x[second].unsqueeze(1), p, None).flatten()


def length(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """sqrt(x * x + y * y), where neither square is a number that there is not."""
    x, y = x.abs(), y.abs()
    most, least = torch.maximum(x, y), torch.minimum(x, y)
    share = least / most
    found = most * (1 + share * share).sqrt()
    found = torch.where(most == 0, most, found)
    infinite = (x == float("inf")) | (y == float("inf"))
    return torch.where(infinite, float("inf"), found)


RULES: dict[Any, Any] = {
    aten.median.dim: median,
    aten.median.default: median_of_all,
    aten.nanmedian.dim: median_of_known,
    aten.nanmedian.default: median_of_all_known,
    aten.kthvalue.default: kth,
    aten.mode.default: mode,
    aten.searchsorted.Tensor: searchsorted,
    aten.searchsorted.Scalar: searchsorted_number,
    aten.bucketize.Tensor: bucketized,
    aten.repeat_interleave.Tensor: repeated,
    aten.hypot.default: length,
    aten._cdist_forward.default: distances,
    aten._pdist_forward.default: distances_of_pairs,
}
