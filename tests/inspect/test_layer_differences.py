"""Values on the way, in groups; flops; times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx_ir.passes.common as passes
import pytest

from nanoloom.frontend.onnx import load
from nanoloom.frontend.symbolic_dims import bind
from nanoloom.inspect import layer_differences, timing
from nanoloom.inspect.flops import contraction_flops
from tests.cli import models

CHAIN = """
    g (float[4] x) => (float[4] d) {
      a = Relu(x)
      c = Constant<value = float[4] {1, 2, 3, 4}>()
      b = Add(a, c)
      s = Cast<to = 7>(b)
      f = Cast<to = 1>(s)
      d = Add(b, f)
    }
"""


def test_values_are_grouped_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(models.write(tmp_path, CHAIN))
    passes.ShapeInferencePass()(model)
    assert list(layer_differences.groups(model)) == [["a", "b", "s", "f", "d"]]
    monkeypatch.setattr(layer_differences, "GROUP_BYTES", 32)
    assert list(layer_differences.groups(model)) == [["a", "b"], ["s"], ["f", "d"]]
    monkeypatch.setattr(layer_differences, "GROUP_VALUES", 1)
    assert list(layer_differences.groups(model)) == [[name] for name in "absfd"]


def test_a_part_ends_where_its_outputs_are(tmp_path: Path) -> None:
    model = load(models.write(tmp_path, CHAIN))
    part = layer_differences.with_outputs(model, ["a"])
    assert [node.op_type for node in part.graph] == ["Relu"]
    assert [value.name for value in part.graph.outputs] == ["a"]
    assert len(list(model.graph)) == 6, "the model stays as it is"


FLOPS = {
    "product": (models.DENSE, 2 * 3 * 7 * 5),
    "convolution": (
        "g (float[2, 4, 9, 9] x, float[6, 4, 3, 3] w) => (float[2, 6, 7, 7] y)"
        "{ y = Conv(x, w) }",
        2 * 2 * 6 * 7 * 7 * 4 * 3 * 3,
    ),
    "none": (models.RELU, 0),
    "loop": (
        """
        g (float[4, 4] x) => (float[4, 4] y) {
          trips = Constant<value = int64 {5}>()
          on = Constant<value = bool {1}>()
          y = Loop (trips, on, x) <body = b (int64 i, bool c, float[4, 4] v)
            => (bool d, float[4, 4] w) { d = Identity(c) w = MatMul(v, v) }>
        }
        """,
        5 * 2 * 4 * 4 * 4,
    ),
}


@pytest.mark.parametrize("name", FLOPS)
def test_flops(tmp_path: Path, name: str) -> None:
    text, expected = FLOPS[name]
    model = load(models.write(tmp_path, text))
    dims = {"batch": 3} if "batch" in text else {}
    assert contraction_flops(bind(model, dims)) == expected


def test_runs_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "PAUSE", 0)
    order: list[str] = []
    runs = [lambda: order.append("a"), lambda: order.append("b")]
    seen: list[tuple[int, int]] = []
    times = timing.interleaved(runs, 4, lambda done, total: seen.append((done, total)))
    assert order == list("ab" * timing.WARM_UPS + "abba" * 2)
    assert [len(each.seconds) for each in times] == [4, 4]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_slow_run_has_fewer_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    def timed(run: Callable[[], float]) -> float:
        calls.append(run())
        return calls[-1]

    monkeypatch.setattr(timing, "timed", timed)
    plain, ours = timing.interleaved([lambda: 13.0, lambda: 0.1], 5)
    assert (len(plain.seconds), len(ours.seconds)) == (2, 5)
    assert calls.count(13.0) == 1 + 2  # one to be warm


def test_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "BUDGET", 10.0)
    times = timing.Times((3.0, 1.0, 2.0))
    assert (times.median, times.best) == (2.0, 1.0)
    assert timing.fitting(100) == timing.FEWEST and timing.fitting(0) == timing.MOST
    assert timing.fitting(0.5) == 20
