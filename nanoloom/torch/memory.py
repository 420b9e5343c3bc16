"""Tensors that a program changes in place lie beside all its other ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from nanoloom.errors import InputError
from nanoloom.frontend.torch.call import arguments, is_mutation, keeps_statistics
from nanoloom.frontend.torch.decomposed import storage

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
    """SharedMemory for an input that shares memory with one that is changed, and for
    one that is changed and has several elements in one place."""
    spans = {name: span(tensor) for name, tensor in given.items()}
    for name, tensor in changed.items():
        if any(
            n > 1 and s == 0 for n, s in zip(tensor.shape, tensor.stride(), strict=True)
        ):
            raise SharedMemory(
                "has several elements in one place, and is changed in place",
                where=f"input {name}",
                hint="give it as a clone()",
            )
        first, end = spans[name]
        for other, (start, stop) in spans.items():
            if other != name and first < stop and start < end:
                raise SharedMemory(
                    f"shares memory with {other}, and is changed in place",
                    where=f"input {name}",
                    hint="give one of them as a clone()",
                )


def shared_as_traced(traced: fx.GraphModule) -> SharedMemory | None:
    """What to say where an input that the graph changes shared bytes with another.

    AOTAutograd would make one input of both, of which their places are constants.
    """
    holders = [n for n in traced.graph.nodes if n.op == "placeholder"]
    changed = {storage(n) for node in traced.graph.nodes for n in written(node)}
    held: dict[Any, list[fx.Node]] = {}
    for node in holders:
        if (found := storage(node)) in changed and found is not None:
            held.setdefault(found, []).append(node)
    for nodes in held.values():
        spans = sorted((*span_as_traced(n.meta["val"]), n.name) for n in nodes)
        for (_, end, name), (first, _, other) in pairwise(spans):
            if first < end:
                return SharedMemory(
                    f"shares memory with {other}, and one of them is changed in place",
                    where=f"input {name}",
                    hint="give one of them as a clone()",
                )
    return None


def written(node: fx.Node) -> list[fx.Node]:
    """The tensors that a node changes."""
    if not is_mutation(node):
        return []
    if keeps_statistics(node):
        return [arguments(node)[name] for name in ("running_mean", "running_var")]
    target: Any = node.target
    said = zip(target._schema.arguments, node.args, strict=False)
    given = [x for about, x in said if about.alias_info and about.alias_info.is_write]
    return [x for x in pytree.tree_leaves(given) if isinstance(x, fx.Node)]


def span_as_traced(fake: torch.Tensor) -> Span:
    """Elements of its storage, for the sizes that it had."""
    sizes, strides = ([hint(n) for n in each] for each in (fake.shape, fake.stride()))
    first = hint(fake.storage_offset())
    if 0 in sizes:
        return first, first
    last = sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    return first, first + last + 1


def hint(size: int | torch.SymInt) -> int:
    return size if isinstance(size, int) else int(size.node.hint or 1)
