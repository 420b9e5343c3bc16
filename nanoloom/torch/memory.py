"""Tensors that a program changes in place lie beside all its other ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from nanoloom.errors import InputError

Span = tuple[int, int]  # the first byte, and the one behind the last


class SharedMemory(InputError):
    """An input that is changed in place lies in another's memory: torch can do it."""


def span(tensor: torch.Tensor) -> Span:
    if not tensor.numel():
        return (0, 0)
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((n - 1) * s for n, s in pairs)
    start = tensor.data_ptr()
    return start, start + (last + 1) * tensor.element_size()


def overlap(changed: Iterable[Span], read: Iterable[Span]) -> bool:
    """Whether one that is changed shares bytes with any other."""
    spans = sorted([(*s, True) for s in changed] + [(*s, False) for s in read])
    end_of_changed = end_of_all = 0
    for first, end, is_changed in spans:
        if first < (end_of_all if is_changed else end_of_changed) and first < end:
            return True
        end_of_all = max(end_of_all, end)
        if is_changed:
            end_of_changed = max(end_of_changed, end)
    return False


def require_apart(
    changed: Mapping[str, torch.Tensor], given: Mapping[str, torch.Tensor]
) -> None:
    """SharedMemory for an input that shares memory with one that is changed."""
    spans = {name: span(tensor) for name, tensor in given.items()}
    for name in changed:
        first, end = spans[name]
        for other, (start, stop) in spans.items():
            if other != name and first < stop and start < end:
                raise SharedMemory(
                    f"shares memory with {other}, and is changed in place",
                    where=f"input {name}",
                    hint="give one of them as a clone()",
                )
