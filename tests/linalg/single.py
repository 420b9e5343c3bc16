"""A model of one node, run through graph and linalg only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.linalg.harness import evaluate

Arrays = Sequence[np.ndarray | None]


def model_of(
    op: str,
    inputs: Arrays,
    attributes: dict[str, Any],
    *,
    constants: Sequence[int] = (),
    outputs: int = 1,
    version: int = 22,
    domain: str = "",
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model and its feeds; inputs numbered in `constants` are initializers."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    made = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, made, name="tested", domain=domain, **attributes)
    feeds = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    held = {f"x{i}": feeds.pop(f"x{i}") for i in constants}
    graph = helper.make_graph(
        [node],
        "single",
        [
            helper.make_tensor_value_info(
                n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
            )
            for n, x in feeds.items()
        ],
        [onnx.ValueInfoProto(name=n) for n in made],
        [onnx.numpy_helper.from_array(x, n) for n, x in held.items()],
    )
    opsets = [helper.make_opsetid("", version)]
    if domain:
        opsets.append(helper.make_opsetid(domain, version))
    return helper.make_model(graph, opset_imports=opsets), feeds


def run_node(
    op: str,
    inputs: Arrays,
    /,
    *,
    constants: Sequence[int] = (),
    outputs: int = 1,
    version: int = 22,
    domain: str = "",
    **attributes: Any,
) -> list[np.ndarray]:
    """What nanoloom makes of one node; attributes that are None are left out."""
    given = {k: v for k, v in attributes.items() if v is not None}
    model, feeds = model_of(
        op,
        inputs,
        given,
        constants=constants,
        outputs=outputs,
        version=version,
        domain=domain,
    )
    return evaluate(model, feeds)
