"""`--precision bf16`: residual sums read what products round, and so do max pools."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import nanoloom
from nanoloom.ir import mlir
from nanoloom.kernels.program import Program
from nanoloom.kernels.retype.precision import to_bf16
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import Array, build, cut

F32 = np.dtype(np.float32)
# Whole numbers, so that every sum is exact.
X = np.rint(sample(1, (33, 16), "float32", -8, 8))
W = np.rint(sample(2, (16, 24), "float32", -15, 15))
V = np.rint(sample(3, (24, 24), "float32", -15, 15))


def bf16(x: Array) -> Array:
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


def positive(b: Any, x: Any) -> Any:
    return b.elementwise(lambda s: s.maximum(0), x, dtype=F32)


def hidden(b: Any, x: Any) -> Any:
    return positive(b, b.einsum("mk,kn->mn", x, b.constant(W), dtype=F32))


def added(b: Any, x: Any) -> Any:
    """What a product makes, and another product of it."""
    made = b.einsum("mk,kn->mn", x, b.constant(V), dtype=F32)
    return b.elementwise(lambda s, t: s + t, made, x, dtype=F32)


def residual(b: Any, x: Any) -> Any:
    return added(b, hidden(b, x))


def returned(b: Any, x: Any) -> Any:
    made = hidden(b, x)
    return added(b, made), made


def summed(b: Any, x: Any) -> Any:
    """A sum is no elementwise operation."""
    made = hidden(b, x)
    rows = b.reduce(lambda s, t: s + t, made, [0], 0, keepdims=False)
    return added(b, made), rows


def normalized(b: Any, x: Any) -> Any:
    """What others make of a product, row by row, is written twice at once."""
    made = hidden(b, x)
    rows = b.reduce(lambda s, t: s + t, made, [1], 0, keepdims=True)
    return added(b, b.elementwise(lambda s, t: s - t, made, rows, dtype=F32))


def no_product(b: Any, x: Any) -> Any:
    return added(b, positive(b, x))


def program_of(make: Any, *inputs: Any) -> Program:
    with mlir.context():
        return cut(to_bf16(build(make, *inputs)))


def test_a_residual_sum_reads_the_rounded_numbers() -> None:
    """Two kernels behind the input's rounding; no activation is in f32 between them."""
    program = program_of(residual, X)
    *_, first, last = (program.kernels[call.kernel] for call in program.calls)
    assert len(program.calls) == 3
    assert "-> tensor<33x24xbf16>" in first.text.split("func.func")[1].split("\n")[0]
    assert "tensor<33x24xf32> {bufferization.writable = false}" not in last.text


@pytest.mark.parametrize("make", [returned, summed, normalized])
def test_what_others_need_in_f32_stays(make: Any) -> None:
    program = program_of(make, X)
    assert any(
        "tensor<33x24xf32> {bufferization.writable = false}" in kernel.text
        for kernel in program.kernels.values()
    )


def test_what_no_product_makes_stays() -> None:
    with mlir.context():
        given = np.zeros((33, 24), F32)
        text = str(to_bf16(build(no_product, given)).module)
    assert text.count("arith.extf") == 2  # of the product's factors


# ---- numbers -------------------------------------------------------------------------


def run(text: str, weights: dict[str, Array], x: Array) -> dict[str, Array]:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]>\n{text}')
    model.graph.initializer.extend(
        numpy_helper.from_array(w, name) for name, w in weights.items()
    )
    return nanoloom.compile(model, precision="bf16")({"x": x})


def test_numbers() -> None:
    """Whole numbers: exact but for the rounding between the products."""
    text = """m (float[33,16] x) => (float[33,24] y) {
        p = MatMul (x, w) r = Relu (p) q = MatMul (r, v) y = Add (q, r)
    }"""
    got = run(text, {"w": W, "v": V}, X)["y"]
    exact = np.maximum(X.astype(np.float64) @ W, 0)
    product = bf16(exact) @ V.astype(np.float64)
    assert (got == bf16(exact) + product).all()
    assert (got != exact + product).any()


def test_a_result_of_the_model_is_not_rounded() -> None:
    text = """m (float[33,16] x) => (float[33,24] y, float[33,24] r) {
        p = MatMul (x, w) r = Relu (p) q = MatMul (r, v) y = Add (q, r)
    }"""
    got = run(text, {"w": W, "v": V}, X)
    exact = np.maximum(X.astype(np.float64) @ W, 0)
    assert (got["r"] == exact).all() and (bf16(exact) != exact).any()
    assert (got["y"] == bf16(exact) @ V.astype(np.float64) + exact).all()


IMAGE = np.rint(sample(4, (1, 16, 9, 11), "float32", -8, 8))
FIRST = np.rint(sample(5, (24, 16, 1, 1), "float32", -15, 15))
TAPS = np.rint(sample(6, (24, 24, 3, 3), "float32", -3, 3))


def convolved(x: Array, w: Array) -> Array:
    """[1, c, y, x] by [f, c, k, k] with a border of zeros, in float64."""
    edge = w.shape[-1] // 2
    wide = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (edge,) * 2, (edge,) * 2])
    at = np.lib.stride_tricks.sliding_window_view(wide, w.shape[2:], (2, 3))
    return np.einsum("ncyxij,fcij->nfyx", at, w.astype(np.float64))


@pytest.mark.parametrize("pool", [False, True])
def test_residual_blocks_of_images(pool: bool) -> None:
    """A border around what is read, and a pool: the largest number, then rounded."""
    middle = "MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]>"
    text = f"""m (float[1,16,9,11] x) => (float[1,24,9,11] y) {{
        p = Conv (x, w) r = {middle if pool else "Relu"} (p)
        q = Conv <pads = [1, 1, 1, 1]> (r, v) y = Add (q, r)
    }}"""
    got = run(text, {"w": FIRST, "v": TAPS}, IMAGE)["y"]
    made = convolved(IMAGE, FIRST)
    if pool:
        edges = [(0, 0), (0, 0), (1, 1), (1, 1)]
        wide = np.pad(made, edges, constant_values=-np.inf)
        at = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
        exact = at.max((4, 5))
    else:
        exact = np.maximum(made, 0)
    product = convolved(bf16(exact), TAPS)
    assert (got == bf16(exact) + product).all()
    assert (got != exact + product).any()


def test_a_pool_gives_what_is_no_number_on() -> None:
    """Largest of bf16: a NaN is one of its window's result, whichever it met first."""
    text = """m (float[1,16,9,11] x) => (float[1,24,9,11] y) {
        p = Conv (x, w) r = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (p)
        y = Conv (r, v)
    }"""
    image = IMAGE.copy()
    image[0, 3, 4, 5] = np.nan
    got = run(text, {"w": FIRST, "v": TAPS[:, :, :1, :1]}, image)["y"]
    expected = np.zeros(got.shape, bool)
    expected[:, :, 3:6, 4:7] = True
    assert (np.isnan(got) == expected).all()
