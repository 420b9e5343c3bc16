"""Quantize, dequantize and their dynamic form: every integer exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from nanoloom.errors import ModelError
from tests.drawn_cases import few_examples
from tests.linalg.bounds import sample, wide, within
from tests.linalg.single import model_of, run_node

QUANTIZED = ("int8", "uint8", "int16", "uint16")


def parameters(
    shape: tuple[int, ...], axis: int, block: int, seed: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point for one granularity: block 0 is an axis, -1 the tensor."""
    if block < 0:
        size: tuple[int, ...] = ()
    elif block == 0:
        size = (shape[axis],)
    else:
        size = tuple(-(-s // block) if d == axis else s for d, s in enumerate(shape))
    scale = sample(seed, size, "float32", 0.01, 0.07)
    return scale, sample(seed + 1, size, name, -9, 9)


def spread(t: np.ndarray, shape: tuple[int, ...], axis: int, block: int) -> np.ndarray:
    """The parameter of each element, in the tensor's shape."""
    if block < 0:
        return np.broadcast_to(t, shape)
    if block == 0:
        full = [s if d == axis % len(shape) else 1 for d, s in enumerate(shape)]
        return np.broadcast_to(t.reshape(full), shape)
    return np.repeat(t, block, axis).take(range(shape[axis]), axis)


GRAINS = st.sampled_from([(0, -1), (0, 0), (1, 0), (-1, 0), (1, 2), (1, 5), (2, 3)])


@few_examples(25)
@given(GRAINS, st.sampled_from(QUANTIZED), st.booleans(), st.booleans())
def test_quantize(grain: tuple[int, int], name: str, fixed: bool, zeros: bool) -> None:
    axis, block = grain
    shape = (3, 5, 7)
    scale, zero = parameters(shape, axis, block, 1, name)
    x = sample(3, shape, "float32", -40, 40) * (100 if name.endswith("16") else 1)
    (got,) = run_node(
        "QuantizeLinear", [x, scale, zero if zeros else None],
        constants=([1, 2] if zeros else [1]) if fixed else [],
        axis=axis, block_size=max(block, 0),
        output_dtype=getattr(TensorProto, name.upper()), version=21,
    )  # fmt: skip
    whole = np.rint(x / spread(scale, shape, axis, block)).astype(np.int64)
    if zeros:
        whole = whole + spread(zero, shape, axis, block)
    limits = np.iinfo(name)
    exact = np.clip(whole, limits.min, limits.max).astype(name)
    assert got.dtype == exact.dtype
    np.testing.assert_array_equal(got, exact)
    assert {int(limits.min), int(limits.max)} & set(got.reshape(-1).tolist())


def test_ties_go_to_even_before_the_zero_point() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e30, -1e30, np.inf, np.nan], np.float32)
    one, zero = np.array(1, np.float32), np.array(1, np.int8)
    (got,) = run_node("QuantizeLinear", [x, one, zero])
    assert got.tolist() == [1, 3, 3, 1, -1, 127, -128, 127, -128]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_quantize_divides_in_the_type_of_the_scale(name: str) -> None:
    x, scale = sample(4, (5, 7), name, -9, 9), sample(5, (), name, 0.05, 0.2)
    zero = np.array(3, np.uint8)
    (got,) = run_node("QuantizeLinear", [x, scale, zero], version=21)
    whole = np.rint((x / scale).astype(np.float32)) + 3
    np.testing.assert_array_equal(got, np.clip(whole, 0, 255).astype(np.uint8))


def test_quantize_integers() -> None:
    x = sample(6, (40,), "int32", -(2**30), 2**30)
    scale, zero = np.array(7e6, np.float32), np.array(-3, np.int8)
    (got,) = run_node("QuantizeLinear", [x, scale, zero], version=13)
    whole = np.clip(np.rint(x / scale) - 3, -128, 127)
    np.testing.assert_array_equal(got, whole.astype(np.int8))


@few_examples(25)
@given(
    GRAINS, st.sampled_from([*QUANTIZED, "int32"]), st.booleans(),
    st.sampled_from(["float32", "float16"]),
)  # fmt: skip
def test_dequantize(grain: tuple[int, int], name: str, fixed: bool, kind: str) -> None:
    axis, block = grain
    shape = (3, 5, 7)
    scale, zero = parameters(shape, axis, block, 7, name)
    scale = scale.astype(kind)
    limits = np.iinfo(name)
    x = sample(9, shape, name, max(limits.min, -(2**20)), min(limits.max, 2**20))
    given = zero if name != "int32" else None
    (got,) = run_node(
        "DequantizeLinear", [x, scale, given],
        constants=[1] if fixed else [], axis=axis, block_size=max(block, 0), version=21,
    )  # fmt: skip
    shifted = wide(x) - (spread(zero, shape, axis, block) if given is not None else 0)
    factor = spread(scale, shape, axis, block).astype(np.float32)
    with np.errstate(over="ignore"):
        exact = (shifted.astype(np.float32) * factor).astype(kind)
    assert got.dtype == exact.dtype
    np.testing.assert_array_equal(got, exact)


def test_round_trip_keeps_within_half_a_step() -> None:
    x = sample(10, (3, 5), "float32")
    scale, zero = np.array(0.05, np.float32), np.array(128, np.uint8)
    (stored,) = run_node("QuantizeLinear", [x, scale, zero])
    (back,) = run_node("DequantizeLinear", [stored, scale, zero])
    assert (abs(wide(back) - x) <= 0.025 * (1 + 2.0**-16)).all()
    assert not (abs(0 * wide(back) - x) <= 0.025 * (1 + 2.0**-16)).all()


@pytest.mark.parametrize(("low", "high"), [(-3, 5), (1, 5), (-5, -1), (0, 0)])
def test_dynamic(low: float, high: float) -> None:
    x = sample(11, (3, 7), "float32", low, high)
    y, scale, zero = run_node("DynamicQuantizeLinear", [x], outputs=3)
    top, bottom = np.maximum(x.max(), 0), np.minimum(x.min(), 0)
    width = top - bottom if top != bottom else np.float32(1)
    step = np.float32(width) / np.float32(255)
    start = np.clip(np.rint(-bottom / step), 0, 255)
    assert scale.dtype == np.float32 and scale == step
    assert zero.dtype == np.uint8 and zero == start
    exact = np.clip(np.rint(x / step) + start, 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(y, exact)
    back = (wide(y) - float(start)) * float(step)
    assert within(x, back, 0, 0) or (abs(back - x) <= 0.51 * float(step)).all()


def test_a_scale_that_does_not_fit_is_refused() -> None:
    x, scale = sample(12, (3, 5), "float32"), np.ones(4, np.float32)
    with pytest.raises(ModelError, match=r"input 1 is \[4\], expected \[5\]"):
        run_node("QuantizeLinear", [x, scale, np.zeros(4, np.int8)])


@pytest.mark.parametrize("shape", [(), (7,), (1, 5), (1, 1, 9), (3, 1), (2, 3, 35)])
def test_dynamic_of_every_rank(shape: tuple[int, ...]) -> None:
    x = sample(13, shape, "float32", -3, 5)
    y, scale, zero = run_node("DynamicQuantizeLinear", [x], outputs=3)
    model, _ = model_of("DynamicQuantizeLinear", [x], {}, outputs=3)
    expected = ReferenceEvaluator(model).run(None, {"x0": x})
    for got, exact in zip((y, scale, zero), expected, strict=True):
        assert got.dtype == exact.dtype
        np.testing.assert_array_equal(got, exact)


def test_dynamic_of_numbers_far_apart() -> None:
    """The order of the bits is that of the numbers, signs and infinities too."""
    x = np.array([-1e30, -1e-40, -0.0, 0.0, 1e-40, 3e29, -2.5], np.float32)
    y, scale, zero = run_node("DynamicQuantizeLinear", [x], outputs=3)
    step = (np.float32(3e29) - np.float32(-1e30)) / np.float32(255)
    assert scale == step and zero == np.rint(np.float32(1e30) / step)
    assert y.tolist() == [0, zero, zero, zero, zero, 255, zero]
    for lone in (np.nan, -np.nan, np.inf):
        spoiled = np.array([1, lone, -2], np.float32)
        _, scale, _ = run_node("DynamicQuantizeLinear", [spoiled], outputs=3)
        assert not np.isfinite(scale)
