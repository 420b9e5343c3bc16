"""Weights that a module gives away: its memory goes, and a file has them.

The file has no name, and goes with the program.  The system reads of it what variants
are made of, and takes that memory back when it needs it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from math import prod
from typing import IO

import numpy as np
import onnx_ir as ir
import torch
from torch.export import ExportedProgram
from torch.utils.weak import WeakIdKeyDictionary

from nanoloom.errors import InputError
from nanoloom.frontend.torch.exported import held
from nanoloom.frontend.torch.imported import Imported

LEAST = 4096  # bytes: smaller ones stay where they are
LINE = 64
_given_away = WeakIdKeyDictionary()  # a set of tensors


def release(imported: Imported, exported: ExportedProgram) -> None:
    """Move weights of the model to a file, and leave the module empty ones.

    What the module changes itself stays: it is no weight.
    """
    with tempfile.TemporaryFile(prefix="nanoloom-weights-") as file:
        for value in imported.model.graph.initializers.values():
            given = value.const_value
            if given is not None and given.nbytes >= LEAST:
                value.const_value = moved(given, file)
    for name in [*exported.state_dict, *exported.constants]:
        tensor = held(exported, name)
        if not isinstance(tensor, torch.Tensor) or name in imported.mutated:
            continue
        if tensor.numel() * tensor.element_size() >= LEAST:
            tensor.data = torch.empty(0, dtype=tensor.dtype)
            _given_away[tensor] = True


def require_held(tensors: Mapping[str, torch.Tensor]) -> None:
    """Raise InputError for a weight that another program of its module has taken."""
    for name, tensor in tensors.items():
        if tensor in _given_away and not tensor.numel():
            raise InputError(
                "is empty: a program compiled with release_weights=True has it",
                where=f"weight {name}",
                hint="call that program, or make the module again",
            )


def moved(given: ir.TensorProtocol, file: IO[bytes]) -> ir.Tensor:
    array = given.numpy()
    begin = file.seek(0, 2)
    begin = file.seek(begin + -begin % LINE)
    file.write(np.ascontiguousarray(array).view(np.uint8).data)
    file.flush()
    count = prod(array.shape) * array.dtype.itemsize
    lies = np.memmap(file, np.uint8, "r", offset=begin, shape=(count,))
    return ir.Tensor(
        lies.view(array.dtype).reshape(array.shape), dtype=given.dtype, name=given.name
    )
