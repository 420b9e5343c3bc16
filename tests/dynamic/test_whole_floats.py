"""Sizes that a model computes in floats, as whole numbers: below 0, too."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from nanoloom.dynamic.whole_floats import use_whole_numbers

TEXT = """<ir_version: 10, opset_import: ["" : {opset}]>
g (float[n, m] x) => (int64[k] y, int64[k] z, float[k] f)
  <float over = {{{over}}}, float less = {{{less}}}> {{
  s = Shape(x)  whole = Cast<to = 1>(s)  moved = Sub(whole, less)
  parts = Div(moved, over)  f = {rounded}(parts)  y = Cast<to = 7>(f)
  twice = Mul(f, over)  i = Cast<to = 7>(twice)  z = Add(i, s)
}}"""


def both(rounded: str, over: int, less: int, opset: int = 20) -> list[onnx.ModelProto]:
    """A model as it is written, and with whole numbers."""
    text = TEXT.format(rounded=rounded, over=over, less=less, opset=opset)
    given = onnx.parser.parse_model(text)
    changed = ir.from_proto(given)
    use_whole_numbers(changed.graph)
    return [given, ir.to_proto(changed)]


@pytest.mark.parametrize("over", [1, 7, 32])
@pytest.mark.parametrize("rounded", ["Floor", "Ceil"])
def test_the_same_numbers(rounded: str, over: int) -> None:
    models = both(rounded, over, less=9)
    assert any(node.op_type == "Mod" for node in models[1].graph.node)
    for shape in ((1, 9), (5, 16), (31, 41), (100, 3)):
        x = np.zeros(shape, np.float32)
        one, other = (ReferenceEvaluator(m).run(None, {"x": x}) for m in models)
        for a, b in zip(one, other, strict=True):
            assert np.array_equal(np.asarray(a), np.asarray(b))
            assert not np.array_equal(np.asarray(a), np.asarray(b) + 1)


def test_what_stays() -> None:
    """Products of two sizes, which a float may round; Max has no integers there."""
    given, changed = both("Floor", 2, less=0, opset=11)
    assert len(given.graph.node) == len(changed.graph.node)
    text = """<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x) => (int64[k] y) {
  s = Shape(x)  f = Cast<to = 1>(s)  g = Mul(f, f)  y = Cast<to = 7>(g)
}"""
    model = ir.from_proto(onnx.parser.parse_model(text))
    use_whole_numbers(model.graph)
    (made,) = model.graph.outputs
    producer = made.producer()
    assert producer is not None and producer.inputs[0] is not None
    assert producer.inputs[0].name == "g"
