"""Code that tests load: a signal in it, or a name that is missing, is a failure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.binary.objects import emit
from nanoloom.target.host import host
from nanoloom.workers.compile_kernel import machine_of
from tests.guarded import PAGE, Guarded
from tests.native_code import call, loaded
from tests.vector.kernel_harness import load_objects

WRITES = """
define void @code(ptr %to, i64 %from, i64 %value) {
  %place = getelementptr i8, ptr %to, i64 %from
  store i64 %value, ptr %place
  ret void
}
"""
ROUNDS = """
declare float @NAME(float)
define void @code(ptr %to, i64 %one, i64 %other, ptr %from) {
  %x = load float, ptr %from
  %y = call float @NAME(float %x)
  store float %y, ptr %to
  ret void
}
"""


LOADED: list[Any] = []  # engines, whose code goes with them


def entry(text: str) -> int:
    LOADED.append(load_objects([emit(text, **machine_of(host()))]))
    address: int = LOADED[-1].get_function_address("code")
    return address


def test_a_signal_fails_one_call() -> None:
    made, code = Guarded((PAGE // 8,), np.dtype(np.int64)), entry(WRITES)
    for _ in range(2):
        with pytest.raises(AssertionError, match="ended by SIGSEGV"):
            call(code, made.address, PAGE, 5)
    call(code, made.address, PAGE - 8, 5)
    assert made.array[-1] == 5


def test_names_are_defined_before_they_are_called() -> None:
    x, y = np.array([2.5, 0], np.float32)[:1], np.zeros(1, np.float32)
    code = entry(ROUNDS.replace("NAME", "roundevenf"))
    call(code, y.ctypes.data, 0, 0, x.ctypes.data)
    assert y == 2
    with pytest.raises(AssertionError, match=r"nowhere.*which nobody defines"):
        entry(ROUNDS.replace("NAME", "nowhere"))


def test_conversions_are_those_of_libraries() -> None:
    """Whatever the CPU below computes by itself."""
    assert all(hasattr(loaded(), f"__trunc{x}2") for x in ("sfbf", "dfbf", "sfhf"))
