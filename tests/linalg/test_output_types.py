"""Outputs have element types that programs compute on, or are refused by name."""

from __future__ import annotations

import onnx.parser
import pytest

import nanoloom
from nanoloom.errors import Unsupported

CONSTANT = """<ir_version: 13, opset_import: ["":25]>
agraph (float[3] x) => ({kind}[3] y, float[3] z)
 <float[3] w = {{1, 2, 3}}, float s = {{1.0}}, {kind} zero = {{0}}> {{
 y = QuantizeLinear(w, s, zero)
 z = Relu(x)
}}"""


@pytest.mark.parametrize("kind", ["int4", "uint2", "float8e5m2"])
def test_a_constant_output_of_a_narrow_type_is_refused(kind: str) -> None:
    model = onnx.parser.parse_model(CONSTANT.format(kind=kind))
    with pytest.raises(Unsupported, match=f"y has element type {kind.upper()}"):
        nanoloom.compile(model)
