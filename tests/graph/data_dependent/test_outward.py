"""Scan outputs of loops in branches and in bodies: as many rows as the data say."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import nanoloom
from tests.kernels.repeats.ended_loops import HEAD, reference
from tests.vector.kernel_harness import shared_cache

Feeds = dict[str, np.ndarray]
# Shows rows as long as its number of trips, times what it is called with, is small.
INNER = """s1, rows = Loop (MOST, go, s) <
  body = inner (int64 i, bool kk, int64[4] v) => (on, w, w2) {
    one = Constant<value_int = 1>()  prime = Constant<value_int = 101>()
    w0 = Add(v, one)  w = Mod(w0, prime)  w2 = Mul(w, w)  next = Add(i, one)
    on = Less(next, trips) }>"""
CONSTANTS = """go = Constant<value = bool {1}>()  two = Constant<value_int = 2>()
  one1 = Constant<value_int = 1>()  zero = Constant<value_int = 0>()
  little = Constant<value_int = 300>()  axis = Constant<value_ints = [0]>()"""
BRANCH = f"""branch (bool c, int64[4] s, int64 trips) => (int64[4] y, int64[n,4] all) {{
  {CONSTANTS}
  y, all = If (c) <
    then_branch = a () => (s1, rows) {{ {INNER} }},
    else_branch = b () => (t, u) {{ t = Neg(s)  u = Unsqueeze(s, axis) }}>
}}"""
# Summed in each trip of the outer loop, or shown by it.
BODY = f"""body (int64[4] x, int64 trips, int64 end, int64 given) => (
    int64[4] y, int64 n SHAPE) {{
  {CONSTANTS}
  y, n SHOWN = Loop (OUTER, go, x, zero) <
    body = outer (int64 j, bool k, int64[4] s, int64 before) => (k2, s2, n2 MADE) {{
      n2 = Add(before, one1)
      {INNER}
      sum = ReduceSum<keepdims = 0>(rows, axis)  odd = Add(sum, one1)
      hundred = Constant<value_int = 101>()  s2 = Mod(odd, hundred)
      ENDS }}>
}}"""


def body(outer: str, most: str, *, ends: bool, shows: bool) -> onnx.ModelProto:
    text = BODY.replace("OUTER", outer).replace("MOST", most)
    last = "k2 = Less(n2, end) LAST" if ends else "k2 = Identity(k) LAST"
    text = text.replace("ENDS", last)
    for word, value in (
        ("SHAPE", ", int64[m,n,4] all"), ("SHOWN", ", all"), ("MADE", ", r2"),
        ("LAST", " r2 = Identity(rows)"),
    ):  # fmt: skip
        text = text.replace(word, value if shows else "")
    made = onnx.parser.parse_model(HEAD + text)
    used = {x for node in made.graph.node for x in node.input} | {"trips"}
    used |= {"end"} if ends else set()
    for value in [x for x in made.graph.input if x.name not in used]:
        made.graph.input.remove(value)
    return made


def compare(model: onnx.ModelProto, calls: list[Feeds]) -> nanoloom.Program:
    """One program for all calls, exact, at one thread and at two."""
    names = {x.name for x in model.graph.input}
    programs = [
        nanoloom.compile(model, threads=n, cache=shared_cache()) for n in (1, 2)
    ]
    for feeds in calls:
        given = {name: x for name, x in feeds.items() if name in names}
        wanted = reference(model, given)
        for program in programs:
            for made, right in zip(program(given).values(), wanted, strict=True):
                assert made.shape == right.shape
                np.testing.assert_array_equal(made, right)
        assert any(x.any() for x in wanted)
    assert all(len(program.variants) == 1 for program in programs)
    return programs[0]


@pytest.mark.parametrize("most", ["little", ""])
def test_in_a_branch(most: str) -> None:
    """The other branch needs no room, and gives one row."""
    calls = [
        {"c": np.array(c), "s": np.arange(1, 5), "trips": np.array(n)}
        for c, n in ((True, 3), (False, 9), (True, 1), (True, 250), (False, 1))
    ]
    compare(onnx.parser.parse_model(HEAD + BRANCH.replace("MOST", most)), calls)


@pytest.mark.drawn
@pytest.mark.parametrize("shows", [False, True])
@pytest.mark.parametrize("most", ["little", ""])
@pytest.mark.parametrize(
    ("outer", "ends"),
    [("two", False), ("little", True), ("given", False), ("given", True), ("", True)],
)
def test_in_a_body(outer: str, most: str, *, ends: bool, shows: bool) -> None:
    calls = [
        {
            "x": np.arange(5, 9), "trips": np.array(trips), "end": np.array(end),
            "given": np.array(given),
        }
        for trips, end, given in ((3, 4, 5), (200, 2, 3), (1, 70, 80), (65, 3, 2))
    ]  # fmt: skip
    compare(body(outer, most, ends=ends, shows=shows), calls)


def test_loops_in_loops_in_branches() -> None:
    text = f"""deep (bool c, int64[4] x, int64 trips, int64 end) => (
        int64[m,n,4] all) {{
      {CONSTANTS}
      all = If (c) <
        then_branch = a () => (rows2) {{
          last, rows2 = Loop (, go, x) <
            body = outer (int64 j, bool k, int64[4] s) => (k2, s2, r2) {{
              {INNER.replace("MOST", "")}
              s2 = Identity(s1)  r2 = Identity(rows)
              j2 = Add(j, one1)  k2 = Less(j2, end) }}> }},
        else_branch = b () => (u) {{
          both = Constant<value_ints = [0, 1]>()  u = Unsqueeze(x, both) }}>
    }}"""
    calls = [
        {"c": np.array(c), "x": np.arange(4), "trips": np.array(n), "end": np.array(m)}
        for c, n, m in ((True, 3, 4), (False, 9, 9), (True, 70, 2), (True, 2, 90))
    ]
    compare(onnx.parser.parse_model(HEAD + text), calls)


def test_rows_of_several_numbers_do_not_fit() -> None:
    """ONNX Runtime refuses, too: what a trip shows has one shape."""
    ragged = BODY.replace("OUTER", "two").replace("MOST", "little")
    ends = "more = Add(trips, j)  on = Less(next, more)"
    ragged = ragged.replace("on = Less(next, trips)", ends)
    for word, value in (
        ("SHAPE", ", int64[m,n,4] all"), ("SHOWN", ", all"), ("MADE", ", r2"),
        ("ENDS", "k2 = Identity(k)  r2 = Identity(rows)"),
        (", int64 end, int64 given", ""),
    ):  # fmt: skip
        ragged = ragged.replace(word, value)
    program = nanoloom.compile(onnx.parser.parse_model(HEAD + ragged))
    with pytest.raises(nanoloom.InputError, match="two sizes that must be equal"):
        program({"x": np.arange(4), "trips": np.array(3)})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rows_of_a_scan_are_cut(axis: int) -> None:
    """Where the axis of all trips comes in front of the one that counts, and behind."""
    text = f"""cut (int64[1] n, float[4,9] x) => (float[a,b] y) {{
      y = Scan (x) <num_scan_inputs = 1, scan_output_axes = [{axis}],
        body = row (float[9] r) => (o) {{
          zero = Constant<value_ints = [0]>()  o = Slice(r, zero, n) }}>
    }}"""
    program = nanoloom.compile(onnx.parser.parse_model(HEAD + text))
    x = np.arange(1, 37, dtype=np.float32).reshape(4, 9)
    for n in (3, 9, 0, 5):
        found = program({"n": np.array([n]), "x": x})["y"]
        wanted = x[:, :n] if axis == 0 else x[:, :n].T
        assert found.shape == wanted.shape and (found == wanted).all()
    assert len(program.variants) == 1
