"""Sizes without a bound that data decide: one program, whatever they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom

HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
Feeds = Mapping[str, np.ndarray]


def compare(text: str, calls: list[Feeds], dims: int = 1) -> nanoloom.Program:
    """Call one program with all feeds; integers are exact.  dims: sets of shapes."""
    model = onnx.parser.parse_model(f"{HEAD}\n{text}")
    reference = ReferenceEvaluator(model)
    program = nanoloom.compile(model)
    for feeds in calls:
        made = program(feeds)
        for value, want in zip(
            model.graph.output, reference.run(None, dict(feeds)), strict=True
        ):
            got, want = made[value.name], np.asarray(want)
            assert len(value.type.tensor_type.shape.dim) == got.ndim
            got = got.reshape(want.shape)  # rows of trips, which the reference joins
            assert np.array_equal(got, want), value.name
            assert not np.array_equal(got, want + 1), value.name
    assert len(program.variants) == dims
    return program


LOOP = """looped (LIMITS int64[ROWS,3] x, int64 top) => (
    int64[ROWS,3] y, int64[trips,ROWS,3] every, int64[trips] numbers)
{
  m = Constant<value_int = MOST>()
  go = Constant<value = bool {1}>()
  one = Constant<value_int = 1>()
  y, every, numbers = Loop(TRIPS, go, x) <
    body = step (int64 i, bool k, int64[ROWS,3] v) => (more, w, twice, number) {
      w = Add(v, one)
      twice = Mul(w, w)
      number = Mul(i, i)
      CONDITION
    }
  >
}"""
ENDS = "most = ReduceMax<keepdims = 0>(w)  more = Less(most, top)"


def looped(rows: str, trips: str, most: int, ends: bool) -> str:
    limits = "int64 given," if trips == "given" else ""
    text = LOOP.replace("LIMITS", limits).replace("ROWS", rows)
    text = text.replace("TRIPS", trips).replace("MOST", str(most))
    return text.replace("CONDITION", ENDS if ends else "more = Identity(k)")


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("trips", "most", "ends"),
    [
        ("m", 600, True),  # all rows that there may be are little
        ("m", 1 << 40, True),  # they are not
        ("", 1, True),
        ("given", 1, True),
        ("given", 1, False),
    ],
)
@pytest.mark.parametrize("rows", ["2", "rows"])
def test_scan_outputs(rows: str, trips: str, most: int, ends: bool) -> None:
    """Trips that no one knows, up to a hundred times as many as are there first."""
    random = np.random.default_rng([most % 97, ends, len(trips)])
    calls: list[Feeds] = []
    for top in (*random.integers(1, 40, 4), 500, 3, 300):
        shape = (2 if rows == "2" else int(random.integers(1, 9)), 3)
        feeds = {"x": random.integers(0, 9, shape), "top": np.array(top)}
        if trips == "given":
            feeds["given"] = np.array(random.integers(1, 2 * top + 1))
        calls.append(feeds)
    shapes = {feeds["x"].shape for feeds in calls}
    program = compare(looped(rows, trips, most, ends), calls, len(shapes))
    assert not rows.startswith("r") or not program.open.reason


@pytest.mark.parametrize("ends", [True, False])
def test_no_trip(ends: bool) -> None:
    text = looped("2", "given", 1, ends)
    program = nanoloom.compile(onnx.parser.parse_model(f"{HEAD}\n{text}"))
    x = np.arange(6).reshape(2, 3)
    for given, trips in ((0, 0), (3, 3), (-2, 0)):
        made = program({"given": np.array(given), "top": np.array(50), "x": x})
        assert made["every"].shape == (trips, 2, 3)
        assert made["numbers"].tolist() == [n * n for n in range(trips)]
        assert np.array_equal(made["y"], x + trips)
    assert len(program.variants) == 1


READ = """read (int64 top, int64 place) => (
    int64 sum, int64[n] doubled, int64[1] length, int64 found)
{
  go = Constant<value = bool {1}>()
  zero = Constant<value_int = 0>()
  one = Constant<value_int = 1>()
  last, numbers = Loop(, go, zero) <
    body = step (int64 i, bool k, int64 v) => (more, w, number) {
      w = Add(v, one)  number = Mul(i, i)  more = Less(w, top) }
  >
  sum = ReduceSum<keepdims = 0>(numbers)
  doubled = Add(numbers, numbers)
  length = Shape(doubled)
  found = Gather(numbers, place)
}"""


def test_read_behind() -> None:
    """What stands behind a loop of unknown length sees the trips that ran."""
    program = nanoloom.compile(onnx.parser.parse_model(f"{HEAD}\n{READ}"))
    for top in (3, 200, 1000, 1, 64, 65):
        numbers = np.arange(top) ** 2
        made = program({"top": np.array(top), "place": np.array(top - 1)})
        assert made["sum"] == numbers.sum()
        assert made["doubled"].tolist() == (2 * numbers).tolist()
        assert made["length"].tolist() == [top]
        assert made["found"] == (top - 1) ** 2
    assert len(program.variants) == 1


def test_an_index_out_of_range_is_told_of() -> None:
    """By a run that had room: one without it says nothing of its indices."""
    program = nanoloom.compile(onnx.parser.parse_model(f"{HEAD}\n{READ}"))
    feeds = {"top": np.array(300), "place": np.array(299)}
    assert program(feeds)["found"] == 299**2
    with pytest.raises(nanoloom.InputError, match=r"\(Gather\): index .* is outside"):
        program({**feeds, "place": np.array(300)})


DURATIONS = """durations (float[1, WORDS] logs, float[1, 6, WORDS] x) => (
    float[1, 6, frames] spread, float[1, 6, samples] twice)
{
  lengths = Exp(logs)
  d = Ceil(lengths)
  axes = Constant<value_ints = [0, 1]>()
  sum = ReduceSum<keepdims = 0>(d, axes)
  total = Cast<to = 7>(sum)
  zero = Constant<value_int = 0>()
  one = Constant<value_int = 1>()
  places = Range(zero, total, one)
  t = Cast<to = 1>(places)
  ends_ = CumSum(d, one)
  last = Constant<value_ints = [-1]>()
  ends = Unsqueeze(ends_, last)
  starts_ = Sub(ends_, d)
  starts = Unsqueeze(starts_, last)
  before = Less(t, ends)
  behind = GreaterOrEqual(t, starts)
  inside = And(before, behind)
  path = Cast<to = 1>(inside)
  spread = MatMul(x, path)
  scales = Constant<value_floats = [1.0, 1.0, 2.0]>()
  twice = Resize<mode = "nearest", nearest_mode = "floor",
      coordinate_transformation_mode = "asymmetric">(spread, , scales)
}"""


@pytest.mark.parametrize("words", ["7", "words"])
def test_durations(words: str) -> None:
    """Each word as many times as the model says: speech, whose length data decide."""
    text = DURATIONS.replace("WORDS", words)
    program = nanoloom.compile(onnx.parser.parse_model(f"{HEAD}\n{text}"))
    random = np.random.default_rng(len(words))
    shapes: set[int] = set()
    for mean in (0.5, 2, 3, 1, 2):
        count = 7 if words == "7" else int(random.integers(1, 20))
        logs = random.normal(mean, 0.5, (1, count)).astype(np.float32)
        x = random.integers(-9, 9, (1, 6, count)).astype(np.float32)
        made = program({"logs": logs, "x": x})
        frames = made["spread"].shape[2]
        lengths = np.ceil(np.exp(logs.astype(np.float64))).astype(int)[0]
        want = np.repeat(x, lengths, axis=2)
        assert np.array_equal(made["spread"], want)
        assert np.array_equal(made["twice"], np.repeat(want, 2, axis=2))
        assert made["twice"].shape == (1, 6, 2 * frames)
        shapes.add(count)
    assert len(program.variants) == len(shapes)


VOICE = """voice (int64[7] d, float[7, 3] x) => (float[1, 2, samples] y)
    <int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] last = {-1},
     float[2, 3, 7] filters = {FILTERS}, float[2, 2, 8] up = {UP}>
{
  total = ReduceSum <keepdims = 0> (d)
  places = Range(zero, total, one)
  t = Unsqueeze(places, last)
  ends = CumSum(d, zero)
  behind = GreaterOrEqual(t, ends)
  counted = Cast <to = 7> (behind)
  rows = ReduceSum <keepdims = 0> (counted, last)
  spread_ = Gather(x, rows)
  spread = Transpose <perm = [1, 0]> (spread_)
  image = Unsqueeze(spread, first)
  filtered = Conv <pads = [3, 3]> (image, filters)
  y = ConvTranspose <strides = [4], pads = [2, 2]> (filtered, up)
}"""


def test_a_signal_is_no_batch(tmp_path: Path) -> None:
    """A vocoder's filters reach further than batches are large: of so few samples some
    of their taps would read nothing but borders."""
    text, random = VOICE, np.random.default_rng(3)
    for name, count in (("FILTERS", 42), ("UP", 32)):
        numbers = random.integers(-3, 4, count).astype(float)
        text = text.replace(name, ", ".join(map(str, numbers)))
    calls: list[Feeds] = [
        {
            "d": random.integers(1, most, 7),
            "x": random.integers(-3, 4, (7, 3)).astype(np.float32),
        }
        for most in (4, 3, 40, 2)
    ]
    compare(text, calls).save(tmp_path / "voice.so")  # all lengths are one program


def test_a_size_beyond_reason_is_refused() -> None:
    text = """far (int64 top) => (int64[n] y)
    {
      zero = Constant<value_int = 0>()
      one = Constant<value_int = 1>()
      y = Range(zero, top, one)
    }"""
    program = nanoloom.compile(onnx.parser.parse_model(f"{HEAD}\n{text}"))
    assert program({"top": np.array(5)})["y"].tolist() == [*range(5)]
    assert program({"top": np.array(-5)})["y"].tolist() == []
    with pytest.raises(nanoloom.InputError, match="the data want 2305843009213693952"):
        program({"top": np.array(1 << 61)})
    assert program({"top": np.array(70)})["y"].tolist() == [*range(70)]


def test_what_cannot_be_a_size_is_named() -> None:
    """The node that stops it, not the room that calls would have."""
    text = """stops (float[50] x) => (int64[n, 2] y)
    <int64 zero = {0}, int64 one = {1}, int64[1] pair = {2}>
    {
      grown = Exp(x)
      total = ReduceSum <keepdims = 0> (grown)
      count = Cast <to = 7> (total)
      r = Range(zero, count, one)
      half = Div(count, pair)
      shape = Concat <axis = 0> (half, pair)
      y = Reshape(r, shape)
    }"""
    program = nanoloom.compile(onnx.parser.parse_model(f"{HEAD}\n{text}"))
    said = r"Range_3: the data .* cannot be a size at run time: node Reshape_6 \(Resh"
    with pytest.raises(nanoloom.InputError, match=said):
        program({"x": np.zeros(50, np.float32)})
