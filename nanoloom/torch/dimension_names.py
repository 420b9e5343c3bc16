"""The names that users give dimensions, by the symbols that torch has for them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from nanoloom.frontend.torch.sizes import expression


def symbol_names(
    exported: ExportedProgram, module: Any, args: Any, kwargs: Any, shapes: Any
) -> dict[str, str]:
    """Names of `Dim`s in dynamic_shapes; what torch named itself has none."""
    if not shapes:
        return {}
    bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    if isinstance(shapes, Mapping):
        pairs = [(value, shapes.get(name)) for name, value in bound.items()]
    else:
        pairs = list(zip(bound.values(), shapes, strict=False))
    said = [spec for value, given in pairs for spec in by_leaf(value, given)]
    wanted = exported.graph_signature.user_inputs
    nodes = {n.name: n for n in exported.graph.nodes if n.op == "placeholder"}
    found: dict[str, str] = {}
    for name, spec in zip(wanted, said, strict=False):
        fake: Any = nodes[name].meta.get("val") if isinstance(name, str) else None
        if not isinstance(fake, torch.Tensor):
            continue
        for axis, dim in axes_of(spec).items():
            called, size = getattr(dim, "__name__", None), fake.shape[axis]
            if isinstance(called, str) and isinstance(size, torch.SymInt):
                expr = expression(size)
                if expr.is_Symbol and called.isidentifier():
                    found.setdefault(expr.name, called)
    return found


def by_leaf(value: Any, spec: Any) -> list[Any]:
    """What is said of each leaf of an argument."""
    if isinstance(value, list | tuple) and isinstance(spec, list | tuple):
        pairs = zip(value, spec, strict=False)
        return [each for v, s in pairs for each in by_leaf(v, s)]
    if isinstance(value, Mapping) and isinstance(spec, Mapping):
        return [each for k, v in value.items() for each in by_leaf(v, spec.get(k))]
    leaves = pytree.tree_leaves(value)
    return [spec] if len(leaves) == 1 else [None] * len(leaves)


def axes_of(spec: Any) -> Mapping[int, Any]:
    if isinstance(spec, Mapping):
        return spec
    return dict(enumerate(spec)) if isinstance(spec, list | tuple) else {}
