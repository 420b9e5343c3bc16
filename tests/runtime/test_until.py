"""Repeats that end when the data say, on hand-made tables and as every kind of file."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import nanoloom
from nanoloom.binary.repeats import Move, Repeat
from nanoloom.binary.shared import write_in_process
from nanoloom.binary.table import Buffer, ProgramTable
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.interface.tensor import NONE, Element, Space, Tensor
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom.runtime.library import Library
from nanoloom.target import by_name
from tests.c_libraries import lend
from tests.kernels.repeats.ended_loops import HEAD, reference
from tests.runtime.native import TRIPLE, kernels
from tests.runtime.test_repeats import COUNT, SLOT, recurrence, right

TRIPS = 7


def ended(*, limited: bool, flagged: bool) -> ProgramTable:
    """`recurrence`, as often as an input says, while one more has ones."""
    known = recurrence(TRIPS)
    state = Buffer(Space.ARENA)
    read = Buffer(Space.INPUT, index=2), Buffer(Space.INPUT, index=3), state
    *others, end = known.steps
    end = replace(end, buffers=(state, *end.buffers[1:]))
    (repeat,) = known.repeats
    moves = (*repeat.moves, Move(NONE, 1, 1), Move(NONE, 2, SLOT, settles=True))
    limit, flag = (0 if limited else NONE), (1 if flagged else NONE)
    return replace(
        known,
        steps=(*others, end),
        inputs=(
            *known.inputs,
            Tensor("limit", Element.I64, (1,)),
            Tensor("flags", Element.BOOL, (TRIPS,)),
        ),
        repeats=(replace(repeat, moves=moves, limit=limit, flag=flag),),
        read=read,
    )


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("limited", "flagged"), [(True, True), (True, False), (False, True)]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_limit_and_a_flag(
    tmp_path: Path, cache: Cache, threads: int, *, limited: bool, flagged: bool
) -> None:
    """What comes first ends it; the state is found behind any number of trips."""
    path = tmp_path / "model.so"
    table = ended(limited=limited, flagged=flagged)
    write_in_process(kernels(), table, path, triple=TRIPLE, cache=cache)
    r = np.random.default_rng(5)
    x, h = (r.uniform(-1, 1, (n, COUNT)).astype(np.float32) for n in (TRIPS, 1))
    with Library(path).create(threads) as instance:
        for limit, ones in ((3, 7), (7, 4), (99, 6), (0, 7), (5, 0), (-1, 7), (6, 2)):
            flags = np.arange(TRIPS) < ones
            made = [np.zeros((TRIPS, COUNT), "f4"), np.zeros((1, COUNT), "f4")]
            instance.run([x, h, np.array([limit]), flags], made)
            trips = min(limit if limited else TRIPS, ones if flagged else TRIPS, TRIPS)
            shown, last = after(x, h, max(trips, 0))
            np.testing.assert_array_equal(made[0], shown)
            np.testing.assert_array_equal(made[1], last)
            assert last.any()


def after(x: np.ndarray, h: np.ndarray, trips: int) -> tuple[np.ndarray, np.ndarray]:
    """What so many trips of `recurrence` leave of all of them."""
    shown, state = np.zeros_like(x), h + h
    for t in range(trips):
        product = state * x[t]
        shown[t] = (state + product)[0]
        state = product + x[len(x) - 1 - t]
    if trips == len(x):
        np.testing.assert_array_equal(state + h, right(x, h)[1])
    return shown, state + h


def test_what_is_read_lies_in_its_space() -> None:
    table = ended(limited=True, flagged=True)
    (repeat,) = table.repeats
    with pytest.raises(ValueError, match="lies outside its space"):
        replace(table, read=(Buffer(Space.INPUT, index=4), *table.read[1:]))
    with pytest.raises(ValueError, match="lies outside its space"):
        replace(table, repeats=(replace(repeat, moves=(Move(NONE, 1, 2),)),))
    with pytest.raises(ValueError, match="lies outside its space"):
        moves = (Move(NONE, 2, 9 * SLOT, settles=True),)
        replace(table, repeats=(Repeat(1, 3, TRIPS, moves),))


MODEL = """model (float[17,24] x, float[17,24] y, float end, int64 most) => (
    float[17,24] z, float count SHOWN) {
  zero = Constant<value_float = 0.0>()  go = Constant<value = bool {1}>()
  MOST
  count, z GIVEN = Loop (most, go, zero, x) <
    body = step (int64 i, bool k, float before, float[17,24] v) => (more, n, u MADE) {
      one = Constant<value_float = 1.0>()  high = Constant<value_float = 9.0>()
      n = Add(before, one)  more = Less(n, end)
      p = MatMul(v, w)  q = Add(p, y)  r = Min(q, high)  u = Relu(r)
      ROW
    }>
}"""


def model(*, shows: bool, most: int | None = None) -> onnx.ModelProto:
    """Small integers in f32: exact on every machine."""
    words = {"SHOWN": ", float[n,24] tops", "GIVEN": ", tops", "MADE": ", top"}
    words["ROW"] = "axis = Constant<value_ints = [0]>()  " * shows
    words["ROW"] += "top = ReduceMax<keepdims = 0>(u, axis)" * shows
    words["MOST"] = "" if most is None else f"most = Constant<value_int = {most}>()"
    text = MODEL if most is None else MODEL.replace(", int64 most)", ")")
    for word, value in words.items():
        text = text.replace(word, value if shows or word in ("ROW", "MOST") else "")
    made = onnx.parser.parse_model(HEAD + text)
    random = np.random.default_rng(1)
    weights = random.integers(-3, 4, (24, 24)).astype(np.float32)
    made.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return made


def feeds(end: int, most: int | None) -> dict[str, np.ndarray]:
    random = np.random.default_rng(2)
    x, y = random.integers(-3, 4, (2, 17, 24)).astype(np.float32)
    given = {"x": x, "y": y, "end": np.array(end, np.float32)}
    return given if most is None else {**given, "most": np.array(most)}


ENDS = ((4, 9), (9, 5), (1, 9), (6, 0), (30, 40))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_library(threads: int, tmp_path: Path) -> None:
    """With scan outputs, whose room is known; the weights lie in it."""
    made = model(shows=True, most=20)
    program = nanoloom.compile(made, threads=threads, cache=Cache(tmp_path))
    loaded = nanoloom.load(program.save(tmp_path / "model.so"), threads=threads)
    for end, _ in ENDS:
        given = feeds(end, None)
        wanted = reference(made, given)
        for run in (program, loaded):
            for one, other in zip(run(given).values(), wanted, strict=False):
                np.testing.assert_array_equal(one, other)
        assert all(x.any() for x in wanted)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize(
    "name", ["riscv64", "riscv64+v", "aarch64", "aarch64+sve", "x86-64-v2"]
)
def test_an_executable_for_another_machine(name: str, tmp_path: Path) -> None:
    where, cache = machine(name), Cache(tmp_path / "cache")
    lend(where.target.arch, cache)
    made = model(shows=False)
    program = nanoloom.compile(made, options=CompileOptions(where.target), cache=cache)
    file = program.save(tmp_path / "model", form="executable")
    kinds = [x.name for x in program.outputs]
    for (end, most), threads in zip(ENDS, (1, 2, 1, 1, 2), strict=True):
        given = feeds(end, most)
        order = [given[x.name] for x in program.inputs]
        found = run_emulated(where, file, order, kinds, threads)
        for one, other in zip(found.values(), reference(made, given), strict=True):
            np.testing.assert_array_equal(one, other)
            assert most == 0 or one.any()


MAIN = """
#include <stdio.h>
#include "ended.h"
static _Alignas(64) char workspace[NANOLOOM_ENDED_WORKSPACE];
int main(void)
{
    static float x[17 * 24], y[17 * 24], end, z[17 * 24], count;
    static long long most;
    const void *inputs[] = {x, y, &end, &most};
    void *outputs[] = {z, &count};
    while (fread(x, sizeof x, 1, stdin) && fread(y, sizeof y, 1, stdin) &&
           fread(&end, 4, 1, stdin) && fread(&most, 8, 1, stdin)) {
        int status = nanoloom_ended_run(inputs, outputs, workspace);
        if (status)
            return status;
        fwrite(z, sizeof z, 1, stdout);
        fwrite(&count, 4, 1, stdout);
    }
    return 0;
}
"""


def test_a_bare_object(tmp_path: Path) -> None:
    """In C alone, without a system: one state behind the other in the same memory."""
    made, cache = model(shows=False), Cache(tmp_path / "cache")
    options = CompileOptions(by_name("x86-64-v2"))
    program = nanoloom.compile(made, options=options, cache=cache)
    assert [x.name for x in program.inputs] == ["x", "y", "end", "most"]
    program.save(tmp_path / "ended.o", form="bare", name="ended")
    (tmp_path / "main.c").write_text(MAIN)
    command = [str(zig()), "cc", "main.c", "ended.o", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    given = [feeds(*each) for each in ENDS]
    data = b"".join(x.tobytes() for each in given for x in each.values())
    done = subprocess.run(["./main"], cwd=tmp_path, input=data, stdout=-1, check=True)
    right = [x.tobytes() for each in given for x in reference(made, each)]
    assert done.stdout == b"".join(right)
