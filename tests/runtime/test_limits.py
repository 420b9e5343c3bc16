"""Calls that end early leave a program as good as before: the next one is right."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import numpy as np
import pytest
from onnx.parser import parse_model

import nanoloom
from nanoloom.errors import Cancelled, Error, TimedOut

Call = Any
FOR_EVER = 10**13

# So many times: y = y / 2 + x.
LOOP = """
<ir_version: 10, opset_import: ["": 21]>
loop (int64 trips, float[4] x) => (float[4] y)
{
    yes = Constant <value = bool {1}> ()
    zeros = Sub(x, x)
    y = Loop(trips, yes, zeros) <body = body (int64 i, bool go, float[4] before)
        => (bool on, float[4] after)
        { half = Constant <value = float {0.5}> ()
          on = Identity(go)
          less = Mul(before, half)
          after = Add(less, x) }>
}
"""
CHAIN = """
<ir_version: 10, opset_import: ["": 21]>
chain (float[n, 67] x) => (float[n, 67] y)
{ %s y = Softmax(x8) }
"""
X = np.array([1, 2, -3, 0.5], "f")


@pytest.fixture(scope="module", params=["compiled", "saved"])
def loop(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Call:
    program = nanoloom.compile(parse_model(LOOP), threads=2)
    if request.param == "compiled":
        return program
    return nanoloom.load(program.save(tmp_path_factory.mktemp("m") / "loop.so"))


def trips(count: int) -> dict[str, np.ndarray]:
    return {"trips": np.array(count, np.int64), "x": X}


def is_right(loop: Call) -> bool:
    """Of three trips: x (1 + 1/2 + 1/4), exactly."""
    return (loop(trips(3))["y"] == X * np.float32(1.75)).all()


def test_a_deadline_ends_a_run(loop: Call) -> None:
    assert is_right(loop)
    with pytest.raises(TimedOut, match=r"longer than its timeout, 0\.02 s"):
        loop.run(trips(FOR_EVER), timeout=0.02)
    with pytest.raises(TimeoutError):  # of Python's own kind as well
        loop.run(trips(3), timeout=0)
    assert is_right(loop)
    for long in (1e6, np.float32(1e6), np.int64(9), 10**400, float("inf")):
        assert (loop.run(trips(3), timeout=long)["y"] == X * np.float32(1.75)).all()


def test_another_thread_cancels(loop: Call) -> None:
    stop = nanoloom.Cancellation()
    assert repr(stop) == "<nanoloom.Cancellation: not yet>"
    waiting = [loop.run_async(trips(FOR_EVER), cancel=stop) for _ in range(2)]
    other = nanoloom.Cancellation()
    third = loop.run_async(trips(FOR_EVER), cancel=other, timeout=1e6)
    time.sleep(0.02)
    assert not any(x.done() for x in (*waiting, third))
    stop.cancel()
    for future in waiting:
        with pytest.raises(Cancelled, match="the call was cancelled"):
            future.result()
    assert (stop.is_cancelled and not third.done()) or third.exception() is None
    other.cancel()
    with pytest.raises(Cancelled):
        third.result()
    with pytest.raises(Cancelled):
        loop.run(trips(3), cancel=stop)
    assert is_right(loop)


def test_what_is_no_limit_is_refused(loop: Call) -> None:
    for wrong in (-1, True, "1", float("nan"), -float("inf")):
        with pytest.raises(Error, match=r"timeout is .*; give seconds"):
            loop.run(trips(3), timeout=wrong)
    with pytest.raises(Error, match=r"cancel is .*; give a nanoloom\.Cancellation"):
        loop.run(trips(3), cancel=threading.Event())


@pytest.mark.parametrize("seed", range(2))
def test_ended_anywhere_the_next_call_is_right(seed: int) -> None:
    """Of several kernels in parallel, ended at moments that are drawn."""
    steps = [f"x{i + 1} = {'Softmax' if i % 2 else 'Exp'}(x{i})" for i in range(8)]
    text = CHAIN % " ".join(steps).replace("(x0)", "(x)")
    program = nanoloom.compile(parse_model(text), threads=2)
    x = np.random.default_rng(seed).standard_normal((997, 67)).astype("f")
    x -= 2
    right = program({"x": x})["y"]
    assert (right.sum(axis=1) > 0.9).all()
    draws, ended = random.Random(seed), 0
    for _ in range(30):
        stop = nanoloom.Cancellation()
        threading.Timer(draws.random() * 2e-3, stop.cancel).start()
        timeout = draws.choice([None, draws.random() * 2e-3])
        try:
            made = program.run({"x": x}, cancel=stop, timeout=timeout)["y"]
        except (Cancelled, TimedOut):
            ended += 1
            made = program({"x": x})["y"]
        assert made.tobytes() == right.tobytes()
    with pytest.raises(TimedOut):
        program.run({"x": x}, timeout=0)
