"""A module or an exported program of torch, compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import torch
from torch.export import ExportedProgram

from nanoloom.api.program import Program
from nanoloom.errors import InputError, Unsupported
from nanoloom.frontend.torch.exported import import_exported
from nanoloom.frontend.torch.imported import Imported, InPlace
from nanoloom.frontend.torch.whole_model import import_whole
from nanoloom.torch.dimension_names import symbol_names
from nanoloom.torch.open_recurrences import open_recurrences
from nanoloom.torch.released_weights import release, require_held
from nanoloom.torch.torch_program import TorchProgram

WAYS = {"graph": import_exported, "onnx": import_whole}


def compile_module(
    model: Any,
    example_inputs: Any,
    dynamic_shapes: Any,
    via: str,
    build: Callable[[object, InPlace], Program],
    *,
    release_weights: bool = False,
) -> TorchProgram:
    """build: the program of an ONNX model, and of what of it lies in its inputs.

    release_weights: as `release` does.
    Raises Unsupported for what torch cannot export, or nanoloom cannot import.
    """
    if via not in WAYS:
        raise InputError(f"via is {via!r}", hint="give 'graph' or 'onnx'")
    names: Mapping[str, str] = {}
    if isinstance(model, ExportedProgram):
        exported = model
    else:
        args, kwargs = arguments(example_inputs)
        require_held({**dict(model.named_parameters()), **dict(model.named_buffers())})
        require_axes(model, args, kwargs, dynamic_shapes)
        exported = export(model, args, kwargs, dynamic_shapes)
        names = symbol_names(exported, model, args, kwargs, dynamic_shapes)

    def made() -> tuple[Program, Imported]:
        imported = WAYS[via](exported, names)
        if release_weights:
            release(imported, exported)
        return build(imported.model, imported.in_place), imported

    return TorchProgram(exported, made, released=release_weights)


def arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Example inputs: one tensor, a sequence of arguments, or arguments by name."""
    if example is None:
        raise InputError(
            "a module has no shapes of its own",
            where="model",
            hint="give example_inputs=(tensor, ...), and dynamic_shapes for open ones",
        )
    if isinstance(example, torch.Tensor):
        return (example,), {}
    if isinstance(example, Mapping):
        return (), dict(example)
    if isinstance(example, Sequence):
        return tuple(example), {}
    raise InputError(
        f"example_inputs are a {type(example).__name__}",
        hint="give a tuple of tensors, or a dict of them by the arguments' names",
    )


def require_axes(module: Any, args: Any, kwargs: Any, shapes: Any) -> None:
    """Raise InputError for a shape of a tensor with an axis that it has not."""
    try:
        given = signature(module.forward).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # torch.export says what is wrong
        return
    said = (
        shapes
        if isinstance(shapes, Mapping)
        else dict(zip(given, shapes or (), strict=False))
    )
    for name, axes in said.items():
        tensor: Any = given.get(name)
        if not isinstance(tensor, torch.Tensor) or not isinstance(axes, Mapping):
            continue
        for axis in axes:
            if isinstance(axis, int) and axis >= tensor.dim():
                raise InputError(
                    f"name axis {axis}, and the example has {tensor.dim()}",
                    where=f"dynamic_shapes of argument {name}",
                    hint="the first axis is 0",
                )


def export(module: Any, args: Any, kwargs: Any, shapes: Any) -> ExportedProgram:
    try:
        with torch.no_grad(), open_recurrences():
            return torch.export.export(module, args, kwargs, dynamic_shapes=shapes)
    except Exception as error:
        told, hint = told_of(error)
        raise Unsupported(
            f"torch.export does not take it: {told}",
            where=f"module {type(module).__name__}",
            hint=hint,
        ) from error


def told_of(error: Exception) -> tuple[str, str]:
    """What torch.export says, and the first of its list of reasons; a hint."""
    lines = [x.strip() for x in str(error).splitlines() if x.strip()]
    told = lines[0] if lines else type(error).__name__
    if "Constraints violated" not in told:
        return told, 'torch.compile(module, backend="nanoloom") takes parts of it'
    reasons = [x.removeprefix("- ") for x in lines if x.startswith("- ")]
    first = [x.partition(" If you're using")[0] for x in reasons[:1]]
    told = ": ".join([told.partition("!")[0], *first]).rstrip(".")
    if "specialized" in told:
        return told, "give it a fixed size, or compute without Python numbers of it"
    return told, "give its Dim other bounds, as min=4, or take Dim.AUTO"
