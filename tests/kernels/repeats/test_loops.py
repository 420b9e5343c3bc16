"""Loop and Scan as programs: exact integers, whatever trips leave to each other."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from tests.kernels.repeats.whole import compiled

HEAD = '<ir_version: 8, opset_import: ["": 18]>\n'
GO = "go = Constant<value = bool {1}>()"
A, B = np.arange(1, 22, dtype=np.int64), np.arange(5, 26, dtype=np.int64)


def check(text: str, **feeds: np.ndarray) -> list[np.ndarray]:
    """Equal to ONNX's reference, bit by bit."""
    model = onnx.parser.parse_model(HEAD + text)
    right = ReferenceEvaluator(model).run(None, feeds)
    got = compiled(model, feeds)
    for one, other in zip(got, map(np.asarray, right), strict=True):
        if other.shape == (*one.shape, 1):
            other = other[..., 0]  # the reference gives [n, 1] for n scalars
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
        assert one.size == 0 or other.any(), "zeros must not pass"
    return got


def counted(trips: int, head: str, body: str) -> str:
    """A loop of so many trips: `head` has inputs and outputs, `body` all behind go."""
    return f"""agraph {head} {{
      m = Constant<value_int = {trips}>()  {GO}
      {body}
    }}"""


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 8])
def test_exchanged_states(trips: int) -> None:
    """A trip leaves one state where the other one was."""
    body = """s, t = Loop (m, go, a, b) <
      body = step (int64 i, bool k, int64[21] x, int64[21] y) => (k2, y2, z) {
        k2 = Identity(k)  y2 = Identity(y)  z = Add(x, y) }>"""
    head = "(int64[21] a, int64[21] b) => (int64[21] s, int64[21] t)"
    check(counted(trips, head, body), a=A, b=B)


@pytest.mark.parametrize("trips", [1, 2, 5])
def test_scan_outputs_and_numbers_of_trips(trips: int) -> None:
    body = """s, all, n = Loop (m, go, a) <
      body = step (int64 i, bool k, int64[21] x) => (k2, y, y2, i2) {
        k2 = Identity(k)  y = Add(x, i)  y2 = Mul(y, y)  i2 = Identity(i) }>
      sum = Add(s, a)"""
    head = f"(int64[21] a) => (int64[21] sum, int64[{trips},21] all, int64[{trips}] n)"
    text = counted(trips, head, body)
    if trips == 1:  # its one number is 0, of which the check would say nothing
        text = text.replace("i2 = Identity(i)", "i2 = Sub(i, m)")
    check(text, a=A)


def test_what_a_loop_begins_with_is_read_behind_it() -> None:
    """The same tensor begins two states, is read in each trip and afterwards."""
    body = """u = Add(a, a)
      s, t = Loop (m, go, u, u) <
      body = step (int64 i, bool k, int64[21] x, int64[21] y) => (k2, x2, y2) {
        k2 = Identity(k)  x2 = Add(x, u)  y2 = Add(y, x) }>
      v = Sub(s, u)  w = Mul(u, t)  z = Identity(u)"""
    head = "(int64[21] a) => (int64[21] v, int64[21] w, int64[21] z)"
    check(counted(4, head, body), a=A)


@pytest.mark.parametrize("trips", [2, 3])
def test_an_input_and_a_weight_begin_states(trips: int) -> None:
    body = """s, t = Loop (m, go, a, w) <
      body = step (int64 i, bool k, int64[3] x, int64[3] y) => (k2, x2, y2) {
        k2 = Identity(k)  x2 = Mul(x, w)  y2 = Add(y, a) }>"""
    head = "(int64[3] a) => (int64[3] s, int64[3] t) <int64[3] w = {2, -3, 5}>"
    check(counted(trips, head, body), a=A[:3])


def test_a_state_that_stays_and_one_that_forgets() -> None:
    body = """s, t, all = Loop (m, go, a, b) <
      body = step (int64 i, bool k, int64[21] x, int64[21] y) => (k2, x2, y2, o) {
        k2 = Identity(k)  x2 = Identity(x)  y2 = Mul(x, a)  o = Add(y, x) }>"""
    head = "(int64[21] a, int64[21] b) => (int64[21] s, int64[21] t, int64[3,21] all)"
    check(counted(3, head, body), a=A, b=B)


def test_a_state_is_the_output_of_the_trip_too() -> None:
    body = """s, all, twice = Loop (m, go, a) <
      body = step (int64 i, bool k, int64[21] x) => (k2, y, y2, y3) {
        k2 = Identity(k)  y = Add(x, a)  y2 = Identity(y)  y3 = Identity(y) }>"""
    head = "(int64[21] a) => (int64[21] s, int64[4,21] all, int64[4,21] twice)"
    check(counted(4, head, body), a=A)


def test_one_loop_behind_another() -> None:
    body = """s, all = Loop (m, go, a) <
      body = step (int64 i, bool k, int64[21] x) => (k2, y, y2) {
        k2 = Identity(k)  y = Add(x, a)  y2 = Mul(y, x) }>
      t, sums = Loop (m, go, s) <
      body = next (int64 i, bool k, int64[21] x) => (k2, y, y2) {
        k2 = Identity(k)  row = Gather(all, i)  y = Add(x, row)  y2 = Sub(y, s) }>"""
    head = "(int64[21] a) => (int64[21] s, int64[21] t, int64[3,21] sums)"
    check(counted(3, head, body), a=A)


@pytest.mark.parametrize(("trips", "limit"), [(9, 400), (2, 400), (9, 0), (0, 9)])
def test_early_exit(trips: int, limit: int) -> None:
    text = f"""agraph (int64 m, int64[21] x, int64 limit) => (int64[21] y, int64 n) {{
      {GO}  one = Constant<value_int = 1>()
      y, n = Loop (m, go, x, one) <
        body = step (int64 i, bool k, int64[21] v, int64 count) => (on, w, count2) {{
          w = Add(v, v)  top = ReduceMax<keepdims = 0>(w)  on = Less(top, limit)
          count2 = Add(count, one) }}>
    }}"""
    check(text, m=np.array(trips), x=A, limit=np.array(limit))


@pytest.mark.parametrize("trips", [0, 1, 7])
def test_trips_of_run_time(trips: int) -> None:
    text = f"""agraph (int64 m, int64[21] a) => (int64[21] s) {{
      {GO}
      s = Loop (m, go, a) <
        body = step (int64 i, bool k, int64[21] x) => (k2, y) {{
          k2 = Identity(k)  z = Mul(x, a)  y = Add(z, i) }}>
    }}"""
    check(text, m=np.array(trips), a=A)


def test_a_scan_in_a_scan() -> None:
    """z[i, j] = running sums of running products."""
    text = """agraph (int64[3] s, int64[4,5,3] x) => (int64[3] t, int64[4,5,3] o) {
      t, o = Scan (s, x) <num_scan_inputs = 1,
        body = outer (int64[3] state, int64[5,3] rows) => (state2, made) {
          last, made = Scan (state, rows) <num_scan_inputs = 1,
            body = inner (int64[3] v, int64[3] row) => (w, w2) {
              w = Add(v, row)  w2 = Mul(w, v) }
          >
          state2 = Sub(last, state)
        }
      >
    }"""
    x = np.random.default_rng(3).integers(-9, 9, (4, 5, 3))
    check(text, s=np.array([1, 3, -2]), x=x)


def test_axes_and_directions_of_scans() -> None:
    text = """agraph (int32[2] s, int32[2,5] x, int32[5,3] z)
        => (int32[2] last, int32[2,5] sums, int32[5,3] doubled) {
      last, sums, doubled = Scan (s, x, z) <
        num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0],
        scan_output_axes = [1, 0], scan_output_directions = [0, 1],
        body = step (int32[2] state, int32[2] a, int32[3] b) => (state2, out, twice) {
          state2 = Add(state, a)  out = Mul(state2, state)  twice = Add(b, b) }
      >
    }"""
    r = np.random.default_rng(1)
    s, x, z = (r.integers(-9, 9, n).astype(np.int32) for n in ((2,), (2, 5), (5, 3)))
    model = onnx.parser.parse_model(HEAD + text)
    last, sums, doubled = compiled(model, {"s": s, "x": x, "z": z})
    states = s[:, None] + np.cumsum(
        np.c_[np.zeros((2, 1), np.int32), x[:, ::-1]], axis=1
    )
    np.testing.assert_array_equal(last, states[:, -1])
    np.testing.assert_array_equal(sums, states[:, 1:] * states[:, :-1])
    np.testing.assert_array_equal(doubled, 2 * z[::-1])
    assert last.any() and sums.any()


def test_products_of_a_scan() -> None:
    """Integers in floats: exact, and large enough for nanokernels."""
    text = """agraph (float[1,40] s, float[6,40] x, float[40,40] w)
        => (float[1,40] t, float[6,40] o) {
      t, o = Scan (s, x) <num_scan_inputs = 1,
        body = step (float[1,40] state, float[40] row) => (state2, out) {
          p = MatMul(state, w)  q = Add(p, row)  two = Constant<value_float = 2.0>()
          state2 = Mod<fmod = 1>(q, two)  out = Squeeze(q) }
      >
    }"""
    r = np.random.default_rng(4)
    shapes = {"s": (1, 40), "x": (6, 40), "w": (40, 40)}
    feeds = {k: r.integers(-3, 4, n).astype(np.float32) for k, n in shapes.items()}
    check(text, **feeds)
