"""nanoloom verify: models of strings, and those that make dictionaries of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.conftest import Command
from tests.cli.test_verify import spoil

ML = "ai.onnx.ml"
CLASSES: dict[str, list[Any]] = {"string": ["red", "blue", "a"], "int": [5, 2, 9]}


def write(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def classifier(path: Path, kind: str) -> Path:
    """A linear classifier with ZipMap, whose classes are in no order."""
    key = TensorProto.STRING if kind == "string" else TensorProto.INT64
    names = ("strings",) * 2 if kind == "string" else ("ints", "int64s")
    given, zipped = ({f"classlabels_{x}": CLASSES[kind]} for x in names)
    nodes = [
        helper.make_node(
            "LinearClassifier", ["x"], ["label", "scores"], domain=ML,
            coefficients=[1.0, -1.0, 0.5, 2.0, 0.25, -3.0],
            intercepts=[0.0, 0.1, 0.2], **given,
        ),
        helper.make_node("ZipMap", ["scores"], ["maps"], domain=ML, **zipped),
    ]  # fmt: skip
    number = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(key, number))
    return write(
        path,
        nodes,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 2])],
        [
            helper.make_tensor_value_info("label", key, [4]),
            helper.make_value_info("maps", maps),
        ],
    )


@pytest.mark.parametrize("kind", CLASSES)
def test_labels_and_scores(tmp_path: Path, nanoloom: Command, kind: str) -> None:
    """ONNX's reference knows no ZipMap; ONNX Runtime gives dictionaries."""
    path = classifier(tmp_path / "m.onnx", kind)
    for against in ("ort", "reference"):
        said = nanoloom("verify", path, "--against", against)
        assert said.status == 0 and said.out.count(" ok") == 2, said


@pytest.mark.parametrize("output", ["label", "maps"])
def test_wrong_ones(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    path = classifier(tmp_path / "m.onnx", "string")
    spoil(monkeypatch, lambda array: array[:, ::-1] if array.ndim > 1 else array + "s",
          output)  # fmt: skip
    said = nanoloom("verify", path)
    assert said.status != 0 and said.out.count("DIFFERS") == 1, said
    assert f"{output}: 4 of 4 strings differ" in said.out or output == "maps"


def test_strings_go_in(tmp_path: Path, nanoloom: Command) -> None:
    """The places that the command draws are strings of the model, or of none."""
    nodes = [
        helper.make_node("OneHotEncoder", ["x"], ["hot"], domain=ML, cats_strings=["a"])
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.STRING, [4])]
    made = [helper.make_tensor_value_info("hot", TensorProto.FLOAT, [4, 1])]
    said = nanoloom("verify", write(tmp_path / "m.onnx", nodes, given, made))
    assert said.status == 0 and "agrees with ONNX Runtime" in said.out, said
