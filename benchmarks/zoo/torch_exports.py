"""Files that a module of PyTorch becomes, by each way there is."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.zoo.entry import Array, Exported

Inputs = Mapping[str, torch.Tensor]
Build = Callable[[], tuple[torch.nn.Module, Inputs]]
OPSET = 18


def outputs_of(made: Any) -> list[Array]:
    """Every tensor of what a module gives, in order."""
    if isinstance(made, torch.Tensor):
        return [made.detach().numpy()]
    if isinstance(made, Mapping):
        made = list(made.values())
    if isinstance(made, Sequence):
        return [array for part in made for array in outputs_of(part)]
    return []


class ByName(torch.nn.Module):
    """A module whose inputs have an order; of the outputs, tensors in a tuple."""

    def __init__(self, inner: torch.nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.inner, self.names = inner, list(names)

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = dict(zip(self.names, tensors, strict=True))
        made = self.inner(**given) if self.names[0] != "_" else self.inner(*tensors)
        if isinstance(made, torch.Tensor):
            return made
        values = made.values() if isinstance(made, Mapping) else made
        kept = [x for x in values if isinstance(x, torch.Tensor)]
        return tuple(kept[:2]) if len(kept) > 1 else kept[0]


def exported(build: Build, way: str, folder: Path) -> Exported:
    """way: dynamo, script or export; `-dynamic` behind it: a batch of any size."""
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    module, inputs = build()
    module = ByName(module.eval(), list(inputs)).eval()
    tensors = tuple(inputs.values())
    wanted = outputs_of(module(*tensors))
    names = [name if name != "_" else "x" for name in inputs]
    exporter, _, dynamic = way.partition("-")
    path = folder / ("model.pt2" if exporter == "export" else "model.onnx")
    WAYS[exporter](module, tensors, names, bool(dynamic), path)
    feeds = dict(zip(names, (x.numpy() for x in tensors), strict=True))
    if exporter == "export":
        feeds = {f"tensors_{i}": x for i, x in enumerate(feeds.values())}
    return Exported(path, feeds, wanted, module, tensors)


def by_dynamo(
    module: torch.nn.Module, tensors: Any, names: Any, dynamic: bool, path: Path
) -> None:
    shapes = None
    if dynamic:
        batch = torch.export.Dim("batch", min=1)
        shapes = (tuple({0: batch} for _ in tensors),)
    torch.onnx.export(
        module, tensors, str(path), dynamo=True, input_names=names,
        dynamic_shapes=shapes, opset_version=OPSET, verbose=False,
        external_data=False,
    )  # fmt: skip


def by_script(
    module: torch.nn.Module, tensors: Any, names: Any, dynamic: bool, path: Path
) -> None:
    """What it has no operators for is written by its successor, as people do."""
    axes = {name: {0: "batch"} for name in names} if dynamic else None
    try:
        torch.onnx.export(
            module, tensors, str(path), dynamo=False, input_names=names,
            dynamic_axes=axes, opset_version=OPSET,
        )  # fmt: skip
    except torch.onnx.errors.UnsupportedOperatorError:
        by_dynamo(module, tensors, names, dynamic, path)


def by_export(
    module: torch.nn.Module, tensors: Any, names: Any, dynamic: bool, path: Path
) -> None:
    shapes = None
    if dynamic:
        batch = torch.export.Dim("batch", min=1)
        shapes = {"tensors": tuple({0: batch} for _ in tensors)}
    torch.export.save(torch.export.export(module, tensors, dynamic_shapes=shapes), path)


WAYS = {"dynamo": by_dynamo, "script": by_script, "export": by_export}


def integers(high: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, high, shape))


def floats(*shape: int) -> torch.Tensor:
    made = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return torch.from_numpy(made)
