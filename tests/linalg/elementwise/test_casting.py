"""Casts between all element types, bits kept, and operators that pass a tensor on."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto
from onnx.helper import np_dtype_to_tensor_dtype

from nanoloom.errors import Unsupported
from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, INTEGERS, dtype_of, sample, shapes
from tests.linalg.single import run_node

TYPES = [*FLOATS, *INTEGERS, "bool"]


def code(name: str) -> int:
    return np_dtype_to_tensor_dtype(dtype_of(name))


@few_examples(40)
@given(st.sampled_from(TYPES), st.sampled_from(TYPES), shapes)
def test_in_range(source: str, target: str, shape: tuple[int, ...]) -> None:
    low = 0 if source.startswith("u") or target.startswith("u") else -100
    x = sample(1, shape, source, low, 100)
    (got,) = run_node("Cast", [x], to=code(target))
    assert got.dtype == dtype_of(target)
    np.testing.assert_array_equal(got, x.astype(dtype_of(target)))
    (got,) = run_node("CastLike", [x, np.zeros((), dtype_of(target))])
    np.testing.assert_array_equal(got, x.astype(dtype_of(target)))


@few_examples(20)
@given(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS))
def test_integers_wrap(source: str, target: str) -> None:
    limits = np.iinfo(source)
    x = np.array([limits.min, limits.max, 0, 1, 100, limits.max // 3], source)
    (got,) = run_node("Cast", [x], to=code(target))
    np.testing.assert_array_equal(got, x.astype(target))


@pytest.mark.parametrize("source", ["float64", "float32"])
@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_to_half_is_rounded_once(source: str, target: str) -> None:
    """Just above a tie of the narrow type; rounding by way of f32 would lose it."""
    half = 2.0 ** (-11 if target == "float16" else -8)
    tail = 2.0**-40 if source == "float64" else 2.0**-20
    tie, above = 1 + half, 1 + 2 * half
    values = [tie, tie + tail, tie - tail, 1 + 3 * half, -tie - tail]
    expected = [1.0, above, 1.0, 1 + 4 * half, -above]
    values += [1e300, 70000.0, np.inf, -np.inf, 0.0, 2.0**-24]
    with np.errstate(over="ignore"):
        x = np.array(values, dtype_of(source))
    (got,) = run_node("Cast", [x], to=code(target))
    assert got[:5].astype(np.float64).tolist() == expected
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got[5:], x[5:].astype(dtype_of(target)))


def test_many_doubles_to_half() -> None:
    bits = np.random.default_rng(2).integers(0, 2**64, 4000, np.uint64)
    x = bits.view(np.float64)
    small = np.ldexp(np.sign(x), np.arange(4000) % 48 - 30) * (1 + np.arange(4000) / 7)
    x = np.concatenate([np.nan_to_num(x), small])
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
    (got,) = run_node("Cast", [x], to=code("float16"))
    np.testing.assert_array_equal(got, expected)


def test_float_to_bool() -> None:
    x = np.array([0.0, -0.0, 1e-30, np.nan, -2, np.inf], np.float32)
    (got,) = run_node("Cast", [x], to=code("bool"))
    assert got.tolist() == [False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("source", "target"),
    [("float32", "int32"), ("int64", "float64"), ("float16", "uint16"),
     ("uint16", "bfloat16"), ("bfloat16", "float16"), ("bool", "uint8"),
     ("int8", "uint8")],
)  # fmt: skip
def test_bits_are_kept(source: str, target: str) -> None:
    x = sample(3, (3, 5), source, -100, 100)
    (got,) = run_node("BitCast", [x], to=code(target), version=26)
    np.testing.assert_array_equal(
        got.view(np.uint8), np.ascontiguousarray(x).view(np.uint8)
    )
    assert got.dtype == dtype_of(target)


def test_narrow_types_are_refused() -> None:
    x = sample(4, (3,), "float32")
    with pytest.raises(Unsupported, match="FLOAT8E4M3FN"):
        run_node("Cast", [x], to=TensorProto.FLOAT8E4M3FN)
    with pytest.raises(Unsupported, match="FLOAT8E5M2"):
        run_node("Cast", [x.astype(ml_dtypes.float8_e5m2)], to=TensorProto.FLOAT)


def test_dropout_passes_its_input_on() -> None:
    x = sample(5, (3, 5), "float32")
    (got,) = run_node("Dropout", [x, np.array(0.5, np.float32)])
    np.testing.assert_array_equal(got, x)
    got, mask = run_node("Dropout", [x], outputs=2)
    np.testing.assert_array_equal(got, x)
    assert mask.dtype == np.bool_
    assert mask.all()
    _, mask = run_node("Dropout", [x], outputs=2, version=10)
    assert mask.shape == x.shape and mask.all()


def test_dropout_in_training_is_refused() -> None:
    x, yes = sample(6, (3,), "float32"), np.array(True)
    ratio = np.array(0.5, np.float32)
    with pytest.raises(Unsupported, match=r"tested \(Dropout\).*training"):
        run_node("Dropout", [x, ratio, yes], constants=[1, 2])
    zero = np.array(0, np.float32)
    (got,) = run_node("Dropout", [x, zero, yes], constants=[1, 2])
    np.testing.assert_array_equal(got, x)
