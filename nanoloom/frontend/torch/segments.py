"""What is reduced within segments of an axis, by their lengths or their offsets."""

from __future__ import annotations

from typing import Any

import torch

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.scattered import neutral

aten: Any = torch.ops.aten
Tensor = torch.Tensor
MODES = {"sum": "sum", "mean": "sum", "max": "amax", "min": "amin", "prod": "prod"}


def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None,
    indices: Tensor | None = None, offsets: Tensor | None = None, axis: int = 0,
    unsafe: bool = False, initial: float | None = None,
) -> Tensor:  # fmt: skip
    """An empty segment has what it begins with; its mean is NaN."""
    bounds = lengths if lengths is not None else offsets
    if indices is not None or bounds is None:
        raise Unsupported("reduces segments by indices")
    bounds = bounds.to(torch.int64)
    ends = bounds.cumsum(axis) if lengths is not None else bounds.narrow(
        axis, 1, bounds.shape[axis] - 1
    )  # fmt: skip
    count, length = ends.shape[axis], data.shape[axis]
    place = torch.arange(length).expand([*data.shape[:axis], length]).contiguous()
    at = torch.searchsorted(ends.contiguous(), place, right=True)
    if lengths is None:  # in front of the first segment there may be others
        at = torch.where(place < bounds.narrow(axis, 0, 1), count, at)
    at = at.reshape([*at.shape, *[1] * (data.dim() - 1 - axis)]).expand(data.shape)
    mode, shape = MODES[reduce], [*data.shape]
    shape[axis] = count + 1  # what is in no segment
    start = neutral(data.dtype, mode) if initial is None else initial
    begun = torch.zeros(shape, dtype=data.dtype) + start
    made = begun.scatter_reduce(axis, at, data, mode).narrow(axis, 0, count)
    if reduce != "mean":
        return made
    ones = torch.zeros(shape, dtype=torch.int64)
    some = ones.scatter_add(axis, at, torch.ones_like(at)).narrow(axis, 0, count)
    empty = float("nan") if initial is None else made
    return torch.where(some == 0, empty, made / some.clamp(min=1).to(data.dtype))


RULES: dict[Any, Any] = {aten.segment_reduce.default: segment_reduce}
