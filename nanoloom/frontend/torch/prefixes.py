"""The largest and the smallest number so far, along an axis.

Of two neighbouring runs of numbers the result is known from theirs: in log2(n) steps
each place takes that of twice as many in front of it.  Along an axis of an open size
each place looks at all in front of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten: Any = torch.ops.aten
Pair = tuple[torch.Tensor, torch.Tensor]
Compare = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def best_so_far(better: Compare) -> Callable[[torch.Tensor, int], Pair]:
    """Numbers and their places; the last one of equal ones, NaN above all."""

    def made(x: torch.Tensor, dim: int) -> Pair:
        if x.dim() == 0:
            return x.clone(), torch.zeros_like(x, dtype=torch.int64)
        x = x.movedim(dim, 0)
        count = x.shape[0]
        if not isinstance(count, int):
            value, place = of_all_before(better, x.movedim(0, -1))
            return value.movedim(-1, dim), place.movedim(-1, dim)
        shape = [count, *[1] * (x.dim() - 1)]
        places = torch.arange(count, device=x.device).reshape(shape).expand(x.shape)
        step = 1
        while step < count:
            x, places = joined(x, places, step)
            step *= 2
        return x.movedim(0, dim), places.movedim(0, dim)

    def joined(x: torch.Tensor, places: torch.Tensor, step: int) -> Pair:
        """From `step` on, the better one of each and what is a step in front of it."""
        before, here = x[:-step], x[step:]
        take = better(here, before)
        if x.is_floating_point():
            take = torch.isnan(here) | (take & ~torch.isnan(before))
        values = torch.where(take, here, before)
        at = torch.where(take, places[step:], places[:-step])
        return torch.cat([x[:step], values]), torch.cat([places[:step], at])

    return made


def of_all_before(better: Compare, x: torch.Tensor) -> Pair:
    """The same along the last axis, of all pairs of places."""
    count = x.shape[-1]
    rows = x.unsqueeze(-2).expand(*x.shape, count)
    before = torch.ones(count, count, dtype=torch.bool).tril()
    first = rows[..., :1]  # is in front of all, and changes nothing
    kept = torch.where(before, rows, first)
    value = kept.amax(-1) if better is torch.ge else kept.amin(-1)
    found = kept == value.unsqueeze(-1)
    if x.is_floating_point():
        unknown = torch.isnan(kept)
        some = unknown.any(-1)
        value = torch.where(some, float("nan"), value)
        found = torch.where(some.unsqueeze(-1), unknown, found)
    places = torch.arange(count, device=x.device)
    return value, torch.where(found & before, places, -1).amax(-1)


def log_sums(x: torch.Tensor, dim: int) -> torch.Tensor:
    """The logarithm of the sum of exp so far: of each place, over those in front."""
    if x.dim() == 0 or x.shape[dim] == 0:
        return x.clone()
    count = x.shape[dim]
    rows = x.movedim(dim, -1).unsqueeze(-2).expand(*x.movedim(dim, -1).shape, count)
    behind = torch.ones(count, count, dtype=torch.bool).triu(1)
    return rows.masked_fill(behind, float("-inf")).logsumexp(-1).movedim(-1, dim)


RULES: dict[Any, Any] = {
    aten.logcumsumexp.default: log_sums,
    aten.cummax.default: best_so_far(torch.ge),
    aten.cummin.default: best_so_far(torch.le),
}
