"""Products of signs count bits that differ: the graph, the numbers, what is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

from nanoloom.graph import binary_products
from nanoloom.graph.binary_products import DOMAIN
from nanoloom.graph.stage import SIGNS, optimize
from nanoloom.linalg.operators import OPERATORS
from tests.graph.binary_models import FORMS, Binary, exact, model
from tests.graph.models import constant, operators, optimized
from tests.linalg.bounds import sample
from tests.linalg.harness import evaluate

CASES = [
    *(Binary(form) for form in FORMS),
    Binary(c=13, f=3, strides=(2, 1), n=2),
    Binary(c=13, form="sign", pads=(0, 2, 1, 1), strides=(2, 2)),
    Binary(kernel=(1, 1), pads=(0, 0, 0, 0), c=41, bias=False),
    Binary(kernel=(2, 3), dilations=(2, 1), pads=(2, 0, 0, 1)),
    Binary(group=2, f=6, c=32),
    Binary(size=(), kernel=(), n=3, c=37),
    Binary("sign", size=(), kernel=(), n=3, c=37, bias=False),
    Binary(size=(), kernel=(), n=4, c=24, turned=True),
]


def products(graph: ir.Graph) -> list[str]:
    return [n.op_type for n in graph if n.domain == DOMAIN and n.op_type != "Pack"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_product_of_signs_is_exact(case: Binary) -> None:
    proto = model(case)
    wanted = "BitConvolution" if case.kernel else "BitMatMul"
    assert products(optimized(proto)) == [wanted]
    got = evaluate(proto, {"x": case.x()})[0].astype(np.float64)
    value, bound = exact(case)
    assert got.shape == value.shape
    assert (abs(got - value) <= bound).all()
    other, _ = exact(replace(case, seed=9))
    assert not (abs(got - other) <= bound).all()


@pytest.mark.parametrize("form", [name for name, (_, zero, _) in FORMS.items() if zero])
def test_two_values_are_one_plane(form: str) -> None:
    graph = optimized(model(Binary(form)))
    assert operators(graph).count("Pack") == 1 and "Concat" not in operators(graph)


def test_zeros_of_sign_are_no_signs() -> None:
    """As many as possible: with one plane each would be counted as -1 or 1."""
    case = Binary("sign")
    graph = optimized(model(case))
    assert operators(graph).count("Pack") == 2
    x = np.zeros_like(case.x())
    x[:, :, 2, 3] = 1
    got = evaluate(model(case), {"x": x})[0]
    value = case.w().sum(axis=1, dtype=np.float64)[:, 1, 1] + case.b()
    np.testing.assert_allclose(got[0, :, 2, 3], value, rtol=1e-6)
    np.testing.assert_allclose(got[0, :, 5, 6], case.b(), rtol=1e-6)


def test_zeros_around_an_image_are_no_signs() -> None:
    """A table of what the borders lack, which is 0 in the middle."""
    graph = optimized(model(Binary()))
    (node,) = [n for n in graph if n.op_type == "BitConvolution"]
    shift = constant(graph, node.inputs[2].name or "")  # type: ignore[union-attr] - it has a shift
    assert shift.shape == (6, 7, 5)
    assert (shift[1:-1, 1:-1] == 16 * 9).all() and (shift[0] != 16 * 9).any()
    assert shift.dtype == np.int16


def test_a_table_is_as_narrow_as_its_numbers() -> None:
    rows = np.array([[-(2**15), 2**15 - 1]])
    assert binary_products.narrow(rows).dtype == np.int16
    assert binary_products.narrow(rows - 1).dtype == np.int32
    assert binary_products.narrow(rows + 1).dtype == np.int32
    assert binary_products.narrow(np.asarray(7)).dtype == np.int32


def test_what_a_product_makes_is_compared_there() -> None:
    """Conditions leave the first layer's kernel, no floats; the numbers are exact."""
    proto = compared_layers()
    packs = [n for n in optimized(proto) if n.op_type == "Pack"]
    assert ["compare" in n.attributes for n in packs] == [True, False]
    x = sample(3, (1, 19, 6, 7), "float32", -1, 1)
    (got,) = evaluate(proto, {"x": x})
    w, v = (numbers_of(proto, name) for name in "wv")

    def layer(given: np.ndarray, weight: np.ndarray) -> np.ndarray:
        signs = np.pad(np.where(given >= 0, 1, -1), [(0, 0), (0, 0), (1, 1), (1, 1)])
        at = np.lib.stride_tricks.sliding_window_view(signs, (3, 3), (2, 3))
        return np.einsum("nchwij,fcij->nfhw", at, weight)

    first = layer(x, w)
    assert (got == layer(first, v)).all() and (first < 0).any()
    assert (got != layer(-first, v)).any()


def numbers_of(proto: onnx.ModelProto, name: str) -> np.ndarray:
    (found,) = [x for x in proto.graph.initializer if x.name == name]
    return onnx.numpy_helper.to_array(found)


def compared_layers() -> onnx.ModelProto:
    """Two convolutions, each of the signs of x >= 0; 19 and 11 channels."""
    r = np.random.default_rng(2)
    made = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 20]>
        two (float[1,19,6,7] x) => (float[1,4,6,7] y)
        <float zero = {0}, float one = {1}, float minus = {-1}> {
            a = GreaterOrEqual (x, zero)
            s = Where (a, one, minus)
            p = Conv <pads = [1, 1, 1, 1]> (s, w)
            b = GreaterOrEqual (p, zero)
            t = Where (b, one, minus)
            y = Conv <pads = [1, 1, 1, 1]> (t, v)
        }"""
    )
    for name, shape in (("w", (11, 19, 3, 3)), ("v", (4, 11, 3, 3))):
        signs = np.where(r.standard_normal(shape) > 0, 1, -1).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(signs, name))
    return made


def test_products_of_the_same_signs_share_their_bits() -> None:
    graph = optimized(
        """two (float[3,16] x) => (float[3,2] y, float[3,2] z)
        <float zero = {0}, float one = {1}, float minus = {-1}, float[16,2] w = {
        1,1,1,-1,1,1,1,1,1,-1,-1,1,1,1,1,-1,1,1,1,1,1,1,1,1,1,-1,-1,1,1,1,1,1}> {
            c = Greater (x, zero)
            s = Where (c, one, minus)
            y = MatMul (s, w)
            z = MatMul (s, w)
        }"""
    )
    assert operators(graph).count("Pack") == 1
    assert products(graph) == ["BitMatMul"] * 2 or products(graph) == ["BitMatMul"]


def two_layers(bias: float) -> onnx.ModelProto:
    """Sign, product with a bias, Clip, Sign, product."""
    r = np.random.default_rng(5)
    signs = [np.where(r.standard_normal((16, 16)) > 0, 1, -1) for _ in "wv"]
    w, v = (
        onnx.numpy_helper.from_array(x.astype(np.float32) * np.float32(0.3), name)
        for x, name in zip(signs, "wv", strict=True)
    )
    b = onnx.numpy_helper.from_array(np.full(16, bias, np.float32), "b")
    made = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 20]>
        two (float[9,16] x) => (float[9,16] y)
        <float one = {1}, float minus = {-1}> {
            s = Sign (x)
            p = Gemm (s, w, b)
            q = Clip (p, minus, one)
            t = Sign (q)
            y = MatMul (t, v)
        }"""
    )
    made.graph.initializer.extend([w, v, b])
    return made


def test_sums_that_are_never_zero_have_signs_of_one_plane() -> None:
    """0 is a sum of 16 signs, and 2; a half of one is none."""
    x = sample(6, (9, 16), "float32", -1, 1)
    for bias, planes in ((0.15, 3), (0.0, 4), (-0.6, 4)):
        proto = two_layers(bias)
        assert operators(optimized(proto)).count("Pack") == planes
        w, v, b = (onnx.numpy_helper.to_array(t) for t in proto.graph.initializer[-3:])
        hidden = np.round(np.sign(x) @ np.sign(w)) * 0.3 + b
        wanted = np.sign(np.where(abs(hidden) < 1e-3, 0, hidden)) @ np.sign(v)
        got = evaluate(proto, {"x": x})[0]
        np.testing.assert_array_equal(np.round(got / np.float32(0.3)), wanted)
        assert (abs(hidden) < 1e-3).any() == (planes == 4)


def reasons(proto: onnx.ModelProto) -> dict[str, str]:
    made = optimize(ir.from_proto(proto), OPERATORS.keys())
    return made.meta[SIGNS]


def test_what_is_no_product_of_bits_stays_with_a_reason() -> None:
    case = Binary()
    other = case.w()
    other[1, 2, 0, 1] *= np.float32(1.5)
    zero = case.w()
    zero[3] = 0
    for weights in (other, zero):
        proto = model(case, weights)
        assert list(reasons(proto).values()) == [binary_products.NO_WEIGHT]
        assert products(optimized(proto)) == []
    grouped = Binary(group=2, c=12, f=6)
    assert list(reasons(model(grouped)).values()) == [binary_products.NO_BYTES]
    assert list(reasons(model(case)).values()) == [""]


def test_other_values_are_no_signs() -> None:
    for text in (
        "s = Clip(x, minus, one)",
        "u = Sign(x) s = Add(u, one)",
        "c = Greater(x, zero) s = Where(c, two, minus)",
        "u = Sign(x) t = Mul(x, two) d = Sub(u, t) s = Add(d, t)",
        "u = Sign(x) t = Clip(x, minus, large) d = Sub(u, t) s = Add(d, t)",
        "u = Sign(x) t = Tanh(x) v = Sigmoid(x) d = Sub(u, t) s = Add(d, v)",
    ):
        FORMS["other"] = text, 1, 1.0
        try:
            proto = model(Binary("other"))
        finally:
            del FORMS["other"]
        assert reasons(proto) == {}
        assert products(optimized(proto)) == []
