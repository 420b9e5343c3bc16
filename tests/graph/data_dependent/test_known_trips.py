"""Loops whose condition constants decide: as many trips as it says, in one body."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx_ir
import pytest

import nanoloom
from nanoloom.graph.data_dependent.known_trips import MOST
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS
from tests.kernels.repeats.ended_loops import HEAD, reference
from tests.vector.kernel_harness import shared_cache

LOOP = """known (float[3] x) => (float[3] y, float[n,3] all) {
  go = Constant<value = bool {1}>()  one = Constant<value_int = 1>()
  begin = Constant<value_int = BEGIN>()  end = Constant<value_int = END>()
  most = Constant<value_int = MOST>()  half = Constant<value_float = 0.5>()
  c, y, all = Loop (LIMIT, go, begin, x) <
    body = step (int64 i, bool k, int64 count, float[3] v) => (on, more, w, w2) {
      w = Mul(v, half)  w2 = Add(v, w)  more = STEP  on = Less(more, end) }>
}"""
BY_LENGTH = """by_length (float[b, t] x) => (float[m, k] all) {
  zero = Constant<value_ints = [0]>()  one = Constant<value_ints = [1]>()
  two = Constant<value_ints = [2]>()  none = Constant<value_float = 0.0>()
  rows = Transpose<perm = [1, 0]>(x)  shape = Shape(rows)  times = Cast<to = 6>(shape)
  first = Slice(times, zero, one, zero)  count = Squeeze(first, zero)
  begin = Squeeze(zero, zero)  start = Cast<to = 6>(begin)
  long = Cast<to = 1>(count)  go = Less(none, long)
  second = Slice(shape, one, two, zero)  old = Expand(none, second)
  i, last, all = Loop ("", go, start, old) <
    body = step (int64 trip, bool k, int32 at, float[r] before) => (on, next, sum, w) {
      by = Constant<value = int32 {1}>()  next = Add(at, by)  row = Gather(rows, at)
      sum = Add(before, row)  w = Identity(sum)
      done = Cast<to = 1>(next)  on = Less(done, long) }>
}"""
X = np.array([3, -1, 4], np.float32)


def model(step: str, begin: int, end: int, most: int | None = None) -> onnx.ModelProto:
    text = LOOP.replace("STEP", step).replace("BEGIN", str(begin))
    text = text.replace("END", str(end)).replace("MOST", str(most or 0))
    text = text.replace("LIMIT", "" if most is None else "most")
    return onnx.parser.parse_model(HEAD + text)


@pytest.mark.parametrize(
    ("step", "begin", "end", "most", "trips"),
    [
        ("Add(count, one)", 0, 100, None, 100),
        ("Add(count, i)", 0, 1000, None, 46),
        ("Add(count, one)", 0, 100, 30, 30),
        ("Add(count, one)", 9, 5, None, 1),
        ("Add(count, one)", 0, 3, None, 3),
        ("Add(count, one)", 0, 5, 0, 0),
        ("Add(count, count)", 1, 1 << 40, None, 40),
    ],
)
def test_numbers(step: str, begin: int, end: int, most: int | None, trips: int) -> None:
    """Halves of f32 are exact, until there are none."""
    made = model(step, begin, end, most)
    program = nanoloom.compile(made, threads=1, cache=shared_cache())
    found = program({"x": X})
    for one, other in zip(found.values(), reference(made, {"x": X}), strict=True):
        np.testing.assert_array_equal(one, other)
    assert found["all"].shape == (trips, 3)
    assert found["y"].tolist() == (X * np.float32(0.5) ** trips).tolist()


def test_the_body_is_there_once() -> None:
    """Of known shape, with a number of trips and no condition."""
    graph = onnx_ir.from_proto(model("Add(count, one)", 0, 400))
    optimize(graph, OPERATORS.keys())
    (loop,) = [node for node in graph.graph if node.op_type == "Loop"]
    limit, condition, *_ = loop.inputs
    assert limit is not None and limit.const_value is not None and condition is None
    assert int(limit.const_value.numpy()) == 400
    assert graph.graph.outputs[1].shape == onnx_ir.Shape([400, 3])
    assert len(list(graph.graph)) < 9


def test_more_trips_than_are_run_in_advance() -> None:
    """They are counted as those that data decide."""
    made = model("Add(count, one)", 0, 2 * MOST, 3 * MOST)
    program = nanoloom.compile(made, threads=1, cache=shared_cache())
    found = program({"x": X})
    assert found["all"].shape == (2 * MOST, 3)
    assert found["all"][0].tolist() == (1.5 * X).tolist()


def test_trips_that_sizes_alone_decide(tmp_path: Path) -> None:
    """As Keras' layers are exported: the length is compared as a float.  Open sizes
    leave the trips to the data, numbers do not, and both are the same program."""
    made = onnx.parser.parse_model(HEAD + BY_LENGTH)
    program = nanoloom.compile(made, threads=1, cache=shared_cache())
    for shape in (1, 5), (3, 70), (2, 0):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(program(x)["all"], x.T.cumsum(0))
    program.save(tmp_path / "sums.so", shapes={"x": (3, 70)})
    loaded = nanoloom.load(tmp_path / "sums.so")
    x = np.ones((3, 70), np.float32)
    np.testing.assert_array_equal(loaded(x)["all"], x.T.cumsum(0))
