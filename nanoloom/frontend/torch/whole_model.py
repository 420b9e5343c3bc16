"""The second way in: torch's own exporter makes the ONNX model, in memory."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    InputKind,
    OutputKind,
)

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.exported import CHANGES
from nanoloom.frontend.torch.functional import decomposed
from nanoloom.frontend.torch.given import INSTALL
from nanoloom.frontend.torch.imported import Imported
from nanoloom.frontend.torch.size_conditions import note_conditions


def import_whole(
    exported: ExportedProgram, names: Mapping[str, str] | None = None
) -> Imported:
    """Raises Unsupported for what torch's exporter refuses, or leaves out."""
    del names
    made = decomposed(exported)
    signature = made.graph_signature
    if any(spec.kind in CHANGES for spec in signature.output_specs):
        raise Unsupported(
            "changes tensors in place, which torch's exporter to ONNX leaves out",
            where="module",
            hint='compile it without via="onnx"',
        )
    model = exported_model(exported)
    user = [s for s in signature.input_specs if s.kind == InputKind.USER_INPUT]
    places = {s.arg.name: i for i, s in enumerate(user)}
    imported = Imported(model)
    for value in model.graph.inputs:
        imported.inputs[str(value.name)] = places[str(value.name)]
    (node,) = (n for n in made.graph.nodes if n.op == "output")
    results = iter(model.graph.outputs)
    for given, spec in zip(node.args[0], signature.output_specs, strict=True):
        if spec.kind == OutputKind.USER_OUTPUT:
            imported.results.append(result(given, results))
            if isinstance(given, fx.Node) and not is_tensor(given):
                imported.numbers.add(imported.results[-1][1])
    note_conditions(exported, imported)
    return imported


def result(given: Any, results: Any) -> tuple[str, Any]:
    if not isinstance(given, fx.Node):
        return "constant", given
    return "output", str(next(results).name)


def is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta["val"], torch.Tensor)


def exported_model(exported: ExportedProgram) -> Any:
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return torch.onnx.export(exported, dynamo=True, verbose=False).model
    except ImportError:
        reason = "torch's exporter to ONNX needs onnxscript, which is not installed"
        raise Unsupported(reason, hint=INSTALL) from None
    except Exception as error:
        told = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        reason = f"torch's exporter to ONNX does not take it: {told}"
        raise Unsupported(reason, where="module") from error
    finally:
        logger.setLevel(level)
