"""Products between DequantizeLinear and QuantizeLinear become integer products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from nanoloom.graph.integer_products import DEEPEST
from nanoloom.graph.quantization import DOMAIN
from tests.graph.models import constant, optimized
from tests.graph.quantized_models import Product, arrays, exact, model, node
from tests.linalg.harness import evaluate

BYTES = ("int8", "uint8")
CASES = [
    *(Product(a, w, each=e) for a in BYTES for w in BYTES for e in (False, True)),
    *(Product(a, w, True, out=y) for a in BYTES for w in BYTES for y in BYTES),
    *(
        Product(form=f, bias=c, out=y, each=True)
        for f in ("MatMul", "Gemm", "transB", "turned")
        for c in ("none", "float", "int32")
        for y in ("", "uint8")
    ),
    *(Product(zeros=False, bias="int32", out=y) for y in ("", "int8")),
    *(Product(bias="float", relu=True, out=y, form="Gemm") for y in BYTES),
    Product(sizes=(1, 64, 33), out="uint8"),
    Product(sizes=(2, 3, 37, 19), bias="int32", out="int8", right="uint8"),
    Product(sizes=(1, 4, 9, 1), bias="float", each=True),
]


def products(graph: ir.Graph) -> list[ir.Node]:
    return [n for n in graph if n.domain == DOMAIN]


def run(proto: onnx.ModelProto, a: np.ndarray) -> np.ndarray:
    return evaluate(proto, {"a": a})[0]


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_of_the_pattern_becomes_one_exact_product(case: Product) -> None:
    t = arrays(case)
    proto = model(case, t)
    (made,) = list(optimized(proto))
    assert (made.domain, made.op_type) == (DOMAIN, "MatMul")
    got, (value, bound) = run(proto, t.a), exact(case, t)
    assert got.shape == value.shape
    assert got.dtype == (np.dtype(case.out) if case.out else np.float32)
    assert (abs(got.astype(np.float64) - value) <= bound).all()
    assert not (abs(0 * got.astype(np.float64) - value) <= bound).all()
    changed = replace(t, w_zero=t.w_zero + t.w_zero.dtype.type(1))
    assert not (abs(got - exact(case, changed)[0].astype(np.float64)) <= bound).all()


@pytest.mark.parametrize("case", [c for c in CASES if c.out], ids=str)
def test_a_float32_evaluation_differs_by_one_step_at_most(case: Product) -> None:
    t = arrays(case, seed=20)
    proto = model(case, t)
    (made,) = list(ReferenceEvaluator(proto).run(None, {"a": t.a}))
    reference = np.asarray(made).astype(np.int64)
    got = run(proto, t.a).astype(np.int64)
    assert abs(got - reference).max() <= 1
    assert not abs(got + 2 - reference).max() <= 1


def test_saturates_on_both_sides() -> None:
    case = Product(out="int8")
    t = replace(arrays(case), y_scale=np.asarray(0.01, np.float32))
    got = run(model(case, t), t.a)
    np.testing.assert_array_equal(got, exact(case, t)[0])
    assert {-128, 127} <= set(np.unique(got).tolist())


def test_ties_round_to_even_before_the_zero_point() -> None:
    half = np.asarray(0.5, np.float32)
    one = np.asarray(1, np.float32)
    case = Product(right="int8", zeros=False, out="int8", sizes=(6, 1, 1))
    t = replace(
        arrays(case),
        a=np.arange(6, dtype=np.uint8).reshape(6, 1),
        w=np.ones((1, 1), np.int8),
        a_scale=half,
        w_scale=one,
        y_scale=one,
        y_zero=np.asarray(1, np.int8),
    )
    assert run(model(case, t), t.a).reshape(-1).tolist() == [1, 1, 2, 3, 3, 3]


def test_an_activation_stays_in_bytes_between_products() -> None:
    graph = optimized(
        """two (float[5,7] x, uint8[5,7] unused) => (float[5,3] y)
        <float s = {0.1}, uint8 z = {7}, float t = {0.2}, int8 o = {-3}, int8[7,7] v,
         int8[7,3] w> {
            q = QuantizeLinear (x, s, z)
            d = DequantizeLinear (q, s, z)
            vd = DequantizeLinear (v, s)
            p = MatMul (d, vd)
            r = QuantizeLinear (p, t, o)
            e = DequantizeLinear (r, t, o)
            wd = DequantizeLinear (w, s)
            y = MatMul (e, wd)
        }""".replace("int8[7,7] v", "int8[7,7] v = {" + "1," * 48 + "1}").replace(
            "int8[7,3] w", "int8[7,3] w = {" + "1," * 20 + "1}"
        )
    )
    first, second = products(graph)
    assert [n.op_type for n in graph] == ["QuantizeLinear", "MatMul", "MatMul"]
    assert second.inputs[0] is first.outputs[0]
    assert first.outputs[0].dtype == ir.DataType.INT8


def changed(case: Product, rewrite: Any) -> onnx.ModelProto:
    proto = model(case, arrays(case))
    rewrite(proto.graph)
    return proto


def alpha(graph: onnx.GraphProto) -> None:
    gemm = next(n for n in graph.node if n.op_type == "Gemm")
    gemm.attribute.append(onnx.helper.make_attribute("alpha", 0.5))


def by_depth(graph: onnx.GraphProto) -> None:
    """One weight scale for each row: no factor of the sum."""
    dequantize = next(n for n in graph.node if n.output[0] == "stored")
    dequantize.attribute[0].i = 0
    for held in graph.initializer:
        if held.name in ("w_scale", "w_zero"):
            column = numpy_helper.to_array(held)
            held.CopyFrom(numpy_helper.from_array(np.resize(column, 37), held.name))


def given_scale(graph: onnx.GraphProto) -> None:
    """The activation's scale is not known while compiling."""
    held = next(x for x in graph.initializer if x.name == "a_scale")
    graph.initializer.remove(held)
    graph.input.append(onnx.helper.make_tensor_value_info("a_scale", 1, []))


def given_weight(graph: onnx.GraphProto) -> None:
    """Two activations."""
    held = next(x for x in graph.initializer if x.name == "w")
    graph.initializer.remove(held)
    graph.input.append(onnx.helper.make_tensor_value_info("w", 3, [37, 19]))


@pytest.mark.parametrize(
    ("case", "rewrite"),
    [
        (Product(form="Gemm", out="int8"), alpha),
        (Product(each=True), by_depth),
        (Product(), given_scale),
        (Product(), given_weight),
        (Product(sizes=(1, DEEPEST + 1, 1)), lambda graph: None),
    ],
    ids=["alpha", "by depth", "scale", "weight", "depth"],
)
def test_other_products_stay_float(case: Product, rewrite: Any) -> None:
    graph = optimized(changed(case, rewrite))
    assert not products(graph)
    assert {"MatMul", "Gemm"} & {n.op_type for n in graph}


def test_sums_as_deep_as_they_may_be_do_not_wrap() -> None:
    case = Product(right="uint8", sizes=(1, DEEPEST, 1))
    t = arrays(case)
    most = np.uint8(255)
    t = replace(
        t, a=np.full_like(t.a, most), w=np.full_like(t.w, most),
        a_zero=np.uint8(0) * most, w_zero=np.uint8(0) * most,
    )  # fmt: skip
    got, (value, bound) = run(model(case, t), t.a), exact(case, t)
    assert (abs(got - value) <= bound).all() and (got > 0).all()


def test_a_product_that_is_read_twice_is_not_quantized_at_once() -> None:
    case = Product(out="int8")
    proto = model(case, arrays(case))
    proto.graph.node.append(node("Relu", ["p"], "also"))
    proto.graph.output.append(onnx.ValueInfoProto(name="also"))
    graph = optimized(proto)
    assert [n.op_type for n in graph] == ["MatMul", "QuantizeLinear", "Relu"]
    assert len(products(graph)) == 1


@pytest.mark.parametrize("version", [10, 13, 17, 19, 21, 23])
def test_weights_of_every_operator_set(version: int) -> None:
    case = Product(out="uint8", form="turned", each=version > 10)
    t = arrays(case)
    proto = model(case, t)
    proto.opset_import[0].version = version
    (made,) = list(optimized(proto))
    assert made.domain == DOMAIN
    np.testing.assert_array_equal(run(proto, t.a), exact(case, t)[0])


@pytest.mark.parametrize("version", [10, 13, 19])
def test_quantized_constants_are_known(version: int) -> None:
    graph = optimized(
        """held (float[3] x) => (float[3] y)
        <uint8[3] w = {1, 2, 9}, float s = {0.5}, uint8 z = {3}> {
            d = DequantizeLinear (w, s, z)
            y = Add (x, d)
        }""",
        opset=version,
    )
    assert [n.op_type for n in graph] == ["Add"]
    assert constant(graph, "d").tolist() == [-1, -0.5, 3]


def test_transposes_sink_through_quantization_of_the_whole_tensor() -> None:
    text = """turned (float[2,3,5] x) => (float[5,2,3] y)
        <float[1] s = {0.5}, float[5] t = {1, 2, 3, 4, 5}> {
            a = Transpose <perm = [2, 0, 1]> (x)
            b = QuantizeLinear (a, SCALE)
            y = DequantizeLinear (b, s)
        }"""
    kinds = [n.op_type for n in optimized(text.replace("SCALE", "s"))]
    assert kinds == ["QuantizeLinear", "DequantizeLinear", "Transpose"]
    kinds = [
        n.op_type for n in optimized(text.replace("(a, SCALE", "<axis = 0> (a, t"))
    ]
    assert kinds == ["Transpose", "QuantizeLinear", "DequantizeLinear"]


@pytest.mark.parametrize("step", [1e-30, 1e-9, 1e30])
def test_results_far_out_of_range_saturate(step: float) -> None:
    """Scaled sums beyond int32, and those that all round to the zero point."""
    case = Product(out="uint8", bias="float")
    t = replace(arrays(case), y_scale=np.asarray(step, np.float32))
    got = run(model(case, t), t.a)
    np.testing.assert_array_equal(got, exact(case, t)[0])
    expected = {int(t.y_zero)} if step > 1 else {0, 255}
    assert set(np.unique(got).tolist()) == expected
