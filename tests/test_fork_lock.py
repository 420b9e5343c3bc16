"""A child that is forked while other threads compile can compile, too."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.fork_lock import between_compiler_calls, wait_for_compiler
from nanoloom.workers import compile_kernel, pool

NETWORK = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[3, 7] x, float[7, 5] w) => (float[3, 5] y) {
      m = MatMul(x, w)
      y = Relu(m)
    }
"""
X, W = (
    np.random.default_rng(0).standard_normal(s, np.float32) for s in ((3, 7), (7, 5))
)


def compiles(root: Path) -> bool:
    """Whether a network compiles, with nothing in the cache, and is right."""
    model = parser.parse_model(NETWORK).SerializeToString()
    program = nanoloom.compile(model, threads=2, cache=Cache(root))
    y = program({"x": X, "w": W})["y"]
    return np.allclose(y, np.maximum(X @ W, 0), rtol=1e-5, atol=1e-5)


def forked(work: Callable[[], bool]) -> int:
    """The exit status of a child that does the work: 0 for True."""
    process = os.fork()
    if not process:
        status = 3
        try:
            signal.alarm(100)  # which ends a child that hangs
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_no_fork_waits_for_who_is_between_calls() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        with wait_for_compiler(), wait_for_compiler(), between_compiler_calls():
            begun.set()
            ended.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    before = time.monotonic()
    assert forked(lambda: True) == 0
    assert time.monotonic() - before < 30  # the lock's patience is 60 seconds
    ended.set()
    thread.join()


def test_a_fork_waits_for_those_who_work() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        with wait_for_compiler(), wait_for_compiler():
            begun.set()
            time.sleep(0.2)
            ended.set()

    def child() -> bool:
        with wait_for_compiler():
            return ended.is_set()

    for _ in range(3):
        begun.clear()
        ended.clear()
        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        assert forked(child) == 0
        thread.join()


def test_who_works_may_fork() -> None:
    with wait_for_compiler():
        assert forked(lambda: True) == 0
        with wait_for_compiler():
            assert forked(lambda: True) == 0


def test_a_child_of_a_compiling_process_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forked while a kernel is in MLIR, with the lock that keeps others out.

    In a process that cannot start workers.
    """
    inside, original = threading.Event(), compile_kernel.vectorize

    def vectorize(*given: Any, **named: Any) -> Any:
        inside.set()
        time.sleep(0.3)
        return original(*given, **named)

    monkeypatch.setattr(compile_kernel, "vectorize", vectorize)
    monkeypatch.setattr(pool, "_pool", pool.Pool(pool.in_process))
    threads = [
        threading.Thread(target=compiles, args=(tmp_path / str(number),))
        for number in range(2)
    ]
    for thread in threads:
        thread.start()
    assert inside.wait(100), "no thread came into MLIR"
    assert forked(lambda: compiles(tmp_path / "child")) == 0
    for thread in threads:
        thread.join()


def test_forks_at_any_moment(tmp_path: Path) -> None:
    done: list[bool] = []

    def work() -> None:
        for number in range(3):
            done.append(compiles(tmp_path / f"parent{number}"))

    thread = threading.Thread(target=work)
    thread.start()
    for number in range(6):
        assert forked(lambda: compiles(tmp_path / f"child{number}")) == 0  # noqa: B023
        time.sleep(0.03 * number)
    thread.join()
    assert done == [True] * 3
