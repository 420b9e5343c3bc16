"""What puts rows behind an input writes them in place; what does more is refused."""

from __future__ import annotations

import pytest
from onnx import parser
from onnx_ir import serde

from nanoloom.errors import Unsupported
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3, 5, 4] past, float[2, 1, 3, 4] x, float[2, 3, 4, 6] q)
    => (float[2, 3, 6, 4] present, float[2, 3, 6, 6] y, float[2, 3, 4, 5] z)
{
    new = Transpose<perm = [0, 2, 1, 3]>(x)
    present = Concat<axis = -2>(past, new)
    y = MatMul(present, q)
    z = Identity(q)
}
"""
PAIRS = (("past", "present"),)


def rewritten(text: str) -> tuple[list[str], list[int]]:
    """The operators, and the shape of the output."""
    graph = parser.parse_model(text)
    del graph.graph.output[2:]
    model = serde.deserialize_model(graph)
    optimize(model, OPERATORS.keys(), caches=PAIRS)
    made = next(x for x in model.graph.outputs if x.name == "present")
    return [node.op_type for node in model.graph], list(made.shape or ())  # type: ignore[arg-type] - all numbers


def test_rows_behind_others() -> None:
    operators, shape = rewritten(TEXT)
    assert operators == ["Transpose", "Append", "Transpose", "MatMul"]
    assert shape == [6, 2, 3, 4]


def begun(text: str) -> tuple[list[str], list[str | None], list[int]]:
    """Operators, inputs, and the shape of the output where nothing is there yet."""
    graph = parser.parse_model(text)
    del graph.graph.output[1:]
    model = serde.deserialize_model(graph)
    optimize(model, OPERATORS.keys(), caches=PAIRS, starts=True)
    (made,) = model.graph.outputs
    names = [x.name for x in model.graph.inputs]
    assert made.name == "present"
    return [node.op_type for node in model.graph], names, list(made.shape or ())  # type: ignore[arg-type] - all numbers


def test_rows_before_which_nothing_is() -> None:
    text = TEXT.replace("Concat<axis = -2>(past, new)", "Identity(new)")
    text = text.replace("float[2, 3, 6, 4] present", "float[2, 3, 1, 4] present")
    operators, inputs, shape = begun(text)
    assert operators == ["Transpose"] and inputs == ["x", "q"]
    assert shape == [1, 2, 3, 4]


def test_rows_that_are_read_before_they_are_there() -> None:
    with pytest.raises(Unsupported, match="past is read where nothing is kept yet"):
        begun(TEXT)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("(past, new)", "(new, past)", "does not put one value behind past"),
        ("y = MatMul(present", "r = Relu(past) w = Concat<axis = 2>(r, new) "
         "y = MatMul(w", "past is read by others"),
        ("present = Concat", "before = Concat", "made by Exp, not by Concat"),
    ],
)  # fmt: skip
def test_what_is_more(old: str, new: str, reason: str) -> None:
    text = TEXT.replace(old, new)
    if "Exp" in reason:
        text = text.replace("z = Identity", "present = Exp(before) z = Identity")
    with pytest.raises(Unsupported, match=reason):
        rewritten(text)
