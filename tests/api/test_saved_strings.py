"""Libraries take and give strings as the program does that they are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom import manifest
from nanoloom.errors import InputError
from tests.vector.kernel_harness import shared_cache

WORDS = ["pear", "apple", "ß"]


def turned(kind: str) -> nanoloom.Program:
    """Strings to their places in WORDS, or numbers to words."""
    keys, values = {"keys_strings": WORDS}, {"values_int64s": [7, 8, 9]}
    sides = TensorProto.STRING, TensorProto.INT64
    if kind == "numbers":
        keys, values, sides = (
            {"keys_int64s": [7, 8, 9]},
            {"values_strings": WORDS},
            sides[::-1],
        )
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **keys, **values
    )
    x, y = (
        helper.make_tensor_value_info(name, side, ["n", 2])
        for name, side in zip("xy", sides, strict=True)
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
    graph = helper.make_graph([node], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=opsets)
    return nanoloom.compile(model, threads=1, cache=shared_cache())


def test_strings_in(tmp_path: Path) -> None:
    program = turned("strings")
    file = program.save(tmp_path / "words.so")
    loaded = nanoloom.load(file)
    for rows in (1, 3):
        x = np.resize(np.array([*WORDS, "no word of it", "another"], object), (rows, 2))
        got = loaded({"x": x})["y"]
        assert np.array_equal(got, program({"x": x})["y"])
        assert (got[0] == [7, 8]).all()
    assert "x string" in repr(loaded)
    with pytest.raises(InputError, match=r"input x.*the model wants strings"):
        loaded({"x": np.zeros((1, 2), np.int64)})
    assert manifest.read(file)["strings"]["inputs"] == ["x"]


def test_strings_out(tmp_path: Path) -> None:
    program = turned("numbers")
    loaded = nanoloom.load(program.save(tmp_path / "numbers.so"))
    x = np.array([[9, 7], [8, 5]])
    got = loaded({"x": x})["y"]
    assert got.tolist() == program({"x": x})["y"].tolist()
    assert got[0].tolist() == ["ß", "pear"]
