"""Inputs and outputs of a module's program, with axes and numbers as torch has them.

The model may have them as they lie in memory: channels last, complex numbers in two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from nanoloom.errors import InputError
from nanoloom.frontend.torch.imported import Imported
from nanoloom.frontend.torch.memory_order import inverse
from nanoloom.interface.check_inputs import signature
from nanoloom.interface.interface import Interface


def counted(side: Interface, imported: Imported) -> Interface:
    shape, dtype = side.shape, side.dtype
    order = imported.orders.get(side.name)
    if order is not None:
        shape = tuple([shape[axis] for axis in inverse(order)])
    if side.name in imported.pairs:
        shape, dtype = shape[:-1], np.result_type(dtype, np.complex64)
    return replace(side, shape=shape, dtype=dtype)


def require_shapes(
    sides: tuple[Interface, ...], imported: Imported, given: Mapping[str, torch.Tensor]
) -> None:
    """Raise InputError for a tensor that the program would say lies otherwise than it
    is counted."""
    for side in sides:
        if side.name not in given or not has_other(side.name, imported):
            continue
        tensor, wanted = given[side.name], counted(side, imported)
        if tensor.is_complex() != (side.name in imported.pairs):
            continue  # `Imported.given` says so
        fits = tensor.dim() == len(wanted.shape) and all(
            not isinstance(want, int) or want == size
            for want, size in zip(wanted.shape, tensor.shape, strict=False)
        )
        if not fits:
            kind = str(tensor.dtype).removeprefix("torch.")
            shape = "x".join(map(str, tensor.shape)) or "scalar"
            want = signature(wanted.dtype, wanted.shape)
            raise InputError(
                f"is {kind} {shape}, the model wants {want}",
                where=f"input {side.name}",
                hint="reshape it, or compile with dynamic_shapes for open sizes",
            )


def has_other(name: str, imported: Imported) -> bool:
    return name in imported.orders or name in imported.pairs
