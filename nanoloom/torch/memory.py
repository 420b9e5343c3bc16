"""Tensors that a program changes in place lie beside all its other ones."""

from __future__ import annotations

from collections.abc import Mapping

import torch  # pyright: ignore[reportMissingImports]

from nanoloom.errors import InputError


def span(tensor: torch.Tensor) -> tuple[int, int]:
    """The first byte of a tensor and the one behind its last."""
    if not tensor.numel():
        return (0, 0)
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((n - 1) * s for n, s in pairs)
    start = tensor.data_ptr()
    return start, start + (last + 1) * tensor.element_size()


def require_apart(
    changed: Mapping[str, torch.Tensor], given: Mapping[str, torch.Tensor]
) -> None:
    """InputError for an input that shares memory with one that is changed."""
    spans = {name: span(tensor) for name, tensor in given.items()}
    for name in changed:
        first, end = spans[name]
        for other, (start, stop) in spans.items():
            if other != name and first < stop and start < end:
                raise InputError(
                    f"shares memory with {other}, and is changed in place",
                    where=f"input {name}",
                    hint="give one of them as a clone()",
                )
