"""Sparse weights and constants are dense ones with their zeros written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from nanoloom.errors import ModelError
from nanoloom.frontend.onnx import load
from tests.frontend import models

SHAPE = (6, 7, 5)


def sparse(
    array: np.ndarray, name: str, *, flat: bool, beside: Path | None = None
) -> onnx.SparseTensorProto:
    """beside: a folder for values in a file of their own."""
    places = np.argwhere(array).astype(np.int64)
    values = numpy_helper.from_array(array[array != 0], name)
    if flat:
        places = np.flatnonzero(array).astype(np.int64)
    if beside is not None:
        (beside / "values.bin").write_bytes(values.raw_data)
        values.ClearField("raw_data")
        values.data_location = onnx.TensorProto.EXTERNAL
        values.external_data.add(key="location", value="values.bin")
    return helper.make_sparse_tensor(
        values, numpy_helper.from_array(places, f"{name}_at"), array.shape
    )


def drawn(dtype: np.dtype, share: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(7)
    made = rng.integers(1, 100, SHAPE).astype(dtype)
    return np.where(rng.random(SHAPE) < share, made, np.zeros_like(made))


def with_weight(weight: onnx.SparseTensorProto) -> onnx.ModelProto:
    kind = weight.values.data_type
    made = models.model(
        [helper.make_node("Identity", ["w"], ["y"])],
        [],
        [models.value("y", list(weight.dims), kind)],
    )
    made.graph.sparse_initializer.append(weight)
    return made


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
def test_weights(flat: bool, dtype: type[np.generic]) -> None:
    array = drawn(np.dtype(dtype))
    model = load(with_weight(sparse(array, "w", flat=flat)))
    weight = model.graph.initializers["w"].const_value
    assert weight is not None and weight.dtype is not None
    np.testing.assert_array_equal(weight.numpy(), array, strict=True)


def test_values_in_another_file(tmp_path: Path) -> None:
    array = drawn(np.dtype(np.float32), share=0.9)
    proto = with_weight(sparse(array, "w", flat=True, beside=tmp_path))
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    weight = load(tmp_path / "model.onnx").graph.initializers["w"].const_value
    assert weight is not None
    np.testing.assert_array_equal(weight.numpy(), array)


def test_a_large_weight_of_a_file(tmp_path: Path) -> None:
    """Its values and indices are mapped, as other large tensors are."""
    array = np.zeros((80, 100), np.float32)
    array[::2, 1::3] = np.arange(1, 1321).reshape(40, 33)
    proto = with_weight(sparse(array, "w", flat=False))
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    weight = load(tmp_path / "model.onnx").graph.initializers["w"].const_value
    assert weight is not None
    np.testing.assert_array_equal(weight.numpy(), array)


def test_a_constant_in_a_branch() -> None:
    array = drawn(np.dtype(np.float32))
    constant = helper.make_node("Constant", [], ["c"], sparse_value=sparse(
        array, "s", flat=False
    ))  # fmt: skip
    other = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(
        np.zeros(SHAPE, np.float32)
    ))  # fmt: skip
    out = [models.value("c", list(SHAPE))]
    branch = helper.make_node("If", ["b"], ["y"])
    for name, node in (("then_branch", constant), ("else_branch", other)):
        body = helper.make_graph([node], name, [], out)
        branch.attribute.append(helper.make_attribute(name, body))
    model = load(models.model(
        [branch],
        [models.value("b", [], onnx.TensorProto.BOOL)],
        [models.value("y", list(SHAPE))],
    ))  # fmt: skip
    (node,) = model.graph
    (inner,) = node.attributes["then_branch"].as_graph()
    np.testing.assert_array_equal(inner.attributes["value"].as_tensor().numpy(), array)


FAULTS = {
    "outside": ([3, 210], [2], "an index outside of its shape"),
    "negative": ([-1, 2], [2], "an index outside of its shape"),
    "twice": ([5, 5], [2], "an index twice"),
    "count": ([5, 6, 7], [3], r"indices of shape \[3\] for 2 values"),
    "rows": ([1, 2, 3, 4], [2, 2], r"indices of shape \[2, 2\] for 2 values"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    places, shape, text = FAULTS[name]
    indices = np.array(places, np.int64).reshape(shape)
    weight = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(2, np.float32), "w"),
        numpy_helper.from_array(indices, "at"),
        SHAPE,
    )
    with pytest.raises(ModelError, match=text):
        load(with_weight(weight))


def test_a_size_that_no_message_has() -> None:
    weight = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32), "w"),
        numpy_helper.from_array(np.zeros(1, np.int64), "at"),
        (1 << 20, 1 << 20),
    )
    with pytest.raises(ModelError, match=r"weight w: needs 4\.4 TB"):
        load(with_weight(weight))
