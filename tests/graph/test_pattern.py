"""Trees of operators are found as equations write them."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from onnx import parser
from onnx.shape_inference import infer_shapes
from onnx_ir import serde

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.patterns.pattern import Found, Pattern, is_constant
from nanoloom.graph.patterns.rules import Rule, apply_rules

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
        ("Add(..., Mul(x, k))", {}, ["k=c x=a"]),
        ("Add(Mul(..., k), ...)", {}, ["k=c"]),
        ("Add(Mul(x, k) | x, y)", {}, ["k=c x=a y=b", "x=m y=b", "x=b y=m"]),
        ("Add(Neg(x) | Mul(x, k), y)", {}, ["k=c x=a y=b"]),
        ("_(made := Mul(x, k), y)", {}, ["k=c made=m x=a y=b"]),
        ("Add(_(x, k), y)", {}, ["k=c x=a y=b"]),
        ("Add(x, y, k)", {}, []),
        ("Sub(x, y)", {}, []),
    ],
)
def test_which_values(text: str, given: dict[str, str], wanted: list[str]) -> None:
    assert ways(Pattern(text, k=is_constant), **given) == wanted


@pytest.mark.parametrize("text", ["Add(x, 1)", "Add(x + y)", "Add((x, y))"])
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(ValueError, match="is no part of a pattern"):
        Pattern(text)


def test_shared_values_have_other_readers() -> None:
    pattern = Pattern("Add(Mul(x, k), y)", shared=True, k=is_constant)
    assert ways(pattern, read="m") == ["k=c x=a y=b"]


def test_what_only_hands_on_is_passed() -> None:
    text = TEXT.replace("m = Mul(FACTORS)", "n = Identity(a)  m = Identity(n)")
    text = text.replace("OTHER", "b").replace("READ", "a")
    model = serde.deserialize_model(infer_shapes(parser.parse_model(text)))
    (node,) = (x for x in model.graph if x.op_type == "Add")
    pattern = Pattern(
        "Add(x, y)",
        past=lambda node: node.op_type == "Identity",
        y=lambda y: y.name == "b",
    )
    (found,) = pattern.match(node)
    assert found["x"].name == "a"


def test_rules_are_tried_until_one_changes_the_graph() -> None:
    text = TEXT.replace("FACTORS", "a, c").replace("OTHER", "b").replace("READ", "a")
    model = serde.deserialize_model(infer_shapes(parser.parse_model(text)))
    seen: list[str] = []

    def rewrite(graph: GraphEditor, node: ir.Node, found: Found) -> bool:
        seen.append(f"{node.op_type} {found['x'].name}")
        if node.op_type != "Add" or found["x"].name != "b":
            return False
        graph.replace(node, found["y"])
        return True

    rules = [Rule(Pattern(x), rewrite) for x in ("Add(x, y)", "_(x)", "_(x, ...)")]
    apply_rules(GraphEditor(model.graph), rules)
    # A node that is gone is asked no more; one that stays, by each rule.
    assert seen == ["Mul a", "Add m", "Add b", "Neg a", "Neg a"]
