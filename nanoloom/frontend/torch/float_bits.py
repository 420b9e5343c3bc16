"""Functions of the bits of floats: the sign, the next number, mantissa and exponent."""

from __future__ import annotations

from typing import Any

import torch

aten: Any = torch.ops.aten
INTEGERS = {8: torch.int64, 4: torch.int32, 2: torch.int16}


def signbit(x: torch.Tensor) -> torch.Tensor:
    """Of -0 and of NaNs as well, which no comparison tells apart."""
    numbers = x.view(INTEGERS[x.element_size()]) if x.is_floating_point() else x
    return numbers < 0


def nextafter(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Of numbers of one sign, larger ones have larger bits; 0 is between both."""
    a, b = torch.broadcast_tensors(a, b)
    bits = a.clone().view(INTEGERS[a.element_size()])
    up = torch.where(a > 0, b > a, b < a)
    moved = (bits + up.to(bits.dtype) * 2 - 1).view(a.dtype)
    least = torch.ones_like(bits).view(a.dtype)
    moved = torch.where(a == 0, torch.copysign(least, b), moved)
    found = torch.where(a == b, b, moved)
    return torch.where(a.isnan() | b.isnan(), float("nan"), found)


def frexp(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x = mantissa * 2^exponent, 1/2 <= |mantissa| < 1; a denormal is scaled first."""
    info, integer = torch.finfo(x.dtype), INTEGERS[x.element_size()]
    width = round(-torch.tensor(info.eps, dtype=torch.float64).log2().item())
    bias = (1 << (8 * x.element_size() - 2 - width)) - 1
    small = x.abs() < info.smallest_normal
    bits = torch.where(small, x * 2.0**width, x).view(integer)
    field = (bits >> width) & (2 * bias + 1)
    exponent = field - (bias - 1) - small.to(integer) * width
    whole = (bits & ~((2 * bias + 1) << width)) | ((bias - 1) << width)
    plain = (x == 0) | x.isinf() | x.isnan()
    mantissa = torch.where(plain, x, whole.view(x.dtype))
    return mantissa, torch.where(plain, 0, exponent).to(torch.int32)


RULES: dict[Any, Any] = {
    aten.signbit.default: signbit,
    aten.nextafter.default: nextafter,
    aten.frexp.Tensor: frexp,
}
