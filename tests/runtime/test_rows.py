"""Rows that compiled code computes together have the bits of runs of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.api.loaded import Loaded
from nanoloom.errors import Cancelled, InputError
from nanoloom.runtime.library import Instance
from nanoloom.runtime.limits import Limits, limited
from nanoloom.runtime.rows import run_rows
from tests.runtime.networks import INT64, Network

Arrays = dict[str, np.ndarray]


def dense(net: Network, random: np.random.Generator) -> Network:
    """Products of odd widths, with what goes over their rows behind them."""
    wide = int(random.integers(3, 90))
    x = net.input(1, wide)
    for _ in range(int(random.integers(1, 4))):
        out = int(random.integers(1, 300))
        x = net.add("MatMul", x, net.constant(random.standard_normal((wide, out), "f")))
        kind = str(random.choice(["Relu", "Tanh", "Softmax", "LayerNormalization"]))
        scale = [net.constant(np.ones(out, "f"))] * (kind == "LayerNormalization")
        x, wide = net.add(kind, x, *scale), out
    return net


def images(net: Network, random: np.random.Generator) -> Network:
    channels, side = int(random.integers(1, 9)), int(random.integers(5, 20))
    x = net.input(1, channels, side, side + 1)
    x = net.conv(x, (19, channels, 3, 3), int(random.integers(1, 3)))
    x = net.add("MaxPool", x, kernel_shape=[2, 2])
    net.add("GlobalAveragePool", net.conv(x, (7, 19, 1, 1)))
    return net


def steps(net: Network, random: np.random.Generator) -> Network:
    """A recurrence, whose trips are repeats of steps."""
    count, hidden = int(random.integers(2, 9)), int(random.integers(3, 40))
    x = net.add("Transpose", net.input(1, count, 11), perm=[1, 0, 2])
    weights = net.weight(1, hidden, 11), net.weight(1, hidden, hidden)
    last = net.add("RNN", x, *weights, outputs=2, hidden_size=hidden)
    net.add("Transpose", last, perm=[1, 0, 2])
    return net


def loaded(net: Network, tmp_path: Path) -> tuple[Instance, Loaded]:
    model = net.model(net.nodes[-1].output[-1])
    program = nanoloom.compile(model, threads=1)
    made = nanoloom.load(program.save(tmp_path / "row.so"), 1)
    return made.instance, made


def rows_of(program: Any, random: np.random.Generator, count: int) -> Arrays:
    return {
        x.name: random.standard_normal((count, *x.shape[1:]), np.float32)
        for x in program.inputs
    }


def one_by_one(program: Any, given: Arrays) -> np.ndarray:
    """The only output."""
    count = len(next(iter(given.values())))
    made = [program({n: a[i : i + 1] for n, a in given.items()}) for i in range(count)]
    return np.concatenate([array for one in made for array in one.values()])


@pytest.mark.parametrize("kind", [dense, images, steps])
@pytest.mark.parametrize("seed", range(3))
def test_bits_are_those_of_single_runs(kind: Any, seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    instance, program = loaded(kind(Network(), random), tmp_path)
    for count in (1, 2, int(random.integers(3, 150))):
        given = rows_of(program, random, count)
        made = run_rows(instance, given)
        assert made is not None
        (found,) = made.values()
        expected = one_by_one(program, given)
        np.testing.assert_array_equal(found, expected)
        assert count == 1 or (found[::-1] != expected).any()
    (arena,) = instance.row_arenas
    assert (arena.together == 1) == (kind is steps)
    assert program.memory.arena >= arena.together * instance.library.arena_bytes


def test_large_rows_run_one_after_the_other(tmp_path: Path) -> None:
    net = Network()
    x = net.conv(net.input(1, 3, 60, 61), (40, 3, 3, 3))
    net.conv(x, (5, 40, 3, 3))
    instance, program = loaded(net, tmp_path)
    given = rows_of(program, np.random.default_rng(1), 3)
    made = run_rows(instance, given)
    assert made is not None and instance.row_arenas[0].together == 1
    (found,) = made.values()
    np.testing.assert_array_equal(found, one_by_one(program, given))


def lookup(tmp_path: Path) -> tuple[Instance, Loaded]:
    net = Network()
    table = net.constant(np.arange(20, dtype="f").reshape(10, 2))
    net.add("Gather", table, net.input(1, 3, kind=INT64))
    return loaded(net, tmp_path)


@pytest.mark.parametrize("place", [0, 40, 69])
def test_a_row_that_fails_is_left_to_a_run_of_its_own(
    place: int, tmp_path: Path
) -> None:
    instance, program = lookup(tmp_path)
    good = np.random.default_rng(0).integers(0, 10, (70, 3))
    bad = good.copy()
    bad[place, 1] = 10
    assert run_rows(instance, {"x0": bad}) is None
    with pytest.raises(InputError, match="10 is outside -10"):
        program({"x0": bad[place : place + 1]})
    made = run_rows(instance, {"x0": good})
    assert made is not None
    (found,) = made.values()
    np.testing.assert_array_equal(found, one_by_one(program, {"x0": good}))


def test_other_arrays_are_left_to_calls(tmp_path: Path) -> None:
    instance, program = lookup(tmp_path)
    good = np.ones((6, 3), np.int64)
    for wrong in (good.astype(np.int32), good[:, :2], np.ones((6, 3, 1), np.int64)):
        assert run_rows(instance, {"x0": wrong}) is None
    (made,) = (run_rows(instance, {"x0": good[::2]}) or {}).values()
    assert made.shape == (3, 3, 2) and (made == [2, 3]).all()
    (none,) = (run_rows(instance, {"x0": good[:0]}) or {}).values()
    assert none.shape == (0, 3, 2)
    with program:
        pass
    assert run_rows(instance, {"x0": good}) is None


def test_a_cancelled_call_ends(tmp_path: Path) -> None:
    instance, _ = lookup(tmp_path)
    given = {"x0": np.ones((6, 3), np.int64)}
    stop = nanoloom.Cancellation()
    with limited(Limits(None, stop)):
        stop.cancel()
        with pytest.raises(Cancelled):
            run_rows(instance, given)
    assert run_rows(instance, given) is not None


def test_a_model_without_rows_is_left_to_calls(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
        g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }""")
    program = nanoloom.compile(model).save(tmp_path / "two.so")
    instance = nanoloom.load(program).instance
    assert run_rows(instance, {"x": np.ones((2, 3), "f")}) is None
