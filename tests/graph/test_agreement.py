"""Element types of inputs that an operator does not take, or does not mix."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import ModelError

HEADER = '<ir_version: 10, opset_import: ["" : 18]>'


@pytest.mark.parametrize(
    ("inputs", "node", "reason"),
    [
        ("float[3] x, int32[3] y", "Add (x, y)", "input y is int32, another one"),
        ("float[3] x, int64[3] y", "Where (x, y, y)", "input x is float32, which the"),
        ("float[3] x, float[1] y", "Gather (x, y)", "input y is float32, which the"),
        ("int32[3] x, float[3] y", "Exp (x)", "input x is int32, which the operator"),
        ("bool[3] x, float[3] y", "Concat <axis = 0> (y, x)", "input x is bool, an"),
    ],
)
def test_types_that_do_not_agree(
    inputs: str, node: str, reason: str, tmp_path: Path
) -> None:
    text = f"{HEADER} g ({inputs}) => (float[3] z) {{ z = {node} }}"
    with pytest.raises(ModelError, match=reason):
        nanoloom.compile(parser.parse_model(text), cache=Cache(tmp_path))


def test_a_condition_is_bool(tmp_path: Path) -> None:
    text = f"""{HEADER} g (float c, float[3] x) => (float[3] z) {{
        z = If (c) <
            then_branch = a () => (float[3] u) {{ u = Neg (x) }},
            else_branch = b () => (float[3] v) {{ v = Abs (x) }}
        >
    }}"""
    with pytest.raises(ModelError, match="input c is float32, which the operator"):
        nanoloom.compile(parser.parse_model(text), cache=Cache(tmp_path))


@pytest.mark.parametrize(
    "node",
    [
        "Relu (x)",
        "Identity (x)",
        "Add (x, one)",
        "Neg (one)",
        "Constant <value = float[3] {1, 2, 3}> ()",
    ],
)
def test_an_output_of_another_type_than_its_node_gives(
    node: str, tmp_path: Path
) -> None:
    text = f"""{HEADER} g (float[3] x) => (int32[3] z) <float one = {{1.0}}>
        {{ z = {node} }}"""
    with pytest.raises(ModelError, match="output z is float32, the model says int32"):
        nanoloom.compile(parser.parse_model(text), cache=Cache(tmp_path))
