"""Strings of a model as numbers inside of it, and as strings at each call."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import InputError, Unsupported

ML = "ai.onnx.ml"
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
Value = tuple[str, int, list[Any]]


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: list[Value],
    outputs: list[Value],
    tensors: list[onnx.TensorProto] | None = None,
    version: int = 3,
) -> onnx.ModelProto:
    values = [
        [helper.make_tensor_value_info(*value) for value in side]
        for side in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "g", *values, tensors or [])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def classical(op: str, inputs: list[str], outputs: list[str], **more: Any) -> Any:
    return helper.make_node(op, inputs, outputs, domain=ML, name=op, **more)


def compiled(model: onnx.ModelProto) -> nanoloom.Program:
    return nanoloom.compile(model, cache=Cache.temporary())


def objects(*texts: Any) -> np.ndarray:
    return np.array(texts, object)


def test_categories_in_and_labels_out() -> None:
    """Strings that no part of the model names are none of its categories."""
    nodes = [
        classical("OneHotEncoder", ["x"], ["hot"], cats_strings=["red", "blue"]),
        classical(
            "LabelEncoder", ["x"], ["label"], default_string="other",
            keys_strings=["red", "blue"], values_strings=["warm", "cold"],
        ),
        helper.make_node("Identity", ["x"], ["same"]),
    ]  # fmt: skip
    outputs = [
        ("hot", FLOAT, ["n", 2]),
        ("label", STRING, ["n"]),
        ("same", STRING, ["n"]),
    ]
    program = compiled(model_of(nodes, [("x", STRING, ["n"])], outputs))
    assert [x.is_text for x in (*program.inputs, *program.outputs)] == [
        True, False, True, True,
    ]  # fmt: skip
    texts = objects("blue", "grün", "red", "", "blue")
    for given in (texts, np.array(texts.tolist()), texts.tolist()):
        made = program({"x": given})
        assert made["hot"].tolist() == [[0, 1], [0, 0], [1, 0], [0, 0], [0, 1]]
        assert made["label"].tolist() == ["cold", "other", "warm", "other", "cold"]
        assert made["same"].tolist() == texts.tolist()
    assert "grün" not in program.vocabulary
    assert program.vocabulary[:2] == ("red", "blue")


@pytest.mark.parametrize("version", [1, 2])
def test_strings_to_numbers_and_back(version: int) -> None:
    """The oldest form has one list for both ways."""
    names = ["low", "high"]
    if version == 1:
        there = back = {"classes_strings": names}
    else:
        there = {"keys_strings": names, "values_int64s": [0, 1]}
        back = {"keys_int64s": [0, 1], "values_strings": names}
    nodes = [
        classical("LabelEncoder", ["x"], ["code"], **there),
        classical("LabelEncoder", ["code"], ["text"], **back),
    ]
    outputs = [("code", INT64, ["n"]), ("text", STRING, ["n"])]
    program = compiled(
        model_of(nodes, [("x", STRING, ["n"])], outputs, version=version)
    )
    made = program({"x": objects("high", "low", "none")})
    assert made["code"].tolist() == [1, 0, -1]
    assert made["text"].tolist() == ["high", "low", "_Unused"]


def test_category_mapper() -> None:
    lists = {"cats_strings": ["a", "b"], "cats_int64s": [7, -2], "default_int64": 99}
    nodes = [classical("CategoryMapper", ["x"], ["y"], **lists)]
    model = model_of(nodes, [("x", STRING, [3])], [("y", INT64, [3])], version=1)
    assert compiled(model)({"x": objects("b", "z", "a")})["y"].tolist() == [-2, 99, 7]


def test_an_argmax_among_strings() -> None:
    """As exporters choose labels: ArrayFeatureExtractor of a constant, and a Cast."""
    nodes = [
        helper.make_node("ArgMax", ["x"], ["i"], axis=1, keepdims=0),
        classical("ArrayFeatureExtractor", ["classes", "i"], ["l"]),
        helper.make_node("Cast", ["l"], ["t"], to=STRING),
        helper.make_node("Reshape", ["t", "flat"], ["label"]),
    ]
    tensors = [
        helper.make_tensor("classes", STRING, [3], ["cat", "dog", "emu"]),
        helper.make_tensor("flat", INT64, [1], [-1]),
    ]
    model = model_of(
        nodes, [("x", FLOAT, ["n", 3])], [("label", STRING, ["n"])], tensors, 1
    )
    x = np.array([[0, 2, 1], [3, 2, 1], [0, 0, 1], [0, 1, 0]], np.float32)
    made = compiled(model)({"x": x})["label"]
    assert made.tolist() == ["dog", "cat", "emu", "dog"]


def linear(labels: dict[str, Any]) -> onnx.NodeProto:
    return classical(
        "LinearClassifier", ["x"], ["label", "scores"], coefficients=[1.0, -1.0],
        intercepts=[0.0, 0.5], **labels,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_zip_map_is_left_out(kind: str) -> None:
    """The output is the tensor of scores, in the labels' order; it is said once."""
    labels: list[Any] = [5, 9] if kind == "int64" else ["no", "yes"]
    named = {f"classlabels_{'ints' if kind == 'int64' else 'strings'}": labels}
    zipped = {f"classlabels_{'int64s' if kind == 'int64' else 'strings'}": labels}
    nodes = [linear(named), classical("ZipMap", ["scores"], ["maps"], **zipped)]
    key = INT64 if kind == "int64" else STRING
    model = model_of(
        nodes, [("x", FLOAT, ["n", 1])], [("label", key, ["n"])], version=1
    )
    maps = helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, []))
    wanted = helper.make_sequence_type_proto(maps)
    model.graph.output.append(helper.make_value_info("maps", wanted))
    with pytest.warns(RuntimeWarning, match="output maps is a tensor") as said:
        program = compiled(model)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = program({"x": np.array([[1.0], [-2.0]], np.float32)})
    assert made["label"].tolist() == [labels[0], labels[1]]
    assert made["maps"].tolist() == [[1.0, -0.5], [-2.0, 2.5]]


def test_numbers_as_strings_are_refused() -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=STRING, name="print")
    model = model_of([node], [("x", FLOAT, [2])], [("y", STRING, [2])])
    with pytest.raises(Unsupported, match=r"node print .*: writes numbers as strings"):
        compiled(model)


def test_numbers_where_strings_are_wanted() -> None:
    nodes = [classical("OneHotEncoder", ["x"], ["y"], cats_strings=["a"])]
    program = compiled(model_of(nodes, [("x", STRING, [2])], [("y", FLOAT, [2, 1])]))
    with pytest.raises(
        InputError, match="input x: is float64, the model wants strings"
    ):
        program({"x": np.zeros(2)})
    with pytest.raises(InputError, match="x is missing"):
        program({"z": objects("a", "b")})
