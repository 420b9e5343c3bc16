"""Other operators, as onnxscript's registry of torch's operators writes them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch
from torch import fx

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.element_types import ELEMENT_TYPES
from nanoloom.frontend.torch.given import INSTALL

if TYPE_CHECKING:
    from nanoloom.frontend.torch.graph import GraphImporter


# What it writes of these is not what torch computes: steps of integers.
WRONG = "aten::linspace", "aten::scatter_reduce", "aten::avg_pool"


@cache
def registry() -> Mapping[str, Any]:
    """onnxscript's functions by the names of torch's overloads."""
    try:
        from onnxscript.function_libs.torch_lib import (
            ops,  # noqa: F401 - fills the registry  # pyright: ignore[reportUnusedImport]
            registration,
        )
    except ImportError:
        reason = "is asked of onnxscript, which is not installed"
        raise Unsupported(reason, hint=INSTALL) from None
    found = registration.default_registry
    right = {n: f for n, f in found.items() if not n.startswith(WRONG)}
    return {name: f.overloads[0] for name, f in right.items() if f.overloads}


def from_torchlib(call: Call, importer: GraphImporter) -> Any:
    """The values of a node; None where the registry has not its operator."""
    target: Any = call.node.target
    if not isinstance(target, torch._ops.OpOverload):
        return None
    function = registry().get(target.name())
    if function is None:
        return None
    from onnxscript import evaluator

    from nanoloom.frontend.torch.recorder import Recorder

    recorder = Recorder(importer.writer)
    args = [argument(x, call) for x in call.node.args]
    kwargs = {name: argument(x, call) for name, x in call.node.kwargs.items()}
    kwargs = {n: -1 if n == "dtype" and x is None else x for n, x in kwargs.items()}
    logging.getLogger("onnxscript").setLevel(logging.ERROR)
    before = ir.set_value_magic_handler(recorder)
    try:
        with evaluator.default_as(recorder):
            made = function(*args, **kwargs)
    except Unsupported:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a function of others raises
        told = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise call.refuse(f"onnxscript does not write it: {told}") from None
    finally:
        ir.set_value_magic_handler(before)
    recorder.commit()
    return made


def argument(given: Any, call: Call) -> Any:
    if isinstance(given, fx.Node):
        return call.values[given]
    if isinstance(given, list | tuple):
        return [argument(x, call) for x in given]
    if isinstance(given, torch.dtype):
        return int(ELEMENT_TYPES.get(given, -1))
    if isinstance(given, torch.device | torch.memory_format | torch.layout):
        return str(given)
    return given
