"""What is wrong inside of a model is said in one sentence that names the place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from nanoloom.errors import Error
from nanoloom.frontend.onnx import load
from tests.frontend import models
from tests.frontend.models import refusal

Proto = onnx.ModelProto


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
    (opset(6), "opset 6 is not supported, 7 to 28 are"),
    (opset(99), "opset 99 is not supported"),
    (opset(-1), "impossible version -1"),
    (lambda p: p.opset_import.add(domain="", version=17), "versions 18 and 17 of"),
    (
        lambda p: setattr(p.opset_import[0], "domain", "x"),
        "product (MatMul): its operat",
    ),
    (lambda p: p.graph.ClearField("output"), "the graph has no output"),
    (lambda p: p.graph.output.add(name="z"), "output z is not computed"),
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
    (with_attribute(name="auto_pad", type=3, s=b"\xff"), "is no text in UTF-8"),
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


def test_names_that_are_no_text() -> None:
    content = models.linear(3, 4).SerializeToString()
    assert "is not UTF-8" in refusal(content.replace(b"product", b"prod\xff\xfet"))
    assert "is 'prod\\x1b[t'" in refusal(content.replace(b"product", b"prod\x1b[t"))


def test_sizes_are_judged_by_arithmetic() -> None:
    proto = models.chain([models.unary()])
    assert load(proto, memory=24).graph.inputs[0].name == "x"
    text = refusal(proto, memory=23)
    assert "value x (FLOAT 2x3) needs 24 bytes, 23 bytes of memory are free" in text


def test_nothing_of_rows_that_no_memory_holds() -> None:
    """numpy makes no array of such a shape, though it would have no element."""
    for shape in ([0, 2**62], [0, 2**31, 2**31], [2**14, 0, 2**31]):
        proto = models.chain([models.unary()])
        proto.graph.input[0].CopyFrom(models.value("x", shape))
        assert "more bytes than there are addresses" in refusal(proto)


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
