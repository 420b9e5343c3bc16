"""A limit for what is suppressed, from the readers of what is left."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from nanoloom.graph.stage import optimize
from nanoloom.graph.unique_names import nested
from nanoloom.linalg.operators import OPERATORS
from tests.graph.data_dependent.detectors import DETECTIONS, ssdlite


def suppressed(model: onnx.ModelProto) -> tuple[int, ...]:
    """The largest shape of what NonMaxSuppression leaves."""
    made = optimize(ir.serde.deserialize_model(model), OPERATORS.keys())
    (node,) = [x for x in nested(made.graph) if x.op_type == "Suppressed"]
    shape = node.outputs[0].shape
    assert shape is not None
    return tuple(shape.numpy())


def test_a_detector_suppresses_what_it_keeps() -> None:
    """Through the branch that has it, to the slice behind the If."""
    assert suppressed(ssdlite()) == (DETECTIONS, 3)


@pytest.mark.parametrize(
    ("classes", "behind", "most"),
    [
        (1, "y = Slice(i, a0, five, a0)", 5),
        (1, "y = Slice(i, a0, five)", 5),
        (
            1,
            """g = Gather<axis = 1>(i, two)
            t = Squeeze(g, a1)
            y = Slice(t, a0, five)""",
            5,
        ),
        (1, "y = Slice(i, a0, far, a0)", 30),
        (1, "y = Slice(i, a1, five, a0)", 30),
        (1, "y = Slice(i, a0, five, a1)", 30),
        (1, "y = Slice(i, a0, minus1, a0)", 30),
        (1, "y = Slice(i, a0, five, a0, two)", 30),
        (1, "g = Gather<axis = 0>(i, two)\n y = Slice(g, a0, five)", 30),
        (1, "h = Slice(i, a0, five)\n y = Concat<axis = 0>(h, i)", 30),
        (1, "y = Identity(i)", 30),
        (3, "y = Slice(i, a0, five, a0)", 90),
    ],
)
def test_who_reads_the_first_rows_only(classes: int, behind: str, most: int) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 18]>
model (float[1, 30, 4] b, float[1, {classes}, 30] s) => (int64[n, m] y)
<int64[1] a0 = {{0}}, int64[1] a1 = {{1}}, int64[1] two = {{2}}, int64[1] five = {{5}},
 int64[1] far = {{9223372036854775807}}, int64[1] minus1 = {{-1}},
 int64[1] all = {{9999}}, float[1] overlap = {{0.3}}>
{{ i = NonMaxSuppression(b, s, all, overlap)
{behind} }}""".replace("n, m] y", "n] y" if "Squeeze" in behind else "n, m] y")
    )
    assert suppressed(model) == (most, 3)
