"""The elements that torch's nearest neighbours are, where ONNX's are others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call


def by_places(call: Call, name: str, factors: Sequence[float]) -> ir.Value | None:
    """An argument's elements where torch has them; None where Resize has the same.

    ONNX divides by a factor, torch multiplies by its reciprocal, rounded to 32 bits:
    3 / 0.6 lies before the fifth element, or at it.
    """
    sizes, made = (v.shape[-len(factors) :] for v in (call.fake(name), call.out))
    if not all(isinstance(n, int) for n in (*sizes, *made)):
        return None
    axes = list(zip(factors, sizes, made, strict=True))
    if all(torch_places(*axis) == onnx_places(*axis) for axis in axes):
        return None
    x = call.value(name)
    for axis, place in enumerate(axes, call.rank - len(factors)):
        x = call.w("Gather", x, call.w.constant(torch_places(*place)), axis=axis)
    return x


def torch_places(factor: float, size: int, count: int) -> list[int]:
    found: Any = np.arange(count, dtype=np.float32) * np.float32(1 / factor)
    return np.minimum(np.floor(found).astype(int), size - 1).tolist()


def onnx_places(factor: float, size: int, count: int) -> list[int]:
    found = np.floor(np.arange(count) / float(np.float32(factor)))
    return np.minimum(found.astype(int), size - 1).tolist()
