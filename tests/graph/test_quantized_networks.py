"""Whole quantized networks: in integers from end to end, and right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache
from nanoloom.compiler import Report
from nanoloom.graph.quantization import DOMAIN
from tests.graph.models import optimized
from tests.graph.quantized_models import Product, arrays, exact, model
from tests.graph.quantized_networks import (
    Network,
    block,
    both_forms,
    masked_attention,
    mlp,
    tower,
)
from tests.linalg.bounds import sample

# Values near a tie may be rounded to another integer than the reference's.  Few are:
# what they change is far less than what all roundings together change.
SHARE = 0.25


def run(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    (got,) = nanoloom.compile(proto, threads=2)({"x": x}).values()
    return got


def reference(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    (made,) = list(ReferenceEvaluator(proto).run(None, {"x": x}))
    return np.asarray(made)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.sqrt(np.mean((one.astype(np.float64) - other) ** 2)))


def zero_of(given: Sequence[np.ndarray]) -> np.ndarray | int:
    return given[2] if len(given) > 2 else 0


IN_FLOAT64: dict[str, Callable[..., np.ndarray]] = {
    "QuantizeLinear": lambda *v: np.clip(np.rint(v[0] / v[1]) + zero_of(v), 0, 255),
    "DequantizeLinear": lambda *v: (v[0] - zero_of(v)) * v[1],
    "MatMul": np.matmul,
    "Add": np.add,
    "Relu": lambda v: np.maximum(v, 0),
}


def in_float64(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """The few operators of the MLP, every number in float64."""
    known = {
        t.name: numpy_helper.to_array(t).astype(np.float64)
        for t in proto.graph.initializer
    }
    known["x"] = x.astype(np.float64)
    for node in proto.graph.node:
        given = [known[name] for name in node.input]
        known[node.output[0]] = IN_FLOAT64[node.op_type](*given)
    return known[proto.graph.output[0].name]


def test_mlp_is_exact() -> None:
    """Three products with bias, Relu and quantization: bytes between them."""
    plain, quantized = both_forms(mlp, (5, 37))
    nodes = list(optimized(quantized))
    kinds = [n.domain or n.op_type for n in nodes]
    assert kinds == ["QuantizeLinear", DOMAIN, DOMAIN, DOMAIN, "DequantizeLinear"]
    x = sample(73, (5, 37), "float32")
    got, exact = run(quantized, x), in_float64(quantized, x)
    np.testing.assert_array_equal(got, exact.astype(np.float32))
    assert (got != reference(plain, x)).mean() > 0.9
    assert len(np.unique(got)) > 40


def test_alike_layers_are_one_kernel() -> None:
    """Quantize, all products, Dequantize: three kernels, whatever the ranges are.

    A product that is scaled in f32, and one with a sum that is late there (single.py),
    are others: which layers are depends on their ranges.
    """
    counts: list[int] = []
    for layers in (2, 8):
        _, quantized = both_forms(lambda net, n=layers: tower(net, n), (5, 37))
        report = Report()
        cache = Cache.temporary()
        program = nanoloom.compile(quantized, cache=cache, report=report)
        x = sample(73, (5, 37), "float32")
        (got,) = program({"x": x}).values()
        exact = in_float64(quantized, x).astype(np.float32)
        np.testing.assert_array_equal(got, exact)
        assert len(np.unique(got)) > 40
        counts.append(report.kernels)
    assert counts[0] == 3 and counts[1] <= 5


def test_transformer_block() -> None:
    """Products with weights in integers, those of two activations in floats."""
    plain, quantized = both_forms(block, (2, 7, 24))
    nodes = list(optimized(quantized))
    products = [n.domain for n in nodes if n.op_type == "MatMul"]
    assert sorted(products) == ["", "", *[DOMAIN] * 6]
    x = sample(74, (2, 7, 24), "float32")
    got, expected = run(quantized, x), reference(quantized, x)
    without = reference(plain, x)
    steps = distance(expected, without)
    assert distance(got, expected) <= SHARE * steps
    assert not distance(without, expected) <= SHARE * steps
    assert not distance(0 * got, expected) <= SHARE * steps
    assert steps < 0.05 * np.abs(without).max()


def test_attention_with_much_behind_its_scores() -> None:
    plain, quantized = both_forms(masked_attention, (2, 40, 16))
    x = sample(76, (2, 40, 16), "float32")
    got, expected = run(quantized, x), reference(quantized, x)
    steps = distance(expected, reference(plain, x))
    assert distance(got, expected) <= SHARE * steps
    assert not distance(0 * got, expected) <= SHARE * steps
    exact_enough = 1e-5 * float(abs(reference(plain, x)).max())
    assert distance(run(plain, x), reference(plain, x)) <= exact_enough


def test_both_forms_share_their_weights() -> None:
    plain, quantized = both_forms(lambda net: net.linear("x", 1, 9, 4), (3, 9))
    x = sample(75, (3, 9), "float32")
    scale = abs(reference(plain, x)).max()
    assert 0 < distance(reference(plain, x), reference(quantized, x)) < 0.02 * scale
    assert not Network().sites


BYTES = ("int8", "uint8")
COMPILED = [
    *(Product(a, w, True, bias="int32", out="int8") for a in BYTES for w in BYTES),
    Product(sizes=(1, 64, 33), bias="float"),
    Product(sizes=(2, 9, 130, 70), out="uint8", relu=True),
    Product("int8", "uint8", form="transB", sizes=(33, 64, 100), out="uint8"),
]


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_compiled_products_are_exact(case: Product) -> None:
    """The whole way, through the instructions of this machine."""
    t = arrays(case, seed=30)
    (got,) = nanoloom.compile(model(case, t), threads=2)({"a": t.a}).values()
    value, bound = exact(case, t)
    assert (abs(got.astype(np.float64) - value) <= bound).all()
    assert not (abs(0 * got.astype(np.float64) - value) <= bound).all()


def integer_product(left: str, right: str, shape: tuple[int, int, int]) -> Any:
    """MatMulInteger of activations and weights of extreme values, zero points given."""
    m, k, n = shape
    x, y = sample(31, (m, k), left, -128, 255), sample(32, (k, n), right, -128, 255)
    x[0], y[:, 0] = np.iinfo(left).max, np.iinfo(right).min
    p, q = sample(33, (), left, -9, 200), sample(34, (n,), right, -9, 200)
    names = ["x", "y", "p", "q"]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", names, ["z"])],
        "integers",
        [
            helper.make_tensor_value_info(
                n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape
            )
            for n, a in (("x", x), ("p", p))
        ],
        [helper.make_tensor_value_info("z", onnx.TensorProto.INT32, [m, n])],
        [numpy_helper.from_array(y, "y"), numpy_helper.from_array(q, "q")],
    )
    wide = (x.astype(np.int64) - p) @ (y.astype(np.int64) - q)
    opset = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opset), {"x": x, "p": p}, wide


@pytest.mark.drawn
@pytest.mark.parametrize("left", BYTES)
@pytest.mark.parametrize("right", BYTES)
@pytest.mark.parametrize("shape", [(5, 37, 19), (1, 400, 70)])
def test_compiled_integers(left: str, right: str, shape: tuple[int, int, int]) -> None:
    proto, feeds, wide = integer_product(left, right, shape)
    (got,) = nanoloom.compile(proto, threads=2)(feeds).values()
    np.testing.assert_array_equal(got, wide)
    assert (got != wide + 1).all()
