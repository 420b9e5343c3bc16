"""What is wrong with a model is said in one sentence that names file and place."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from nanoloom.errors import Error, ModelError, Unsupported
from nanoloom.frontend.onnx import load
from tests.frontend import models

Proto = onnx.ModelProto


def refusal(source: object, kind: type[Error] = ModelError, **options: int) -> str:
    with pytest.raises(kind) as caught:
        load(source, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.where
    assert caught.value.hint
    return text


# ---- files ----


def test_missing_file_with_a_similar_name(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    text = refusal(tmp_path / "modle.onnx")
    assert "modle.onnx: no such model file" in text
    assert f"did you mean {tmp_path / 'model.onnx'}?" in text


def test_missing_folder(tmp_path: Path) -> None:
    assert f"there is no folder {tmp_path / 'no'}" in refusal(
        tmp_path / "no" / "m.onnx"
    )


def test_a_folder(tmp_path: Path) -> None:
    assert "give the .onnx file" in refusal(tmp_path)
    (tmp_path / "model.onnx").touch()
    assert "is a directory" in (text := refusal(tmp_path))
    assert "give one of its models: model.onnx" in text


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").touch()
    assert "m.onnx: is empty" in refusal(tmp_path / "m.onnx")
    assert "model: is empty" in refusal(b"")


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    assert "is a pipe or a device" in refusal(tmp_path / "m.onnx")


def test_impossible_names(tmp_path: Path) -> None:
    assert "cannot open" in str(error_of("a\0b"))
    assert "cannot open" in str(error_of("x" * 5000))
    (tmp_path / "file").touch()
    assert "cannot open" in str(error_of(tmp_path / "file" / "m.onnx"))


def error_of(source: str | Path) -> Error:
    with pytest.raises(ModelError) as caught:
        load(source)
    return caught.value


CONTENTS = {
    b"version https://git-lfs.github.com/spec/v1\noid": "Git LFS pointer",
    b"\x80\x04\x95abc": "a Python pickle",
    b"\x1f\x8b\x08\x00": "gzip-compressed",
    b"\x89HDF\r\n\x1a\n": "HDF5",
    b"\x1c\x00\x00\x00TFL3": "TensorFlow Lite",
    b"GGUF\x03": "GGUF",
    b"\x7fELF\x02": "a program or library",
    b"\x93NUMPY\x01\x00": "a numpy array",
    b'\x40\x00\x00\x00\x00\x00\x00\x00{"a"': "safetensors",
    b"module {\n func.func @main()": "text (it begins with 'module { func.func @main')",
    b'{"a": 1}': "text",
    b"<!DOCTYPE html>": "text",
    b"\xff\xfe\xfd\x01\x02": "of an unknown format",
    b"\x00": "of an unknown format",
}


@pytest.mark.parametrize("content", CONTENTS)
def test_other_formats_are_recognized(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    text = refusal(tmp_path / "m.onnx")
    assert "m.onnx: is not an ONNX model but " in text
    assert CONTENTS[content] in text


def test_a_pytorch_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as archive:
        archive.writestr("data.pkl", "x")
    text = refusal(tmp_path / "m.pt")
    assert "a zip archive (PyTorch saves .pt files so)" in text
    assert "torch.onnx.export" in text


def test_cut_off_inside_the_weights(tmp_path: Path) -> None:
    content = models.linear().SerializeToString()
    (tmp_path / "m.onnx").write_bytes(content[:3000])
    text = refusal(tmp_path / "m.onnx")
    assert "the file is cut off" in text
    assert "fetch or export it again" in text


# ---- the model ----


def changed(change: Callable[[Proto], object]) -> Proto:
    proto = models.linear(3, 4)
    change(proto)
    return proto


def opset(version: int) -> Callable[[Proto], object]:
    return lambda p: setattr(p.opset_import[0], "version", version)


def node(index: int, **fields: object) -> Callable[[Proto], object]:
    def change(proto: Proto) -> None:
        for name, value in fields.items():
            if isinstance(value, list):
                del getattr(proto.graph.node[index], name)[:]
                getattr(proto.graph.node[index], name).extend(value)
            else:
                setattr(proto.graph.node[index], name, value)

    return change


def weight(index: int = 0, **fields: object) -> Callable[[Proto], object]:
    def change(proto: Proto) -> None:
        made = TensorProto(name="w", data_type=1, dims=[3, 4], raw_data=b"x" * 48)
        for name, value in fields.items():
            made.ClearField(name)  # type: ignore[arg-type]
            made.MergeFrom(TensorProto(**{name: value}))
        proto.graph.initializer[index].CopyFrom(made)

    return change


def typed(name: str, values: list, data_type: int = 1) -> Callable[[Proto], object]:
    def change(proto: Proto) -> None:
        made = TensorProto(name="w", data_type=data_type, dims=[3, 4])
        getattr(made, name).extend(values)
        proto.graph.initializer[0].CopyFrom(made)

    return change


def shape(size: int) -> Callable[[Proto], object]:
    def change(proto: Proto) -> None:
        dim = proto.graph.input[0].type.tensor_type.shape.dim[0]
        dim.dim_value = size

    return change


HUGE = 2**62
FAULTS: list[tuple[Callable[[Proto], object], str]] = [
    (lambda p: p.ClearField("graph"), "it has no graph"),
    (lambda p: p.ClearField("ir_version"), "it has no IR version"),
    (lambda p: p.ClearField("opset_import"), "imports no operator set"),
    (lambda p: setattr(p, "ir_version", 99), "IR version 99 is too new, 3 to 14"),
    (lambda p: setattr(p, "ir_version", 2), "IR version 2 is too old"),
    (opset(6), "opset 6 is not supported, 7 to 27 are"),
    (opset(99), "opset 99 is not supported"),
    (opset(-1), "impossible version -1"),
    (lambda p: p.opset_import.add(domain="", version=17), "versions 18 and 17 of"),
    (
        lambda p: setattr(p.opset_import[0], "domain", "x"),
        "product (MatMul): its operat",
    ),
    (lambda p: p.graph.ClearField("output"), "the graph has no output"),
    (lambda p: p.graph.output.add(name="z"), "output z is not computed"),
    (lambda p: p.graph.output.add(name="y"), "output y is listed twice"),
    (lambda p: p.graph.input.add(name="z"), "input z has no type"),
    (lambda p: p.graph.input.append(p.graph.input[0]), "value x is defined twice"),
    (lambda p: p.graph.input.add(), "an input has no name"),
    (
        lambda p: p.graph.initializer.append(p.graph.initializer[0]),
        "value w is defined",
    ),
    (
        node(0, output=["b"]),
        "value b is defined twice, as a weight and as an output of",
    ),
    (
        node(0, output=["x"]),
        "value x is defined twice, as an input and as an output of",
    ),
    (
        node(0, input=["x", "no"]),
        "node product (MatMul): needs value no, which nothing",
    ),
    (node(1, input=["no", "b"]), "node Add_1 (Add): needs value no"),
    (node(0, input=["y", "w"]), "in a circle: Add_1 -> product -> Add_1"),
    (node(0, input=["xw", "w"]), "in a circle: product -> product"),
    (node(0, op_type=""), "node product (): has no operator"),
    (node(0, input=["x"]), "node product (MatMul): has 1 inputs, it takes 2"),
    (node(0, input=["", "w"]), "input A must be given"),
    (node(0, output=["xw", "k"]), "has 2 outputs, it takes 1"),
    (
        weight(dims=[3, 5]),
        "weight w: has 48 bytes of data and its shape [3, 5] of FLOAT",
    ),
    (weight(dims=[3, -4]), "weight w: has a negative dimension in its shape [3, -4]"),
    (weight(dims=[HUGE, HUGE]), "needs 8507059173023461586"),
    (weight(data_type=99), "has no element type that ONNX knows (number 99)"),
    (weight(data_type=0), "has no element type that ONNX knows (number 0)"),
    (weight(data_type=8), "has strings as raw_data"),
    (weight(float_data=[1.0]), "has raw_data and float_data"),
    (weight(segment=TensorProto.Segment(begin=1)), "is stored in segments"),
    (typed("float_data", [1.0] * 11), "has 11 entries of data and its shape [3, 4] of"),
    (typed("int32_data", [1] * 12), "of type FLOAT has its data in int32_data instead"),
    (typed("float_data", []), "has 0 entries of data"),
    (shape(-1), "value x: has the negative dimension -1"),
    (shape(HUGE), "value x (FLOAT 4611686018427387904x3) needs 5.53e+07 TB"),
]


@pytest.mark.parametrize(("change", "words"), FAULTS)
def test_faults(change: Callable[[Proto], object], words: str) -> None:
    proto = changed(change)
    text = refusal(proto)
    assert words in text
    assert text.startswith("model: ")


@pytest.mark.parametrize(("change", "words"), FAULTS)
def test_faults_of_a_model_in_memory(
    change: Callable[[Proto], object], words: str
) -> None:
    """Through onnx_ir the words differ, the kind of error does not."""
    try:
        model = ir.from_proto(changed(change))
    except ir.serde.SerdeError:
        return  # onnx_ir does not even represent it
    try:
        load(model)
    except Error as error:
        assert "\n" not in str(error)


def conv(**attributes: object) -> Proto:
    return models.chain([helper.make_node("Conv", ["x", "x"], ["y"], **attributes)])


def with_attribute(**fields: object) -> Proto:
    proto = conv()
    proto.graph.node[0].attribute.append(onnx.AttributeProto(**fields))
    return proto


ATTRIBUTES: list[tuple[Proto, str]] = [
    (conv(pads=1.5), "attribute pads must be INTS, it is FLOAT"),
    (conv(pads="same"), "attribute pads must be INTS, it is STRING"),
    (conv(group=[1]), "attribute group must be INT, it is INTS"),
    (conv(dilation=[1]), "has no attribute dilation in this opset (it has: auto_pad"),
    (with_attribute(name="group", type=2, f=1.0), "declared as INT and holds FLOAT"),
    (with_attribute(name="group"), "attribute group has no type"),
    (with_attribute(type=2, i=1), "has no name"),
    (with_attribute(name="group", type=2, ref_attr_name="g"), "stands for g, which is"),
    (with_attribute(name="pads", type=4), "declared as TENSOR and holds nothing"),
    (models.chain([models.unary(operator="Cast")]), "lacks the attribute to"),
]


@pytest.mark.parametrize(("proto", "words"), ATTRIBUTES)
def test_attributes(proto: Proto, words: str) -> None:
    text = refusal(proto)
    assert words in text
    assert "node Conv_0 (Conv)" in text or "node Cast_0 (Cast)" in text


def test_an_attribute_given_twice() -> None:
    proto = conv(group=1)
    proto.graph.node[0].attribute.append(proto.graph.node[0].attribute[0])
    assert "attribute group is given twice" in refusal(proto)


def test_exporters_notes_are_no_attributes() -> None:
    load(models.chain([helper.make_node("Relu", ["x"], ["y"], _note="kept")]))


def test_a_zero_that_the_writer_left_out() -> None:
    proto = models.chain([models.unary(operator="Softmax")])
    proto.graph.node[0].attribute.add(name="axis", type=onnx.AttributeProto.INT)
    assert next(iter(load(proto).graph)).attributes["axis"].as_int() == 0


def test_inner_values_must_not_hide_outer_ones() -> None:
    proto = models.branches()
    branch = proto.graph.node[0].attribute[0].g
    branch.node[0].output[0] = "x"
    branch.node[1].input[0] = "x"
    assert "has the name of a value outside of it" in refusal(proto)


def test_inner_nodes_need_defined_values() -> None:
    proto = models.branches()
    proto.graph.node[0].attribute[0].g.node[0].input[0] = "no"
    assert "node If_0/MatMul_0 (MatMul): needs value no" in refusal(proto)


def test_a_circle_through_a_branch() -> None:
    proto = models.branches()
    proto.graph.node.append(helper.make_node("Not", ["y"], ["flag"]))
    del proto.graph.input[1]
    assert "in a circle: Not_1 -> If_0 -> Not_1" in refusal(proto)


def nested(levels: int) -> Proto:
    """An If in an If in an If ..."""
    graph = helper.make_graph(
        [models.unary("x", "e")], "g", [], [models.value("e", [2, 3])]
    )
    for i in range(levels):
        node_ = helper.make_node("If", ["f"], [f"y{i}"], then_branch=graph)
        other = helper.make_graph(
            [models.unary("x", f"o{i}")], "o", [], [models.value(f"o{i}", [2, 3])]
        )
        node_.attribute.append(helper.make_attribute("else_branch", other))
        graph = helper.make_graph([node_], "g", [], [models.value(f"y{i}", [2, 3])])
    inputs = [models.value("x", [2, 3]), models.value("f", [], TensorProto.BOOL)]
    return models.model(graph.node, inputs, graph.output)


def test_as_deep_as_a_file_can_hold() -> None:
    assert sum(1 for _ in load(nested(30)).graph.all_nodes()) == 61
    assert "has graphs nested 31 deep" in refusal(nested(31))


@pytest.mark.parametrize("levels", (34, 200))
def test_deep_nesting(levels: int) -> None:
    """Written by hand: protobuf does not even build messages this deep."""
    graph = b""
    for _ in range(levels):
        attribute = field(6, graph + b"\x12\x01g") + b"\x0a\x01b\xa0\x01\x05"
        node_ = field(5, attribute) + b"\x22\x02If"
        graph = field(1, node_)
    content = b"\x08\x09" + field(7, graph) + field(8, b"\x10\x12")
    text = refusal(content)
    assert "has graphs nested too deep for protobuf" in text


def field(number: int, body: bytes) -> bytes:
    size, made = len(body), bytearray([number << 3 | 2])
    while size > 127:
        made.append(size & 127 | 128)
        size >>= 7
    return bytes(made) + bytes([size]) + body


def test_deep_nesting_of_large_graphs() -> None:
    graph = field(10, b"x" * 5000)
    for _ in range(60):
        graph = field(1, field(5, field(6, graph)))
    assert "nested more than 100 messages deep" in refusal(
        b"\x08\x09" + field(7, graph)
    )


def test_names_that_are_no_text() -> None:
    content = models.linear(3, 4).SerializeToString()
    assert "is not UTF-8" in refusal(content.replace(b"product", b"prod\xff\xfet"))
    assert "is 'prod\\x1b[t'" in refusal(content.replace(b"product", b"prod\x1b[t"))


def test_sparse_weights_are_unsupported() -> None:
    proto = models.linear(3, 4)
    sparse = proto.graph.sparse_initializer.add()
    sparse.values.name = "s"
    assert "weight s is a sparse tensor" in refusal(proto, Unsupported)


def test_sizes_are_judged_by_arithmetic() -> None:
    proto = models.chain([models.unary()])
    assert load(proto, memory=24).graph.inputs[0].name == "x"
    text = refusal(proto, memory=23)
    assert "value x (FLOAT 2x3) needs 24 bytes, 23 bytes of memory are free" in text


def test_a_broken_model_in_memory() -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    relu = ir.node("Relu", [ir.Value(name="elsewhere")])
    graph = ir.Graph([x], relu.outputs, nodes=[relu], opset_imports={"": 18})
    assert "is not a whole model" in refusal(ir.Model(graph, ir_version=9))


def test_weights_without_data_in_memory() -> None:
    weight = ir.Value(name="w", type=ir.TensorType(ir.DataType.FLOAT))
    graph = ir.Graph([], [], nodes=[], initializers=[], opset_imports={"": 18})
    graph.initializers["w"] = weight
    assert "weight w has no data" in refusal(ir.Model(graph, ir_version=9))


def test_the_dimension_of_a_scalar_weight() -> None:
    proto = models.linear(3, 4)
    scalar = onnx.numpy_helper.from_array(np.float32(1.0), "b")
    proto.graph.initializer[1].CopyFrom(scalar)
    tensor = load(proto).graph.initializers["b"].const_value
    assert tensor is not None and tensor.numpy() == 1
