"""A program called again: the first call's variant, unless what decides it changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import InputError
from nanoloom.program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """y = reshape(x, shape) + 1: the values of `shape` decide what is compiled."""
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    graph = helper.make_graph(
        [
            helper.make_node("Reshape", ["x", "shape"], ["r"]),
            helper.make_node("Add", ["r", "one"], ["y"]),
        ],
        "reshape",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])],
        [one],
    )
    opset = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    onnx.save(model, tmp_path / "reshape.onnx")
    cache = Cache.temporary()
    return nanoloom.compile(str(tmp_path / "reshape.onnx"), threads=1, cache=cache)


def test_values_that_decide_shapes(program: Program) -> None:
    x = np.arange(12, dtype=np.float32)
    for shape in ((3, 4), (2, 6), (3, 4), (12, 1)):
        given = {"x": x, "shape": np.array(shape, np.int64)}
        np.testing.assert_array_equal(program(given)["y"], x.reshape(shape) + 1)


def test_the_same_variant_again(program: Program) -> None:
    arrays = {"x": np.ones(6, np.float32), "shape": np.array((2, 3), np.int64)}
    first = program.variant(arrays)
    again = program.variant({name: array.copy() for name, array in arrays.items()})
    assert again is first
    other = program.variant(arrays | {"shape": np.array((3, 2), np.int64)})
    assert other is not first
    longer = {"x": np.ones(8, np.float32), "shape": np.array((2, 4), np.int64)}
    assert program.variant(longer) not in (first, other)


def test_arrays_that_do_not_fit_after_one_that_did(program: Program) -> None:
    good = {"x": np.ones(6, np.float32), "shape": np.array((2, 3), np.int64)}
    program(good)
    with pytest.raises(InputError, match="input x"):
        program(good | {"x": np.ones(6)})
    with pytest.raises(InputError, match="input shape"):
        program(good | {"shape": np.array((2, 3, 1), np.int64)})
    strided = np.ones(12, np.float32)[::2]
    assert program(good | {"x": strided})["y"].shape == (2, 3)
