"""The greatest common divisor, by Euclid, and the least common multiple."""

from __future__ import annotations

from typing import Any

import torch
from torch._higher_order_ops import while_loop
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as PROMOTION
from torch._prims_common import elementwise_dtypes

aten: Any = torch.ops.aten
Pair = tuple[torch.Tensor, torch.Tensor]


def gcd(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """In as many steps as the slowest pair takes; others divide by themselves."""

    def goes_on(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (b != 0).any()

    def step(a: torch.Tensor, b: torch.Tensor) -> Pair:
        known = b == 0
        rest = torch.remainder(a, torch.where(known, 1, b))
        return torch.where(known, a, b), torch.where(known, b, rest)

    kind = elementwise_dtypes(a, b, type_promotion_kind=PROMOTION.DEFAULT)[1]
    a, b = torch.broadcast_tensors(a.to(kind).abs(), b.to(kind).abs())
    found, _ = while_loop(goes_on, step, (a.clone(), b.clone()))
    return found


def lcm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    divisor = gcd(a, b)
    one = torch.where(divisor == 0, 1, divisor)
    return (torch.div(a, one, rounding_mode="trunc") * b).abs()


RULES: dict[Any, Any] = {aten.gcd.default: gcd, aten.lcm.default: lcm}
