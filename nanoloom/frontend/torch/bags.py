"""Rows of a table, summed by bags: embedding_bag in torch's simpler operators."""

from __future__ import annotations

from typing import Any

import torch

aten: Any = torch.ops.aten
SUM, MEAN, MAX = range(3)


def embedding_bag(
    weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor,
    scale_grad_by_freq: bool = False, mode: int = SUM, sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """The bags; then what only gradients need, which is not computed."""
    del scale_grad_by_freq, sparse
    begins = offsets[:-1] if include_last_offset else offsets
    place = torch.arange(indices.shape[0], device=indices.device)
    bag = (place[:, None] >= begins).sum(1) - 1
    count = begins.shape[0]
    if padding_idx is not None and padding_idx >= 0:
        bag = torch.where(indices == padding_idx, count, bag)
    rows = weight[indices]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    none = offsets.new_zeros((0,))
    return bags(rows, bag, count, mode), none, none, none


def bags(rows: torch.Tensor, bag: torch.Tensor, count: int, mode: int) -> torch.Tensor:
    """[count, width]; rows of bag number `count` are in none; a bag may be empty."""
    width = rows.shape[1]
    start = rows.new_zeros((count + 1, width))
    if mode == SUM:
        return start.index_add(0, bag, rows)[:count]
    ones = torch.ones_like(bag)
    have = bag.new_zeros((count + 1,)).index_add(0, bag, ones)[:count, None]
    if mode == MEAN:
        sums = start.index_add(0, bag, rows)[:count]
        return sums / have.clamp(min=1).to(rows.dtype)
    lowest = torch.full_like(start, float("-inf"))
    at = bag[:, None].expand(-1, width)
    best = lowest.scatter_reduce(0, at, rows, "amax")[:count]
    return torch.where(have > 0, best, 0)


def with_padding(
    weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor,
    scale_grad_by_freq: bool, mode: int, sparse: bool,
    per_sample_weights: torch.Tensor | None, include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """A padding index counts from the end where it is negative, here alone."""
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    return embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse,
        per_sample_weights, include_last_offset, padding_idx,
    )  # fmt: skip


RULES: dict[Any, Any] = {
    aten.embedding_bag.default: embedding_bag,
    aten.embedding_bag.padding_idx: with_padding,
    aten._embedding_bag.default: embedding_bag,
    aten._embedding_bag_forward_only.default: embedding_bag,
}
