"""How many numbers lie between edges, in torch's simpler operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

aten: Any = torch.ops.aten
Tensor = torch.Tensor


def ends_of(x: Tensor, low: float, high: float, wider: float) -> tuple[Tensor, Tensor]:
    """The range said, or that of the numbers where it is empty; wider, if that is."""
    if low != high or not x.numel():
        return widened(x, (low, high), wider)
    return widened(x, None, wider)


def widened(
    x: Tensor, range: Sequence[float] | None, wider: float
) -> tuple[Tensor, Tensor]:
    """A range, or that of the numbers; where both ends are one, so much wider."""
    if range is None:
        least, most = x.amin(), x.amax()
    else:
        least, most = (torch.full((), end, dtype=x.dtype) for end in range)
    apart = (least == most).to(x.dtype) * wider
    return least - apart, most + apart


def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Bins of one width; each number's is computed, not looked for."""
    flat = x.reshape(-1)
    low, high = ends_of(flat, min, max, 1.0)
    place = ((flat - low) * bins / (high - low)).to(torch.int64).clamp(max=bins - 1)
    inside = (flat >= low) & (flat <= high)
    return counted(torch.where(inside, place, bins), bins, None, x.dtype)


def counted(place: Tensor, bins: int, weight: Tensor | None, dtype: Any) -> Tensor:
    """Those of place `bins` are in none."""
    each = torch.ones_like(place) if weight is None else weight.reshape(-1)
    none = torch.zeros(bins + 1, dtype=each.dtype)
    return none.scatter_add(0, place, each)[:bins].to(dtype)


def bin_of(x: Tensor, edges: Tensor) -> Tensor:
    """Each number's bin, -1 for none.  The last edge is part of the last bin."""
    bins = edges.shape[0] - 1
    place = torch.searchsorted(edges, x, right=True) - 1
    place = torch.where(x == edges[-1], bins - 1, place)
    return torch.where(place == bins, -1, place)


def histogram(
    x: Tensor, edges: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    rows = x.reshape(-1, 1)
    return histogram_of_rows(rows, [edges], weight=weight, density=density), edges


def histogram_of_rows(
    x: Tensor, edges: Sequence[Tensor], *, weight: Tensor | None = None,
    density: bool = False,
) -> Tensor:  # fmt: skip
    """Rows [..., axes] in boxes: what is outside along one axis is in none."""
    columns = x.reshape(-1, len(edges)).unbind(1)
    counts = [edge.shape[0] - 1 for edge in edges]
    place, total = torch.zeros_like(columns[0], dtype=torch.int64), math.prod(counts)
    inside = place == 0
    for column, edge, count in zip(columns, edges, counts, strict=True):
        found = bin_of(column.contiguous(), edge)
        inside, place = inside & (found >= 0), place * count + found
    flat = counted(torch.where(inside, place, total), total, weight, x.dtype)
    made = flat.reshape(counts)
    if density:
        made = made / made.sum()
        for axis, edge in enumerate(edges):
            shape = [1] * axis + [-1] + [1] * (len(edges) - axis - 1)
            made = made / edge.diff().reshape(shape)
    return made


def even_edges(x: Tensor, bins: int, range: Sequence[float] | None) -> Tensor:
    if range is None and not x.numel():
        range = 0.0, 1.0
    low, high = widened(x.reshape(-1), range, 0.5)
    step, place = (high - low) / bins, torch.arange(bins + 1)
    upper = high - step * (bins - place)
    return torch.where(place < (bins + 1) // 2, low + step * place, upper)


def histogram_of_count(
    x: Tensor, bins: int = 100, *, range: Sequence[float] | None = None,
    weight: Tensor | None = None, density: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    edges = even_edges(x, bins, range)
    return histogram(x, edges, weight=weight, density=density)


def edges_of_rows(
    x: Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None, **rest: Any
) -> list[Tensor]:
    """Of each column of [..., axes]."""
    del rest  # what is counted between them
    columns = x.reshape(-1, len(bins)).unbind(1)
    ends = (
        [None] * len(bins)
        if range is None
        else zip(range[::2], range[1::2], strict=True)
    )
    each = zip(columns, bins, ends, strict=True)
    return [even_edges(column, count, end) for column, count, end in each]


def histogram_of_counts(
    x: Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None, **rest: Any
) -> Tensor:
    return histogram_of_rows(x, edges_of_rows(x, bins, range=range), **rest)


RULES: dict[Any, Any] = {
    aten.histc.default: histc, aten.histogram.bins_tensor: histogram,
    aten.histogram.bin_ct: histogram_of_count,
    aten._histogramdd_bin_edges.default: edges_of_rows,
    aten._histogramdd_from_bin_cts.default: histogram_of_counts,
    aten._histogramdd_from_bin_tensors.default: histogram_of_rows,
}  # fmt: skip
