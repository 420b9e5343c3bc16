"""The order in which a tensor's axes lie in memory, where that is not their own.

Images with their channels last and transposed matrices are taken, and given, as they
lie: what would be a copy at each call is a Transpose in the graph, which mostly meets
another.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

Order = tuple[int, ...]  # of axes, the one that is farthest apart first


def memory_order(fake: torch.Tensor) -> Order | None:
    """None where the axes lie in their own order, with gaps, or over each other.

    torch's symbols decide without a number that they had while tracing.
    """
    if is_dense(fake, range(fake.dim())):
        return None
    return next((x for x in candidates(fake.dim()) if is_dense(fake, x)), None)


def candidates(rank: int) -> list[Order]:
    """Channels last, then the last two axes turned."""
    found: list[Order] = []
    if rank in (4, 5):
        found.append((0, *range(2, rank), 1))
    if rank >= 2:
        found.append((*range(rank - 2), rank - 1, rank - 2))
    return found


def is_dense(fake: torch.Tensor, order: Sequence[int]) -> bool:
    wanted: int | torch.SymInt = 1
    for axis in reversed(order):
        single = statically_known_true(fake.shape[axis] == 1)
        if not single and not statically_known_true(fake.stride()[axis] == wanted):
            return False
        wanted = wanted * fake.shape[axis]
    return True


def inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def as_it_lies(tensor: torch.Tensor, order: Order | None) -> torch.Tensor:
    """A view with the axes as they lie; any strides are right, if these are not."""
    fits = order is not None and tensor.dim() == len(order)
    return tensor.permute(order) if fits else tensor


def as_counted(tensor: torch.Tensor, order: Order | None) -> torch.Tensor:
    """A view with the axes as torch counts them."""
    return tensor if order is None else tensor.permute(inverse(order))
