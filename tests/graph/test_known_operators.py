"""Operators that nobody knows are refused by their names, not by shapes behind them."""

from __future__ import annotations

import pytest
from onnx import parser

from nanoloom.errors import Unsupported
from nanoloom.frontend.onnx import load
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS

REFUSED = {
    "com.microsoft.AttnLSTM": "com.microsoft::AttnLSTM.*operator of ONNX Runtime",
    "other.Bar": "other::Bar.*its domain other is unknown",
    "nanoloom.SameSize": "nothing says which shape its output a has.*SameSize is for",
    "Gelu": r"Gelu\): is in ai.onnx only from opset 20 on, the model has 18",
    "Rleu": r"Rleu\): is no operator of ai.onnx; did you mean Relu",
}


@pytest.mark.parametrize("name", REFUSED)
def test_by_name(name: str) -> None:
    optimize(load(parser.parse_model(text("Relu"))), OPERATORS.keys())
    with pytest.raises(Unsupported, match=REFUSED[name]):
        optimize(load(parser.parse_model(text(name))), OPERATORS.keys())


def text(name: str) -> str:
    """A model whose middle operator is this one, the shape behind it unknown."""
    imports = '"" : 18, "com.microsoft" : 1, "other" : 1, "nanoloom" : 1'
    return f"""<ir_version: 9, opset_import: [{imports}]>
        g (float[4] x) => (float[4] y) {{ a = {name}(x) y = Tanh(a) }}"""
