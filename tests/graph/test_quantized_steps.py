"""Every step of quantized image networks, against exact arithmetic.

Exact: between two quantizations all is computed in float64, from the steps that the
program itself gave before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache
from tests.graph.quantized_networks import Network, both_forms
from tests.linalg.bounds import sample

Arrays = dict[str, np.ndarray]
CLASSES, SHAPE = 1000, (1, 3, 33, 33)
FIELDS = ("wrong", "count")
UNSURE = 1e-4  # of a step: how near to a tie sums of 32-bit floats may decide


def conv(net: Network, x: str, seed: int, *shape: int, **attributes: int) -> str:
    """Weights and bias seeded; padding keeps the size."""
    w = sample(seed, shape, "float32") / np.float32(np.prod(shape[1:]) ** 0.5)
    bias = sample(seed + 1, shape[:1], "float32") / np.float32(8)
    stride = attributes.get("stride", 1)
    return net.add(
        "Conv",
        net.quantized(x),
        filters(net, w),
        net.constant(bias),
        pads=[shape[2] // 2] * 4,
        strides=[stride] * 2,
    )


def filters(net: Network, w: np.ndarray) -> str:
    """In the quantized form int8 with one scale, as ONNX Runtime's tool stores them."""
    if net.ranges is None:
        return net.constant(w)
    step = np.asarray(abs(w).max() / 127, np.float32)
    stored = net.constant(np.rint(w / step).astype(np.int8))
    zero = net.constant(np.asarray(0, np.int8))
    return net.add("DequantizeLinear", stored, net.constant(step), zero)


def squeezing(net: Network) -> str:
    """As SqueezeNet: squeezed, expanded in two ways, and classified."""
    x = net.add("Relu", conv(net, "x", 11, 8, 3, 3, 3, stride=2))
    x = net.add("MaxPool", net.quantized(x), kernel_shape=[3, 3], strides=[2, 2])
    x = net.add("Relu", conv(net, x, 13, 4, 8, 1, 1))
    one = net.add("Relu", conv(net, x, 15, 8, 4, 1, 1))
    other = net.add("Relu", conv(net, x, 17, 8, 4, 3, 3))
    x = net.add("Concat", net.quantized(one), net.quantized(other), axis=1)
    x = conv(net, x, 19, CLASSES, 16, 1, 1)
    x = net.add("GlobalAveragePool", net.quantized(x))
    x = net.add("Flatten", net.quantized(x))
    return net.quantized(net.add("Softmax", net.quantized(x), axis=1))


def looking_once(net: Network) -> str:
    """As YOLO: x * sigmoid(x), leaks, a sum of two branches, and scores."""
    x = net.quantized(conv(net, "x", 21, 8, 3, 3, 3, stride=2))
    x = net.add("Mul", x, net.quantized(net.add("Sigmoid", x)))
    x = net.add("LeakyRelu", conv(net, x, 23, 8, 8, 1, 1), alpha=0.125)
    one, other = conv(net, x, 25, 12, 8, 1, 1), conv(net, x, 27, 12, 8, 3, 3)
    x = net.add("Add", net.quantized(one), net.quantized(other))
    x = net.quantized(conv(net, x, 29, 9, 12, 1, 1))
    return net.quantized(net.add("Sigmoid", x))


@dataclass(frozen=True)
class Steps:
    """How many results of an operator were quantized, and how many to another step."""

    count: int
    wrong: int


def with_steps(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the result of every QuantizeLinear that it computes as output."""
    held = {t.name for t in proto.graph.initializer}
    found = onnx.ModelProto()
    found.CopyFrom(proto)
    del found.graph.output[:]
    for node in proto.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] not in held:
            output = helper.make_tensor_value_info(node.output[0], 2, None)
            found.graph.output.append(output)
    return found


def compared(proto: onnx.ModelProto, x: np.ndarray, made: Arrays) -> dict[str, Steps]:
    """Steps by the operator whose results they are."""
    known = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    known["x"] = x
    known = {n: a.astype(np.float64) for n, a in known.items()}
    producer = {node.output[0]: node.op_type for node in proto.graph.node}
    found: dict[str, Steps] = {}
    for node in proto.graph.node:
        given = [known[name] for name in node.input]
        out = node.output[0]
        if node.op_type == "DequantizeLinear":
            known[out] = (given[0] - given[2]) * given[1]
            continue
        if node.op_type != "QuantizeLinear":
            known[out] = in_float64(node, given)
            continue
        exact = given[0] / given[1]
        steps = np.clip(np.rint(exact) + given[2], 0, 255)
        known[out] = made.get(out, steps).astype(np.float64)
        sure = abs(abs(exact - np.floor(exact)) - 0.5) > UNSURE
        kind = producer.get(node.input[0], "input")
        before = found.get(kind, Steps(0, 0))
        wrong = int(((known[out] != steps) & sure).sum())
        found[kind] = Steps(before.count + steps.size, before.wrong + wrong)
    return found


def in_float64(node: onnx.NodeProto, given: list[np.ndarray]) -> np.ndarray:
    inputs = [helper.make_tensor_value_info(n, 11, None) for n in node.input]
    outputs = [helper.make_tensor_value_info(node.output[0], 11, None)]
    graph = helper.make_graph([node], "one", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    feeds = dict(zip(node.input, given, strict=True))
    return np.asarray(ReferenceEvaluator(model).run(None, feeds)[0])


def runtime(proto: onnx.ModelProto, x: np.ndarray, *, optimized: bool) -> Arrays:
    options = onnxruntime.SessionOptions()
    if not optimized:
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    names = [output.name for output in proto.graph.output]
    return dict(zip(names, session.run(names, {"x": x}), strict=True))


def squeezed() -> onnx.ModelProto:
    return both_forms(squeezing, SHAPE)[1]


def looked_at_once() -> onnx.ModelProto:
    return both_forms(looking_once, SHAPE)[1]


def classified() -> onnx.ModelProto:
    """The end of a classifier: scores far enough apart, probabilities from 0 to 1."""
    net = Network({"0": (-8.0, 8.0), "1": (0.0, 1.0)})
    x = net.add("Mul", "x", net.constant(np.asarray(3, np.float32)))
    made = net.add("Softmax", net.quantized(x), axis=1)
    return net.model((64, 100), [net.quantized(made)])


MODELS = [(squeezed, SHAPE), (looked_at_once, SHAPE), (classified, (64, 100))]


@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_every_step_is_the_nearest(
    model: Callable[[], onnx.ModelProto], shape: tuple[int, ...], tmp_path: Path
) -> None:
    proto, x = with_steps(model()), sample(31, shape, "float32")
    made = nanoloom.compile(proto, threads=2, cache=Cache(tmp_path))({"x": x})
    found = compared(proto, x, made)
    assert sum(steps.count for steps in found.values()) > 5000
    assert all(steps.wrong == 0 for steps in found.values()), found
    plain = runtime(proto, x, optimized=False)
    assert all(steps.wrong == 0 for steps in compared(proto, x, plain).values())
    shifted = compared(proto, x, {name: array ^ 1 for name, array in made.items()})
    wrong, count = (sum(getattr(s, k) for s in shifted.values()) for k in FIELDS)
    assert wrong > 0.8 * count


@pytest.mark.parametrize(
    ("model", "shape", "operators"),
    [(*MODELS[0], {"Conv", "Relu"}), (*MODELS[1], {"Conv"}),
     (*MODELS[2], {"Softmax"})],
)  # fmt: skip
def test_where_onnx_runtime_differs(
    model: Callable[[], onnx.ModelProto], shape: tuple[int, ...], operators: set[str]
) -> None:
    """What its optimizer makes of the same model is not: docs/numbers.md says why.

    On CPUs without VNNI its sums saturate, and more steps behind them are wrong.
    """
    proto, x = with_steps(model()), sample(31, shape, "float32")
    found = compared(proto, x, runtime(proto, x, optimized=True))
    assert {operator for operator, steps in found.items() if steps.wrong} >= operators
