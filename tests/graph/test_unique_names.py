"""Names of what passes make: the same each time, and after their nodes in the end."""

from __future__ import annotations

import onnx_ir as ir
from onnx import parser

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.unique_names import name_made

TEXT = """
<ir_version: 8, opset_import: ["": 17]>
main (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }
"""


def test_names_do_not_depend_on_memory() -> None:
    found: list[list[str | None]] = []
    kept: list[ir.Model] = []  # so that objects of the next one lie elsewhere
    for _ in range(2):
        model = ir.from_proto(parser.parse_model(TEXT))
        kept.append(model)
        (relu,) = model.graph
        relu.name = "relu"
        edit = GraphEditor(model.graph)
        turned = edit.transpose(model.graph.inputs[0], [1, 0], relu)
        again = edit.reshape(turned, [6], relu)
        before = [turned.name, again.name]
        name_made(model.graph)
        found.append([*before, turned.name, again.name])
    assert found[0] == found[1]
    first, second, *_ = found[0]
    assert first != second
    assert found[0][2:] == ["relu/layout", "relu/shape"]
