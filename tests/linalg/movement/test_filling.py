"""Tensors made from positions: exact."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, INTEGERS, dtype_of, sample
from tests.linalg.harness import evaluate
from tests.linalg.movement.test_shaping import same
from tests.linalg.single import run_node

TYPES = (*FLOATS, *INTEGERS, "bool")
few = few_examples(12)


@few
@given(
    st.sampled_from([(3, 3), (2, 5, 7), (1, 4), (2, 2, 4, 3), (0, 3)]),
    st.integers(-8, 8),
    st.booleans(),
    st.sampled_from(TYPES),
    st.sampled_from([[], [1]]),
)
def test_triangles(
    shape: tuple[int, ...], k: int, upper: bool, name: str, constants: list[int]
) -> None:
    x = sample(1, shape, name)
    offset = np.array(k, np.int64)
    got = run_node("Trilu", [x, offset], constants=constants, upper=int(upper))
    same(got[0], (np.triu if upper else np.tril)(x, k))


@few
@given(st.integers(-4, 4), st.sampled_from(TYPES))
def test_eye_like(k: int, name: str) -> None:
    x = sample(2, (3, 5), "int32")
    kind = onnx.helper.np_dtype_to_tensor_dtype(dtype_of(name))
    got = run_node("EyeLike", [x], k=k, dtype=kind)[0]
    np.testing.assert_array_equal(got, np.eye(3, 5, k).astype(dtype_of(name)))
    assert got.dtype == dtype_of(name)


@pytest.mark.parametrize("name", ["float32", "int64", "uint64", "bool", "float16"])
def test_constant_of_shape(name: str) -> None:
    value = np.array([2**63 + 5 if name == "uint64" else 3], dtype_of(name))
    target = np.array([3, 0, 7] if name == "bool" else [3, 7], np.int64)
    got = run_node(
        "ConstantOfShape",
        [target],
        constants=[0],
        value=onnx.numpy_helper.from_array(value),
    )[0]
    same(got, np.full(target, value[0]))


@pytest.mark.parametrize(
    ("first", "last", "step"), [(3, 12, 2), (5, -4, -3), (2.5, 7.0, 0.5), (4, 4, 1)]
)
def test_range(first: float, last: float, step: float) -> None:
    dtype = np.float32 if isinstance(first, float) else np.int32
    arrays = [np.array(v, dtype) for v in (first, last, step)]
    same(run_node("Range", arrays)[0], np.arange(first, last, step, dtype))


def test_shape_and_size_without_data() -> None:
    text = """<ir_version: 8, opset_import: ["":18]>
    agraph (float[3,1,7] x) => (int64[2] a, int64 b, int64[0] c) {
      a = Shape <start = -2> (x)
      b = Size (x)
      c = Shape <start = 2, end = 1> (x)
    }"""
    x = sample(3, (3, 1, 7), "float32")
    a, b, c = evaluate(onnx.parser.parse_model(text), {"x": x})
    assert (a.tolist(), b.tolist(), c.tolist()) == ([1, 7], 21, [])
