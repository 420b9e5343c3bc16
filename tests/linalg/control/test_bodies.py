"""If, Loop and Scan in whole graphs: exact integers, bounded floats, clear refusals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from nanoloom.errors import DataDependent, Error, ModelError
from tests.linalg.harness import evaluate

HEAD = '<ir_version: 8, opset_import: ["": 18]>\n'


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text)


def check(text: str, **feeds: np.ndarray) -> list[np.ndarray]:
    """Equal to ONNX's reference, bit by bit: integers, or floats without rounding."""
    model = parse(text)
    right = ReferenceEvaluator(model).run(None, feeds)
    got = evaluate(model, feeds)
    for one, other in zip(got, map(np.asarray, right), strict=True):
        if other.shape == (*one.shape, 1):
            other = other[..., 0]  # the reference gives [n, 1] for n scalars
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
        assert one.size == 0 or other.any(), "zeros must not pass"
    return got


BRANCH = """agraph (bool c, int32[3] x) => (int32[3] y, int32[3] z) {
  w = Mul(x, x)
  y, z = If (c) <
    then_branch = a () => (p, q) { k = Constant<value_int = 3>()
      kk = CastLike(k, x)  p = Add(w, kk)  q = Identity(x) },
    else_branch = b () => (p, q) { k = Constant<value_int = 5>()
      kk = CastLike(k, x)  p = Mul(x, kk)  q = Sub(p, w) }
  >
}"""


@pytest.mark.parametrize("condition", [True, False])
def test_if_at_run_time(condition: bool) -> None:
    x = np.array([7, -2, 5], np.int32)
    check(BRANCH, c=np.array(condition), x=x)


@pytest.mark.parametrize("condition", [True, False])
def test_if_with_equal_names_of_different_constants(condition: bool) -> None:
    text = """agraph (bool c, float[2] x) => (float[2] y) {
      y = If (c) <
        then_branch = a () => (p) <float[2] k = {1.0, 2.0}> { p = Add(x, k) },
        else_branch = b () => (p) <float[2] k = {3.0, 5.0}> { p = Add(x, k) }
      >
    }"""
    check(text, c=np.array(condition), x=np.array([0.5, 8], np.float32))


@pytest.mark.parametrize("condition", [True, False])
def test_if_with_different_shapes_takes_the_condition_in(condition: bool) -> None:
    text = """agraph (bool c, float[4] x) => (float[n] y) {
      y = If (c) <
        then_branch = a () => (p) { p = Concat<axis = 0>(x, x) },
        else_branch = b () => (p) { p = Neg(x) }
      >
    }"""
    check(text, c=np.array(condition), x=np.arange(1, 5).astype(np.float32))


def test_if_with_different_ranks_is_refused_where_nothing_can_be_bound() -> None:
    text = """agraph (float[4] x) => (float y) {
      s = ReduceSum<keepdims = 0>(x)
      zero = Constant<value_float = 0.0>()
      c = Greater(s, zero)
      y = If (c) <
        then_branch = a () => (p) { p = ReduceSum(x) },
        else_branch = b () => (p) { p = ReduceMax<keepdims = 0>(x) }
      >
    }"""
    with pytest.raises(DataDependent, match=r"shape \(1,\) .* of shape \(\)"):
        evaluate(parse(text), {"x": np.ones(4, np.float32)})


def test_nested_branches_capture_outer_values() -> None:
    text = """agraph (bool c, bool d, int64[2] x) => (int64[2] y) {
      u = Add(x, x)
      y = If (c) <
        then_branch = a () => (p) {
          v = Mul(u, x)
          p = If (d) <
            then_branch = aa () => (q) { q = Add(v, u) },
            else_branch = ab () => (q) { q = Sub(v, x) }
          > },
        else_branch = b () => (p) { p = Identity(u) }
      >
    }"""
    x = np.array([3, 5])
    for c in (True, False):
        for d in (True, False):
            check(text, c=np.array(c), d=np.array(d), x=x)


FIBONACCI = """agraph (int64 m, int64[2] a, int64[2] b) => (int64[2] s, int64[2] t) {
  c = Constant<value = bool {1}>()
  s, t = Loop (m, c, a, b) <
    body = step (int64 i, bool k, int64[2] x, int64[2] y) => (k2, y2, z) {
      k2 = Identity(k)  y2 = Identity(y)  z = Add(x, y) }
  >
}"""


@pytest.mark.parametrize("trips", [0, 1, 2, 9])
def test_loop_with_trips_of_run_time_and_exchanged_states(trips: int) -> None:
    feeds = {"a": np.array([1, 2]), "b": np.array([1, 5])}
    check(FIBONACCI, m=np.array(trips), **feeds)


def test_loop_with_scan_outputs_of_known_length() -> None:
    text = """agraph (int64[2] a) => (int64[2] s, int64[5,2] all, int64[5] n) {
      m = Constant<value_int = 5>()
      go = Constant<value = bool {1}>()
      s, all, n = Loop (m, go, a) <
        body = step (int64 i, bool k, int64[2] x) => (k2, y, y2, i2) {
          k2 = Identity(k)  y = Add(x, i)  y2 = Mul(y, y)  i2 = Identity(i) }
      >
    }"""
    _, _, numbers = check(text, a=np.array([3, 5]))
    assert numbers.shape == (5,)


EARLY = """agraph (int64 m, float[3] x, float limit) => (float[3] y, int64 n) {
  c = Constant<value = bool {1}>()
  zero = Constant<value_int = 0>()
  y, n = Loop (m, c, x, zero) <
    body = step (int64 i, bool k, float[3] v, int64 count) => (go, w, count2) {
      w = Add(v, v)
      top = ReduceMax<keepdims = 0>(w)
      go = Less(top, limit)
      one = Constant<value_int = 1>()
      count2 = Add(count, one)
    }
  >
}"""


@pytest.mark.parametrize(("trips", "limit", "ran"), [(9, 40, 4), (2, 40, 2), (9, 0, 1)])
def test_loop_with_early_exit(trips: int, limit: float, ran: int) -> None:
    x = np.array([1.0, -2.0, 3.0], np.float32)
    _, count = check(EARLY, m=np.array(trips), x=x, limit=np.array(limit, np.float32))
    assert count == ran


def test_loop_without_limit() -> None:
    text = EARLY.replace("Loop (m,", "Loop (,").replace("int64 m, ", "")
    x = np.array([1.0, 2.0, 3.0], np.float32)
    check(text, x=x, limit=np.array(100, np.float32))


def test_early_exit_with_scan_outputs() -> None:
    text = """agraph (float[3] x, float top) => (float[3] y, float[n,3] all) {
      m = Constant<value_int = 4>()
      c = Constant<value = bool {1}>()
      y, all = Loop (m, c, x) <
        body = step (int64 i, bool k, float[3] v) => (go, w, w2) {
          w = Add(v, v)  w2 = Identity(w)
          most = ReduceMax<keepdims = 0>(w)  go = Less(most, top) }
      >
    }"""
    for top, trips in ((1, 1), (5, 3), (100, 4)):
        feeds = {"x": np.ones(3, np.float32), "top": np.array(top, np.float32)}
        y, every = evaluate(parse(text), feeds)
        want = 2.0 ** np.arange(1, trips + 1)
        assert every.tolist() == [[n] * 3 for n in want]
        assert y.tolist() == [want[-1]] * 3


GROWING = """agraph (int64 m, int64[2] x) => (int64[k] y, int64[j] firsts) {
  go = Constant<value = bool {1}>()
  y, firsts = Loop (m, go, x) <
    body = step (int64 i, bool k, int64[q] v) => (k2, w, f) {
      k2 = Identity(k)
      one = Constant<value_ints = [1]>()
      zero = Constant<value_ints = [0]>()
      head = Slice(v, zero, one)
      grown = Add(head, i)
      w = Concat<axis = 0>(grown, v)
      f = Squeeze(grown, zero)
    }
  >
}"""


@pytest.mark.parametrize("trips", [1, 4])
def test_loop_whose_shapes_grow_is_written_out(trips: int) -> None:
    check(GROWING, m=np.array(trips), x=np.array([3, 5]))


def test_loop_whose_slices_depend_on_the_trip() -> None:
    text = """agraph (float[7] x) => (float[3] y, float[3] all) {
      m = Constant<value_int = 3>()
      go = Constant<value = bool {1}>()
      start = Constant<value_floats = [0.0]>()
      yy, all2 = Loop (m, go, start) <
        body = step (int64 i, bool k, float[1] v) => (k2, w, f) {
          k2 = Identity(k)
          axis = Constant<value_ints = [0]>()
          one = Constant<value_int = 1>()
          j = Add(i, one)
          a = Unsqueeze(i, axis)  b = Unsqueeze(j, axis)
          part = Slice(x, a, b)
          w = Add(v, part)
          f = Squeeze(w, axis)
        }
      >
      y = Add(yy, all2)
      all = Identity(all2)
    }"""
    check(text, x=np.arange(1, 8).astype(np.float32))


def test_stopped_before_the_first_trip() -> None:
    text = """agraph (int64[2] x) => (int64[2] y, int64[0,2] all) {
      m = Constant<value_int = 3>()
      c = Constant<value = bool {0}>()
      y, all = Loop (m, c, x) <
        body = step (int64 i, bool k, int64[2] v) => (k2, w, w2) {
          k2 = Identity(k)  w = Add(v, v)  w2 = Identity(w) }
      >
    }"""
    x = np.array([3, 5])
    y, every = evaluate(parse(text), {"x": x})
    assert (y.tolist(), every.shape) == ([3, 5], (0, 2))


def test_without_a_condition_all_trips_run() -> None:
    text = FIBONACCI.replace("Loop (m, c,", "Loop (m, ,")
    feeds = {"a": np.array([1, 2]), "b": np.array([1, 5])}
    (s, t), want = (
        evaluate(parse(text), {"m": np.array(4), **feeds}),
        ([5, 19], [8, 31]),
    )
    assert (s.tolist(), t.tolist()) == want


def test_scan_with_axes_and_directions() -> None:
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
    last, sums, doubled = evaluate(parse(text), {"s": s, "x": x, "z": z})
    states = [s]
    for a in x.T[::-1]:
        states.append(states[-1] + a)
    np.testing.assert_array_equal(last, states[-1])
    right = [after * before for before, after in pairwise(states)]
    np.testing.assert_array_equal(sums, np.stack(right, axis=1))
    np.testing.assert_array_equal(doubled, 2 * z[::-1])


def test_scans_of_rows_without_elements() -> None:
    """MLIR's verifier refuses a slice at a place in a dimension of extent 0."""
    text = """agraph (float[0,5] s, float[8,0,5] x) => (float[0,5] t, float[n,0,5] o) {
      t, o = Scan (s, x) <num_scan_inputs = 1,
        body = step (float[0,5] a, float[0,5] b) => (a2, b2) {
          a2 = Add(a, b)  b2 = Tanh(a2) }
      >
    }"""
    feeds = {"s": np.ones((0, 5), np.float32), "x": np.ones((8, 0, 5), np.float32)}
    t, o = evaluate(parse(text), feeds)
    assert (t.shape, o.shape) == ((0, 5), (8, 0, 5))


GRU = """agraph (float[2,5] h0, float[4,2,3] x, float[3,10] wzr, float[5,10] rzr,
    float[3,5] wh, float[5,5] rh, float[10] bzr) => (float[2,5] h, float[4,2,5] all) {
  h, all = Scan (h0, x) <num_scan_inputs = 1,
    body = cell (float[2,5] h1, float[2,3] xt) => (h2, out) {
      a = MatMul(xt, wzr)  b = MatMul(h1, rzr)  s = Add(a, b)  t = Add(s, bzr)
      gates = Sigmoid(t)
      z, r = Split<axis = 1, num_outputs = 2>(gates)
      kept = Mul(r, h1)
      c = MatMul(xt, wh)  d = MatMul(kept, rh)  e = Add(c, d)
      n = Tanh(e)
      one = Constant<value_float = 1.0>()
      rest = Sub(one, z)
      f = Mul(rest, n)  g = Mul(z, h1)
      h2 = Add(f, g)
      out = Identity(h2)
    }
  >
}"""


def test_gru_cell_in_a_scan() -> None:
    r = np.random.default_rng(2)
    shapes = {
        "h0": (2, 5), "x": (4, 2, 3), "wzr": (3, 10), "rzr": (5, 10),
        "wh": (3, 5), "rh": (5, 5), "bzr": (10,),
    }  # fmt: skip
    feeds = {k: r.uniform(-0.5, 0.5, s).astype(np.float32) for k, s in shapes.items()}
    h, all_states = evaluate(parse(GRU), feeds)
    f = {k: v.astype(np.float64) for k, v in feeds.items()}
    state, states = f["h0"], []
    for xt in f["x"]:
        t = xt @ f["wzr"] + state @ f["rzr"] + f["bzr"]
        z, gate = np.split(1 / (1 + np.exp(-t)), 2, axis=1)
        n = np.tanh(xt @ f["wh"] + (gate * state) @ f["rh"])
        state = (1 - z) * n + z * state
        states.append(state)
    # Every number is below 4; a step adds at most 40 roundings and, its weights being
    # at most 0.5, passes on at most 4 times the error of the state before.
    bound = np.array([40 * sum(4.0**k for k in range(t + 1)) for t in range(4)])
    bound = 4 * 2.0**-24 * bound
    assert (abs(all_states - states) <= bound[:, None, None]).all()
    assert (abs(h - state) <= bound[-1]).all()
    assert not (abs(0 * h - state) <= bound[-1]).all()


def test_loop_in_if_in_scan() -> None:
    text = """agraph (int64[2] s, int64[3,2] x, int64 limit)
        => (int64[2] t, int64[3,2] o) {
      t, o = Scan (s, x) <num_scan_inputs = 1,
        body = row (int64[2] state, int64[2] xt) => (state2, out) {
          total = ReduceSum<keepdims = 0>(xt)
          c = Greater(total, limit)
          out = If (c) <
            then_branch = a () => (p) {
              two = Constant<value_int = 2>()
              go = Constant<value = bool {1}>()
              p = Loop (two, go, xt) <
                body = twice (int64 i, bool k, int64[2] v) => (k2, w) {
                  k2 = Identity(k)  w = Add(v, state) }
              > },
            else_branch = b () => (p) { p = Mul(xt, state) }
          >
          state2 = Add(state, out)
        }
      >
    }"""
    x = np.array([[1, 2], [30, 4], [5, -6]])
    check(text, s=np.array([1, 3]), x=x, limit=np.array(5))


def test_a_state_that_changes_its_shape() -> None:
    text = """agraph (float[2] s, float[3,2] x) => (float[n] t) {
      t = Scan (s, x) <num_scan_inputs = 1,
        body = row (float[k] state, float[2] xt) => (state2) {
          state2 = Concat<axis = 0>(state, xt) }
      >
    }"""
    with pytest.raises(ModelError, match=r"shape \(2,\) before and \(4,\) after"):
        evaluate(parse(text), {"s": np.ones(2, np.float32), "x": np.ones((3, 2), "f")})


def test_errors_in_a_body_name_the_node() -> None:
    text = """agraph (float[2] s, float[3,2] x) => (float[2] t) {
      t = Scan (s, x) <num_scan_inputs = 1,
        body = row (float[2] state, float[2] xt) => (state2) {
          v = Add(state, xt)
          state2 = StringNormalizer(v) }
      >
    }"""
    with pytest.raises(Error, match="state2"):
        evaluate(parse(text), {"s": np.ones(2, np.float32), "x": np.ones((3, 2), "f")})
