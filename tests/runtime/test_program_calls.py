"""A program called again: the first call's variant, unless what decides it changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.api.program import Program
from nanoloom.cache import Cache
from nanoloom.errors import Error, InputError
from nanoloom.options import CompileOptions
from nanoloom.target.host import host


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


def product(tmp_path: Path) -> str:
    """y = x w, with 64 numbers to a sum."""
    weight = np.random.default_rng(0).standard_normal((64, 48)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 48])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    opset = [helper.make_opsetid("", 18)]
    path = str(tmp_path / "product.onnx")
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def test_a_precision(tmp_path: Path) -> None:
    """bf16 has numbers of its own: within its rounding, and not those of f32."""
    path, cache = product(tmp_path), Cache.temporary()
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    exact = nanoloom.compile(path, cache=cache)({"x": x})["y"]
    rounded = nanoloom.compile(path, precision="bf16", cache=cache)({"x": x})["y"]
    weight = onnx.numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    bound = np.abs(x) @ np.abs(weight) * (2.0**-7)  # both operands round to 8 bits
    assert (np.abs(rounded - exact) <= bound).all()
    assert not np.array_equal(rounded, exact)


def test_precisions_that_are_not_known(tmp_path: Path) -> None:
    path, cache = product(tmp_path), Cache.temporary()
    with pytest.raises(Error, match="precision is 'f32' or 'bf16', not 'fp8'"):
        nanoloom.compile(path, precision="fp8", cache=cache)  # type: ignore[arg-type]
    options = CompileOptions(host(), "f32")
    with pytest.raises(Error, match="'bf16' here and 'f32' in the options"):
        nanoloom.compile(path, precision="bf16", options=options, cache=cache)
    with pytest.raises(Error, match=r"options are a .*CompileOptions, not {'a': 3}"):
        nanoloom.compile(path, options={"a": 3}, cache=cache)  # type: ignore[arg-type] - what people give


def along(*shapes: list[int | str]) -> bytes:
    """y = concatenation of the inputs x0, x1, ... along their first axes."""
    names = [f"x{number}" for number in range(len(shapes))]
    graph = helper.make_graph(
        [helper.make_node("Concat", names, ["y"], axis=0)],
        "along",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in zip(names, shapes, strict=True)
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 3])],
    )
    opset = [helper.make_opsetid("", 18)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=9)
    return made.SerializeToString()


def test_dims_that_the_model_does_not_have() -> None:
    model, cache = along(["batch", 3], ["past + 1", 3]), Cache.temporary()
    with pytest.raises(InputError, match=r"no dimension nope; it has batch, past \+ 1"):
        nanoloom.compile(model, dims={"nope": 3}, cache=cache)
    with pytest.raises(InputError, match="no dimension n; all its dimensions are num"):
        nanoloom.compile(along([2, 3]), dims={"n": 3}, cache=cache)
    for wrong in (-1, 2.5, "2", True, None, 2**63):
        with pytest.raises(InputError, match=r"dimension batch is .*; give a whole"):
            nanoloom.compile(model, dims={"batch": wrong}, cache=cache)  # type: ignore[dict-item]
    with pytest.raises(InputError, match="dims are a list"):
        nanoloom.compile(model, dims=["batch"], cache=cache)  # type: ignore[arg-type]


def test_dims_that_contradict_an_array() -> None:
    model, cache = along(["batch", 3], ["past + 1", 3]), Cache.temporary()
    dims = {"batch": np.int64(2), "past": 3}
    program = nanoloom.compile(model, threads=1, dims=dims, cache=cache)
    good = {"x0": np.ones((2, 3), np.float32), "x1": np.ones((4, 3), np.float32)}
    assert program(good)["y"].shape == (6, 3)
    with pytest.raises(InputError, match="x0: dimension batch is 5 here and 2 in dims"):
        program(good | {"x0": np.ones((5, 3), np.float32)})
    with pytest.raises(InputError, match=r"x1: dimension past \+ 1 is 5 here and 4 in"):
        program(good | {"x1": np.ones((5, 3), np.float32)})
