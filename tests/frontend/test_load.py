"""What `load` gives: the same model, whole, whatever it comes as."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from nanoloom.frontend.mapped_tensors import MappedTensor, release
from nanoloom.frontend.onnx import load
from tests.frontend import models


def save(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def run(model: onnx.ModelProto, *arrays: np.ndarray) -> list[np.ndarray]:
    names = [value.name for value in model.graph.input]
    feeds = dict(zip(names, arrays, strict=True))
    return ReferenceEvaluator(model).run(None, feeds)  # type: ignore[return-value]


def node_names(model: ir.Model) -> list[str]:
    return [str(node.name) for node in model.graph.all_nodes()]


SOURCES = {
    "path": save,
    "text": lambda model, folder: str(save(model, folder)),
    "bytes": lambda model, folder: model.SerializeToString(),
    "proto": lambda model, folder: model,
    "ir": lambda model, folder: ir.from_proto(model),
    "ir of a file": lambda model, folder: ir.load(save(model, folder)),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("make", (models.linear, models.branches))
def test_every_source_gives_the_same_model(kind, make, tmp_path: Path) -> None:
    whole = make()
    loaded = load(SOURCES[kind](whole, tmp_path))
    again = ir.to_proto(loaded)
    onnx.checker.check_model(again, full_check=True)
    x = np.random.default_rng(0).standard_normal((2, 40)).astype(np.float32)
    arrays = (x[:, :37],) if make is models.linear else (x, np.array(False))
    for got, wanted in zip(run(again, *arrays), run(whole, *arrays), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("kind", ("path", "bytes", "proto"))
def test_large_weights_are_mapped_and_small_ones_are_not(kind, tmp_path: Path) -> None:
    whole = models.linear()
    loaded = load(SOURCES[kind](whole, tmp_path))
    weights = loaded.graph.initializers
    large, small = weights["w"].const_value, weights["b"].const_value
    assert isinstance(large, MappedTensor)
    assert not isinstance(small, MappedTensor)
    for tensor, proto in zip((large, small), whole.graph.initializer, strict=True):
        assert tensor is not None
        np.testing.assert_array_equal(tensor.numpy(), numpy_helper.to_array(proto))


def test_a_source_is_not_changed() -> None:
    for make in (models.linear, models.calls):
        proto = make()
        model = ir.from_proto(make())
        before = ir.to_proto(model)
        load(model)
        load(proto)
        assert proto == make()
        assert ir.to_proto(model) == before


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float64, np.float16, np.int8, np.uint16, np.int64, np.bool_]
    + [np.complex64],
)
@pytest.mark.parametrize("shift", range(4))
def test_weights_at_any_offset(dtype: type, shift: int, tmp_path: Path) -> None:
    numbers = np.random.default_rng(shift).integers(0, 2, (67, 91)).astype(dtype)
    tensor = numpy_helper.from_array(numbers, "c")
    node = helper.make_node("Constant", [], ["y"], name="c" * shift, value=tensor)
    output = models.value("y", [67, 91], tensor.data_type)
    loaded = load(save(models.model([node], [], [output]), tmp_path))
    mapped = next(iter(loaded.graph)).attributes["value"].as_tensor()
    assert isinstance(mapped, MappedTensor)
    assert mapped.numpy().dtype == dtype
    assert not mapped.numpy().flags.writeable
    np.testing.assert_array_equal(mapped.numpy(), numbers)
    np.testing.assert_array_equal(np.asarray(mapped), numbers)
    assert mapped.tobytes() == numbers.tobytes()
    assert not np.array_equal(mapped.numpy(), ~numbers.astype(bool))


@pytest.mark.parametrize("kind", (TensorProto.INT4, TensorProto.UINT4))
def test_packed_weights(kind: int) -> None:
    numbers = np.random.default_rng(0).integers(0, 8, (91, 101))
    tensor = helper.make_tensor("c", kind, numbers.shape, numbers.ravel())
    raw = ir.from_proto(tensor).tobytes()
    tensor = helper.make_tensor("c", kind, numbers.shape, raw, raw=True)
    node = helper.make_node("Constant", [], ["y"], value=tensor)
    output = models.value("y", numbers.shape, kind)
    loaded = load(models.model([node], [], [output], opset=21, ir_version=10))
    mapped = next(iter(loaded.graph)).attributes["value"].as_tensor()
    assert isinstance(mapped, MappedTensor)
    np.testing.assert_array_equal(mapped.numpy().astype(np.int64), numbers)
    assert mapped.tobytes() == raw


def test_values_survive_a_release(tmp_path: Path) -> None:
    whole = models.linear()
    weight = load(save(whole, tmp_path)).graph.initializers["w"].const_value
    assert weight is not None
    before = weight.numpy()
    release(weight)
    wanted = numpy_helper.to_array(whole.graph.initializer[0])
    np.testing.assert_array_equal(before, wanted)
    np.testing.assert_array_equal(weight.numpy(), wanted)


def test_nameless_nodes_get_names() -> None:
    assert node_names(load(models.linear())) == ["product", "Add_1"]
    names = node_names(load(models.branches()))
    assert names[0] == "If_0"
    assert "If_0/MatMul_0" in names
    assert len(set(names)) == len(names) == 5


def test_equal_names_become_different() -> None:
    nodes = [models.unary("x", "a"), models.unary("a", "b"), models.unary("b", "y")]
    for node in nodes:
        node.name = "relu"
    assert node_names(load(models.chain(nodes))) == ["relu", "relu_2", "relu_3"]


def test_nodes_out_of_order_are_sorted() -> None:
    nodes = [models.unary("a", "y", "Neg"), models.unary("x", "a")]
    loaded = load(models.chain(nodes))
    assert node_names(loaded) == ["Relu_1", "Neg_0"]


def test_inner_nodes_out_of_order_are_sorted() -> None:
    whole = models.branches()
    for attribute in whole.graph.node[0].attribute:
        first, second = (onnx.NodeProto.FromString(n.SerializeToString())
                         for n in attribute.g.node)  # fmt: skip
        del attribute.g.node[:]
        attribute.g.node.extend([second, first])
    again = ir.to_proto(load(whole))
    onnx.checker.check_model(again)


def test_a_weight_that_is_an_input_too_is_a_weight() -> None:
    whole = models.linear()
    whole.graph.input.append(models.value("w", [37, 53]))
    whole.ir_version = 3
    loaded = load(whole)
    assert [value.name for value in loaded.graph.inputs] == ["x"]
    assert "w" in loaded.graph.initializers


@pytest.mark.parametrize("opset", range(7, 28))
def test_opsets(opset: int) -> None:
    whole = models.chain([models.unary()], opset=opset, ir_version=8)
    assert load(whole).opset_imports[""] == opset


def test_the_long_name_of_the_default_domain() -> None:
    whole = models.chain([models.unary()])
    whole.opset_import[0].domain = "ai.onnx"
    whole.graph.node[0].domain = "ai.onnx"
    loaded = load(whole)
    assert loaded.opset_imports == {"": models.OPSET}
    assert next(iter(loaded.graph)).domain == ""


def test_not_a_number_is_a_legal_value() -> None:
    nodes = [
        helper.make_node("Constant", [], ["c"], value_floats=[np.nan, np.inf, 1.0]),
        helper.make_node("Add", ["x", "c"], ["t"]),
        helper.make_node("LeakyRelu", ["t"], ["y"], alpha=float("-inf")),
    ]
    loaded = load(models.chain(nodes))
    slope = list(loaded.graph)[2].attributes["alpha"].as_float()
    assert slope == float("-inf")
