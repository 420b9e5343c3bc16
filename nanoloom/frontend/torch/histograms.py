"""How many numbers lie between edges, in torch's simpler operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

aten: Any = torch.ops.aten
Tensor = torch.Tensor


def ends_of(x: Tensor, low: float, high: float, wider: float) -> tuple[Tensor, Tensor]:
    """The range said, or that of the numbers where it is empty; wider, if that is."""
    if low != high or not x.numel():
        least, most = (torch.full((), end, dtype=x.dtype) for end in (low, high))
    else:
        least, most = x.amin(), x.amax()
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


def histogram(
    x: Tensor, edges: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """The last edge is part of the last bin."""
    flat, bins = x.reshape(-1), edges.shape[0] - 1
    place = torch.searchsorted(edges, flat, right=True) - 1
    place = torch.where(flat == edges[-1], bins - 1, place)
    found = counted(torch.where(place < 0, bins, place), bins, weight, x.dtype)
    if density:
        found = found / found.sum() / edges.diff()
    return found, edges


def histogram_of_count(
    x: Tensor, bins: int = 100, *, range: Sequence[float] | None = None,
    weight: Tensor | None = None, density: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    least, most = range or (0.0, 0.0)
    low, high = ends_of(x.reshape(-1), least, most, 0.5)
    step, place = (high - low) / bins, torch.arange(bins + 1)
    upper = high - step * (bins - place)
    edges = torch.where(place < (bins + 1) // 2, low + step * place, upper)
    return histogram(x, edges, weight=weight, density=density)


RULES: dict[Any, Any] = {
    aten.histc.default: histc, aten.histogram.bins_tensor: histogram,
    aten.histogram.bin_ct: histogram_of_count,
}  # fmt: skip
