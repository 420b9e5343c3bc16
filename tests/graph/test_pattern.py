"""Trees of operators are found as equations write them."""

from __future__ import annotations

import pytest
from onnx import parser
from onnx.shape_inference import infer_shapes
from onnx_ir import serde

from nanoloom.graph.patterns.pattern import Pattern, is_constant

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] a, float[3] b) => (float[2, 3] y, float[2, 3] z)
<float[1] c = {2.0}> { m = Mul(FACTORS)  y = Add(m, OTHER)  z = Neg(READ) }"""


def ways(
    pattern: Pattern, factors: str = "a, c", other: str = "b", read: str = "a"
) -> list[str]:
    """The values of each way, by name."""
    text = TEXT.replace("FACTORS", factors).replace("OTHER", other)
    proto = infer_shapes(parser.parse_model(text.replace("READ", read)))
    model = serde.deserialize_model(proto)
    (node,) = (x for x in model.graph if x.op_type == "Add")
    found = pattern.match(node)
    return [" ".join(f"{k}={v.name}" for k, v in sorted(x.items())) for x in found]


@pytest.mark.parametrize(
    ("text", "given", "wanted"),
    [
        ("Add(x, y)", {}, ["x=m y=b", "x=b y=m"]),
        ("Add(Mul(x, k), y)", {}, ["k=c x=a y=b"]),
        ("Add(y, Mul(k, x))", {}, ["k=c x=a y=b"]),
        ("Add(Mul(x, k), y)", {"factors": "c, a"}, ["k=c x=a y=b"]),
        ("Add(Mul(x, k), y)", {"read": "m"}, []),  # somebody else reads it
        ("Add((Mul | Div)(x, k), y)", {}, ["k=c x=a y=b"]),
        ("Add((Neg | Div)(x, k), y)", {}, []),
        ("Add(made := Mul(x, k), y)", {}, ["k=c made=m x=a y=b"]),
        ("Add(Mul(x, k), x)", {}, []),
        ("Add(Mul(x, k), x)", {"other": "a"}, ["k=c x=a"]),
        ("Add(Mul(x, ...), y)", {}, ["x=a y=b"]),
        ("Add(x, y, k)", {}, []),
        ("Sub(x, y)", {}, []),
    ],
)
def test_which_values(text: str, given: dict[str, str], wanted: list[str]) -> None:
    assert ways(Pattern(text, k=is_constant), **given) == wanted
