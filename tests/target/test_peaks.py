"""The loops do what they are counted for, and the result survives JSON."""

from __future__ import annotations

import ctypes
import dataclasses
import json

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.target import by_name, peaks
from nanoloom.target.host import host
from nanoloom.target.peak_loops import SCRATCH_BYTES, sums_of, symbol

HERE = host()
REGISTER = HERE.vector.min_bits // 8


@pytest.fixture(scope="module")
def code() -> peaks._Code:  # pyright: ignore[reportPrivateUsage]
    return peaks._compile(HERE)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(("name", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_a_turn_is_one_fma_on_each_sum(
    code: peaks._Code,  # pyright: ignore[reportPrivateUsage]
    name: str,
    dtype: type,
) -> None:
    lanes, sums = REGISTER // np.dtype(dtype).itemsize, sums_of(HERE)
    data = np.random.default_rng(7).integers(1, 5, (sums, lanes)).astype(dtype)
    scratch = np.zeros(SCRATCH_BYTES, np.uint8)
    scratch[: data.nbytes] = data.reshape(-1).view(np.uint8)
    code.functions[symbol(name)](3, scratch.ctypes.data)
    got = scratch[: data.nbytes].view(dtype).reshape(sums, lanes)
    if HERE.arch == "x86_64" and not HERE.has("fma"):
        expected = data
        for _ in range(3):
            expected = expected * data[0] + data[1]
    else:
        expected = data + 3 * data[0] * data[1]
    np.testing.assert_array_equal(got, expected)
    assert not np.array_equal(got, data)


def test_read_sees_every_byte(code: peaks._Code) -> None:  # pyright: ignore[reportPrivateUsage]
    scratch = np.zeros(SCRATCH_BYTES, np.uint8)
    buffer = np.zeros(64 * REGISTER, np.uint8)
    for vector in (
        7,
        31,
        63,
    ):  # of eight sums the last is the one that stays in scratch
        buffer[vector * REGISTER + vector % REGISTER] = 1 << (vector % 8)
    code.functions["read"](buffer.ctypes.data, buffer.nbytes, 2, scratch.ctypes.data)
    got = scratch[:REGISTER]
    expected = np.bitwise_or.reduce(buffer.reshape(-1, 8, REGISTER)[:, 7])
    np.testing.assert_array_equal(got, expected)
    assert expected.any()


def test_flush_leaves_the_data(code: peaks._Code) -> None:  # pyright: ignore[reportPrivateUsage]
    buffer = np.arange(4096, dtype=np.int32)
    code.functions["flush"](buffer.ctypes.data, ctypes.c_int64(buffer.nbytes).value)
    np.testing.assert_array_equal(buffer, np.arange(4096))


def test_measure_covers_what_the_target_has() -> None:
    found = peaks.measure(HERE, 2)
    names = {rate.what for rate in found.rates}
    assert {"f32", "f64", "l1", "l2", "memory"} <= names
    assert ("bf16-amx" in names) == HERE.has("amx-bf16")
    assert ("u8s8" in names) == (HERE.has("avx512vnni") or HERE.has("avxvnni"))
    assert all(rate.best >= rate.median > 0 for rate in found.rates)
    assert {rate.threads for rate in found.rates} == {1, 2}
    assert found.best("f32", 2) is not None and found.best("f32", 9) is None
    text = json.dumps(dataclasses.asdict(found))
    assert peaks.Peaks.from_dict(json.loads(text)) == found


def test_a_foreign_target_is_refused() -> None:
    foreign = "rv64gcv" if HERE.arch != "riscv64" else "aarch64"
    with pytest.raises(Error, match=rf"cannot measure {foreign}: this machine is "):
        peaks.measure(by_name(foreign), 1)
    richer = dataclasses.replace(HERE, extensions=HERE.extensions | {"avx99"})
    with pytest.raises(Error, match="this machine lacks avx99"):
        peaks.measure(richer, 1)


def test_a_unit_by_itself_takes_turns() -> None:
    run, operations = peaks.steady(HERE, "f32", 2)
    assert run() > 0.0
    turn = 2 * 2 * REGISTER // 4 * sums_of(HERE)  # threads, multiply and add, f32
    assert operations >= turn and operations % turn == 0
    with pytest.raises(Error, match="has no unit that computes f8"):
        peaks.steady(HERE, "f8", 1)
