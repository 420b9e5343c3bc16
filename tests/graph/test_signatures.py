"""If, Loop and Scan whose bodies are not theirs: one sentence, whatever is wrong."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import nanoloom
from nanoloom.errors import ModelError
from tests.linalg.harness import evaluate

HEAD = '<ir_version: 8, opset_import: ["": 18]>\n'
NEG, TWO = "(p) { p = Neg(x) }", "(p, q) { p = Neg(x)  q = Abs(x) }"


def check_refused(text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        nanoloom.compile(onnx.parser.parse_model(HEAD + text))


def if_of(
    then: str, other: str, outs: str = "float[2] y", condition: str = "bool c"
) -> str:
    names = ", ".join(x.split()[-1] for x in outs.split(", "))
    return f"""agraph ({condition}, float[2] x) => ({outs}) {{
      {names} = If (c) <then_branch = a () => {then}, else_branch = b {other}>
    }}"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (if_of(TWO, f"() => {NEG}"), "its then_branch has 2 outputs, expected 1"),
        (if_of(NEG, f"() => {TWO}"), "its else_branch has 2 outputs, expected 1"),
        (
            if_of(NEG, f"() => {NEG}", "float[2] y, float[2] z"),
            "its then_branch has 1 outputs, expected 2",
        ),
        (if_of(NEG, f"(float[2] k) => {NEG}"), "its else_branch has 1 inputs"),
        (if_of(NEG, f"() => {NEG}", condition="bool[2] c"), r"c has shape \[2\]"),
        (if_of(NEG, f"() => {NEG}", condition="bool[0] c"), r"c has shape \[0\]"),
    ],
)
def test_branches(text: str, said: str) -> None:
    check_refused(text, said)


def loop(
    body: str = "(int64 i, bool k, float[2] t) => (k2, t2) "
    "{ k2 = Identity(k)  t2 = Neg(t) }",
    outs: str = "float[2] y",
    trips: str = "int64 n",
    condition: str = "bool c",
) -> str:
    names = ", ".join(x.split()[-1] for x in outs.split(", "))
    return f"""agraph (float[2] s, {trips}, {condition}) => ({outs}) {{
      {names} = Loop (n, c, s) <body = r {body}>
    }}"""


LOOPS = [
    (loop(outs="float[2] y, float[2] z"), "its body has 2 outputs, expected 3"),
    (
        loop("(int64 i, bool k, float[2] t) => (k2) { k2 = Identity(k) }"),
        "its body has 1 outputs, expected 2",
    ),
    (
        loop("(int64 i, bool k) => (k2, t2) { k2 = Identity(k)  t2 = Neg(s) }"),
        "its body has 2 inputs, expected 3",
    ),
    (
        loop(
            "(int64 i, bool k, float[2] t) => (k2, t2) "
            "{ k2 = Identity(k)  t2 = Cast<to = 7>(t) }"
        ),
        "state t is float32 before, int64 after a step",
    ),
    (
        loop("(int64 i, bool k, float[2] t) => (t2, t3) { t2 = Neg(t)  t3 = Neg(t) }"),
        r"its condition t2 is float32 \[2\], not one bool",
    ),
    (
        loop(
            "(int64 i, bool k, float[2] t) => (k2, t2) "
            "{ t2 = Neg(t)  k2 = Greater(t, t2) }"
        ),
        r"its condition k2 is bool \[2\], not one bool",
    ),
    (loop(trips="int64[2] n"), r"its input n has shape \[2\], not one element"),
    (loop(trips="int64[0] n"), r"its input n has shape \[0\], not one element"),
    (loop(condition="bool[0] c"), r"its input c has shape \[0\], not one element"),
]


@pytest.mark.parametrize(("text", "said"), LOOPS)
def test_loops(text: str, said: str) -> None:
    check_refused(text, said)


def scan(
    attributes: str = "num_scan_inputs = 1",
    x: str = "float[3,4] x",
    given: str = "s, x",
    takes: str = "float[4] a, float[4] b",
    gives: str = "a2, b2",
    made: str = "t, o",
) -> str:
    outs = ", ".join(f"float[{name}0] {name}" for name in made.split(", "))
    return f"""agraph (float[4] s, {x}) => ({outs}) {{
      {made} = Scan ({given}) <{attributes},
        body = r ({takes}) => ({gives}) {{
          a2 = Add(a, b)  b2 = Neg(b)  a3 = Cast<to = 11>(a2) }}>
    }}"""


ONE = "num_scan_inputs = 1, "
SCANS = [
    (scan("num_scan_inputs = 0"), "it scans 0 inputs and has 2"),
    (scan("num_scan_inputs = -1"), "it scans -1 inputs and has 2"),
    (scan(f"num_scan_inputs = {1 << 40}"), "it scans 1099511627776 inputs and has 2"),
    (scan("num_scan_inputs = 2"), r"its sequences have the lengths \[4, 3\]"),
    (scan(f"{ONE}scan_input_axes = [5]"), "has the axis 5 of 2 dimensions"),
    (scan(f"{ONE}scan_input_axes = [-3]"), "has the axis -3 of 2 dimensions"),
    (scan(f"{ONE}scan_input_axes = [0, 0]"), "axes has 2 numbers for 1 input"),
    (scan(f"{ONE}scan_output_axes = [2]"), "has the axis 2 of 2 dimensions"),
    (scan(f"{ONE}scan_output_axes = [0, 0]"), "axes has 2 numbers for 1 output"),
    (scan(f"{ONE}scan_input_directions = [0, 0]"), "has 2 numbers for 1 input"),
    (scan(f"{ONE}scan_output_directions = [7]"), r"is \[7\], of 0 and 1 only"),
    (scan(x="float x"), "has the axis 0 of 0 dimensions"),
    (scan(given="x"), "its body has 2 inputs, expected 1"),
    (scan(takes="float[4] a, float[4] b, float[4] c"), "3 inputs, expected 2"),
    (scan(gives="a2"), "its body has 1 outputs, expected 2"),
    (scan(gives="a2, b2, a3"), "its body has 3 outputs, expected 2"),
    (scan(made="t"), "its body has 2 outputs, expected 1"),
    (scan(gives="a3, b2"), "state a is float32 before, float64 after a step"),
]


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize(("text", "said"), SCANS)
def test_scans(text: str, said: str) -> None:
    check_refused(text, said)


def test_the_same_without_a_mistake() -> None:
    s, x = np.ones(4, np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)
    t, o = evaluate(onnx.parser.parse_model(HEAD + scan()), {"s": s, "x": x})
    np.testing.assert_array_equal(t, s + x.sum(0))
    np.testing.assert_array_equal(o, -x)
    feeds = {"s": s[:2], "n": np.array(3), "c": np.array(True)}
    (y,) = evaluate(onnx.parser.parse_model(HEAD + loop()), feeds)
    np.testing.assert_array_equal(y, -s[:2])
