"""Pools of windows of one size that begin at drawn places, in simpler operators.

Along an axis, window i of m begins at floor((i + u) a) - floor(u a), the last one at
the end; u is the axis's sample, and a the mean step.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

aten: Any = torch.ops.aten


def begins(sample: torch.Tensor, size: int, count: int, kernel: int) -> torch.Tensor:
    """Of each window, [..., count], in the samples' own precision, as torch has it."""
    last = torch.full((*sample.shape, 1), size - kernel, dtype=torch.int64)
    if count == 1:
        return last
    step = torch.full((), size - kernel, dtype=sample.dtype) / (count - 1)
    number = torch.arange(count - 1).to(sample.dtype)
    u = sample.unsqueeze(-1)
    found = ((number + u) * step).to(torch.int64) - (u * step).to(torch.int64)
    return torch.cat([found, last], -1)


def fractional_max_pool(
    x: torch.Tensor, kernel: Sequence[int], wanted: Sequence[int],
    samples: torch.Tensor, order: Sequence[int],
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """order: the sample of each axis.  Places are counted over all of an image."""
    rank, sizes = len(kernel), x.shape[-len(kernel) :]
    lead = x.shape[:-rank]
    flat = x.reshape(-1, prod(sizes))
    drawn = samples.expand(*lead[:-1], *samples.shape[-2:]).reshape(-1, rank)
    place = torch.zeros([1] * (1 + 2 * rank), dtype=torch.int64)
    for axis, (size, count, width) in enumerate(
        zip(sizes, wanted, kernel, strict=True)
    ):
        first = begins(drawn[:, order[axis]], size, count, width)
        at = first.unsqueeze(-1) + torch.arange(width)
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = count, width
        place = place * size + at.reshape(-1, *shape)
    windows = place.reshape(flat.shape[0], prod(wanted), prod(kernel))
    taken = flat.gather(1, windows.flatten(1)).reshape(windows.shape)
    values, best = taken.max(-1)
    at = windows.gather(-1, best.unsqueeze(-1)).squeeze(-1)
    shape = [*lead, *wanted]
    return values.reshape(shape), at.reshape(shape)


def of_images(x: Any, kernel: Any, wanted: Any, samples: Any) -> Any:
    lead = samples if x.dim() == 4 else samples[0]
    return fractional_max_pool(x, kernel, wanted, lead, (1, 0))  # width comes first


def of_volumes(x: Any, kernel: Any, wanted: Any, samples: Any) -> Any:
    lead = samples if x.dim() == 5 else samples[0]
    return fractional_max_pool(x, kernel, wanted, lead, (0, 1, 2))


RULES: dict[Any, Any] = {
    aten.fractional_max_pool2d.default: of_images,
    aten.fractional_max_pool3d.default: of_volumes,
}
