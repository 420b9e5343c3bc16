"""A model of one operator of ONNX Runtime's own, run by both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from nanoloom.frontend.onnx import load
from tests.linalg.bounds import within
from tests.linalg.harness import evaluate

Array = np.ndarray
Arrays = Sequence[Array | None]
DOMAIN = "com.microsoft"


def model_of(
    op: str,
    inputs: Arrays,
    attributes: Mapping[str, Any],
    *,
    outputs: Sequence[bool] = (True,),
    constants: Sequence[int] = (),
    opset: int = 18,
    domain: str = DOMAIN,
    named: Sequence[int] = (),
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The model and its feeds.

    outputs: which are given.  constants: inputs that are weights.  named: inputs whose
    dimensions are names in the model.
    """
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    made = [f"y{i}" if wanted else "" for i, wanted in enumerate(outputs)]
    given = {k: v for k, v in attributes.items() if v is not None}
    node = helper.make_node(op, names, made, name="tested", domain=domain, **given)
    feeds = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    held = {f"x{i}": feeds.pop(f"x{i}") for i in constants if inputs[i] is not None}
    graph = helper.make_graph(
        [node],
        "single",
        [declared(n, x, int(n[1:]) in named) for n, x in feeds.items()],
        [onnx.ValueInfoProto(name=name) for name in made if name],
        [numpy_helper.from_array(x, name) for name, x in held.items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9), feeds


def declared(name: str, x: Array, is_named: bool) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    shape = [f"{name}_{axis}" for axis in range(x.ndim)] if is_named else x.shape
    return helper.make_tensor_value_info(name, kind, shape)


def by_runtime(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """What ONNX Runtime makes of a model as it stands."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [np.asarray(x) for x in session.run(None, dict(feeds))]


def both(
    op: str, inputs: Arrays, /, *, outputs: Sequence[bool] = (True,),
    constants: Sequence[int] = (), opset: int = 18, domain: str = DOMAIN,
    **attributes: Any,
) -> tuple[list[Array], list[Array]]:  # fmt: skip
    """The outputs of nanoloom and of ONNX Runtime."""
    model, feeds = model_of(
        op, inputs, attributes, outputs=outputs, constants=constants, opset=opset,
        domain=domain,
    )  # fmt: skip
    return of(model, feeds)


def of(
    model: onnx.ModelProto, feeds: Mapping[str, Array]
) -> tuple[list[Array], list[Array]]:
    """The outputs of a model, of nanoloom and of ONNX Runtime."""
    return evaluate(load(model), feeds), by_runtime(model, feeds)


def run(op: str, inputs: Arrays, /, **options: Any) -> list[Array]:
    """The outputs of nanoloom alone."""
    known = {"outputs", "constants", "opset", "domain"}
    attributes = {k: v for k, v in options.items() if k not in known}
    chosen = {k: v for k, v in options.items() if k in known}
    model, feeds = model_of(op, inputs, attributes, **chosen)
    return evaluate(load(model), feeds)


def floats(random: np.random.Generator, *shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


def check(
    found: tuple[Array, Array], exact: Array, steps: float, size: Array | float
) -> None:
    """Both are within rounding errors of the exact result; a wrong one is not."""
    ours, theirs = found
    assert ours.dtype == theirs.dtype
    assert within(theirs, exact, steps, size)  # it is what the operator means
    assert within(ours, exact, steps, size)
    assert not within(ours + 1, exact, steps, size)


def check_rounded(found: Array, quotient: Array, zero: int, steps: float = 0) -> None:
    """Integers nearest to exact quotients, saturated; at ties either neighbour.

    steps: roundings of what was divided, each 2^-24 of it.
    """
    limits = np.iinfo(found.dtype)
    slack = 0.5 + (steps + 4) * 2.0**-24 * (abs(quotient) + abs(zero) + 1)
    low = np.clip(np.ceil(quotient + zero - slack), limits.min, limits.max)
    high = np.clip(np.floor(quotient + zero + slack), limits.min, limits.max)
    assert ((low <= found) & (found <= high)).all()
    assert not ((low <= found + 2.0) & (found + 2.0 <= high)).all()
