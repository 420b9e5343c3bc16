"""Steps that run several times in a row, on hand-made tables."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nanoloom.binary.repeats import Move, Repeat
from nanoloom.binary.shared import write_in_process
from nanoloom.binary.sizes import SizesTable
from nanoloom.binary.table import Buffer, ProgramTable, Step
from nanoloom.cache import Cache
from nanoloom.dynamic.polynomial import Size
from nanoloom.interface.bounds import Bounds
from nanoloom.interface.tensor import Element, Space, Tensor
from nanoloom.runtime.library import Library
from tests.runtime.native import TRIPLE, kernels

TASKS = 5
COUNT = 3 * TASKS
ROW = 4 * COUNT
SLOT = 64 * 3  # a state's
FEW, MANY = 1000, 10**6  # points of a trip: threads are used for many
TEMPORARY = Buffer(Space.ARENA, 2 * SLOT)


def recurrence(trips: int) -> ProgramTable:
    """s = 2 h; for t: m = s x[t], y[t] = s + m, s = m + x[-1 - t]; last = s + h."""
    x, h = Buffer(Space.INPUT), Buffer(Space.INPUT, index=1)
    y, last = Buffer(Space.OUTPUT), Buffer(Space.OUTPUT, index=1)
    end = Buffer(Space.INPUT, (trips - 1) * ROW)
    state, after = Buffer(Space.ARENA), Buffer(Space.ARENA, SLOT)
    final = after if trips % 2 else state
    moves = (
        Move(1, 0, SLOT, alternates=True),
        Move(1, 1, ROW),
        Move(2, 0, SLOT, alternates=True),
        Move(2, 2, ROW),
        Move(3, 1, -ROW),
        Move(3, 2, -SLOT, alternates=True),
    )
    return ProgramTable(
        (
            Step("add_f32", TASKS, (h, h, state), "begin"),
            Step("mul_f32", TASKS, (state, x, TEMPORARY), "product"),
            Step("add_f32", TASKS, (state, TEMPORARY, y), "shown"),
            Step("add_f32", TASKS, (TEMPORARY, end, after), "state"),
            Step("add_f32", TASKS, (final, h, last), "end"),
        ),
        3 * SLOT,
        0,
        (_rows("x", trips), _rows("h", 1)),
        (_rows("y", trips), _rows("last", 1)),
        repeats=(Repeat(1, 3, trips, moves),),
    )


def _rows(name: str, count: int) -> Tensor:
    return Tensor(name, Element.F32, (count, COUNT))


def right(x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `recurrence` computes, one operation of f32 after the other."""
    state, shown = h + h, np.zeros_like(x)
    for t, row in enumerate(x):
        product = state * row
        shown[t] = (state + product)[0]
        state = product + x[len(x) - 1 - t]
    return shown, state + h


@pytest.mark.parametrize("trips", [1, 2, 5, 8])
@pytest.mark.parametrize("threads", [1, 2])
def test_operands_move_and_states_alternate(
    tmp_path: Path, cache: Cache, trips: int, threads: int
) -> None:
    path = tmp_path / "model.so"
    write_in_process(kernels(), recurrence(trips), path, triple=TRIPLE, cache=cache)
    r = np.random.default_rng(trips)
    x, h = (r.uniform(-1, 1, (n, COUNT)).astype(np.float32) for n in (trips, 1))
    made = [np.zeros((trips, COUNT), np.float32), np.zeros((1, COUNT), np.float32)]
    times = np.zeros(5, np.int64)
    with Library(path).create(threads) as instance:
        for _ in range(2):  # the second run finds everything where the first did
            instance.run([x, h], made, nanoseconds=times)
            for one, other in zip(made, right(x, h), strict=True):
                np.testing.assert_array_equal(one, other)
                assert other.any()
    assert (times > 0).all()


def test_a_repeat_inside_of_another(tmp_path: Path, cache: Cache) -> None:
    """y[i, j] = x[i] + x[j]: the inner operands begin again in each outer trip."""
    outer, inner = 3, 4
    x, y = Buffer(Space.INPUT), Buffer(Space.OUTPUT)
    table = ProgramTable(
        (Step("add_f32", TASKS, (x, x, y), "both"),),
        0,
        0,
        (_rows("x", 4),),
        (Tensor("y", Element.F32, (outer, inner, COUNT)),),
        repeats=(
            Repeat(0, 1, outer, (Move(0, 0, ROW), Move(0, 2, inner * ROW))),
            Repeat(0, 1, inner, (Move(0, 1, ROW), Move(0, 2, ROW))),
        ),
    )
    path = tmp_path / "model.so"
    write_in_process(kernels(), table, path, triple=TRIPLE, cache=cache)
    given = np.random.default_rng(0).uniform(-1, 1, (4, COUNT)).astype(np.float32)
    made = np.zeros((outer, inner, COUNT), np.float32)
    with Library(path).create(1) as instance:
        instance.run([given], [made])
    np.testing.assert_array_equal(made, given[:outer, None] + given[None])


def test_tasks_go_there_and_back(tmp_path: Path, cache: Cache) -> None:
    """Each reads what the one in front of it wrote, if that one has run before it."""
    x, y, behind = Buffer(Space.INPUT), Buffer(Space.OUTPUT), Buffer(Space.OUTPUT, 12)
    longer = COUNT + 3
    moves = Move(0, 0, 4 * longer), Move(0, 2, 4 * longer)
    table = ProgramTable(
        (Step("add_f32", TASKS, (y, x, behind), "shifted"),),
        0,
        0,
        (_rows("x", 1),),
        (Tensor("y", Element.F32, (3, longer)),),
        repeats=(Repeat(0, 1, 3, moves),),
    )
    path = tmp_path / "model.so"
    write_in_process(kernels(), table, path, triple=TRIPLE, cache=cache)
    made = np.zeros((3, longer), np.float32)
    with Library(path).create(1) as instance:
        instance.run([np.ones((1, COUNT), np.float32)], [made])
    there, back = np.repeat(np.arange(TASKS + 1), 3), np.repeat([0, 1], [3, COUNT])
    np.testing.assert_array_equal(made, [there, back, there])


def test_operands_that_leave_their_memory() -> None:
    table = recurrence(4)
    for move in (Move(1, 1, 2 * ROW), Move(1, 1, -ROW), Move(2, 0, 9 * SLOT, True)):
        with pytest.raises(ValueError, match="lies outside its space"):
            replace(table, repeats=(Repeat(1, 3, 4, (move,)),))
    with pytest.raises(ValueError, match="outside of it"):
        replace(table, repeats=(Repeat(0, 1, 2, (Move(4, 0, 4),)),))
    with pytest.raises(ValueError, match="repeats nothing"):
        Repeat(0, 1, 0)


# Words of the program below: trips, where the last row begins, bytes of a state, 0 and
# 1 trips, bytes from row to row, bytes for two places.
TRIPS, ROWS, BYTES, NONE_YET, ONE, STRIDE, ROOM = range(7)


def open_recurrence() -> ProgramTable:
    """`recurrence` of n rows whose last state is where the trips say."""
    known = recurrence(3)
    x, h = Buffer(Space.INPUT), Buffer(Space.INPUT, index=1)
    y, last = Buffer(Space.OUTPUT), Buffer(Space.OUTPUT, index=1)
    end = Buffer(Space.INPUT, word=ROWS)
    state, after, final = (
        Buffer(Space.ARENA, slot=0, state=(BYTES, trips))
        for trips in (NONE_YET, ONE, TRIPS)
    )
    made = Buffer(Space.ARENA, slot=1)
    buffers = (
        (h, h, state),
        (state, x, made),
        (state, made, y),
        (made, end, after),
        (final, h, last),
    )
    moves = (
        Move(1, 0, 1, alternates=True, word=BYTES),
        Move(1, 1, ROW),
        Move(2, 0, 1, alternates=True, word=BYTES),
        Move(2, 2, ROW),
        Move(3, 1, -1, word=STRIDE),
        Move(3, 2, -1, alternates=True, word=BYTES),
    )
    steps = tuple(
        replace(step, buffers=each)
        for step, each in zip(known.steps, buffers, strict=True)
    )
    shape = (TRIPS, -1)
    words = [((1, ("n",)),), ((ROW, ("n",)), (-ROW, ())), ((ROW, ()),), (), ((1, ()),)]
    words += [((ROW, ()),), ((2 * (ROW + 64), ()),)]
    return replace(
        known,
        steps=steps,
        arena_bytes=0,
        inputs=(replace(_rows("x", 0), words=shape), _rows("h", 1)),
        outputs=(replace(_rows("y", 0), words=shape), _rows("last", 1)),
        repeats=(Repeat(1, 3, 3, moves, TRIPS),),
        sizes=SizesTable(
            ("n",), tuple(map(Size, words)), ((ROOM,), (BYTES,)), (Bounds(),)
        ),
    )


def test_trips_and_strides_that_are_sizes(tmp_path: Path, cache: Cache) -> None:
    path = tmp_path / "model.so"
    table = open_recurrence()
    write_in_process(kernels(), table, path, triple=TRIPLE, cache=cache)
    whole = Library(path)
    for trips in (1, 2, 5, 8, 3):
        bound = whole.bound([trips])
        r = np.random.default_rng(trips)
        x, h = (r.uniform(-1, 1, (n, COUNT)).astype(np.float32) for n in (trips, 1))
        made = bound.new_outputs()
        with bound.create(2) as instance:
            for _ in range(2):
                instance.run([x, h], made)
                for one, other in zip(made, right(x, h), strict=True):
                    np.testing.assert_array_equal(one, other)
                    assert other.any()


def two_recurrences(trips: int, points: int = 0) -> ProgramTable:
    """s = s + x[t] and p = p x[-1 - t], beside each other; each begins with h + h."""
    x, h = Buffer(Space.INPUT), Buffer(Space.INPUT, index=1)
    end = Buffer(Space.INPUT, (trips - 1) * ROW)
    outputs = [Buffer(Space.OUTPUT, index=i) for i in (0, 1)]
    steps: list[Step] = []
    repeats: list[Repeat] = []
    for number, (kernel, row) in enumerate((("add_f32", x), ("mul_f32", end))):
        state = Buffer(Space.ARENA, 2 * number * SLOT)
        after = replace(state, offset=state.offset + SLOT)
        steps.append(Step(kernel, TASKS, (state, row, after), "step", 64))
        moves = (
            Move(2 + number, 0, SLOT, alternates=True),
            Move(2 + number, 1, -ROW if number else ROW),
            Move(2 + number, 2, -SLOT, alternates=True),
        )
        first, beside = 2 + number, number > 0
        repeats.append(Repeat(first, 1, trips, moves, beside=beside, points=points))
    states = [Buffer(Space.ARENA, 2 * i * SLOT) for i in (0, 1)]
    begin = [Step("add_f32", TASKS, (h, h, s), "begin") for s in states]
    ends = zip(states, outputs, strict=True)
    return ProgramTable(
        (*begin, *steps, *(Step("add_f32", TASKS, (s, h, y), "end") for s, y in ends)),
        4 * SLOT,
        0,
        (_rows("x", trips), _rows("h", 1)),
        (_rows("sum", 1), _rows("product", 1)),
        repeats=tuple(repeats),
    )


def both(x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `two_recurrences` computes."""
    total = product = h + h
    for t in range(len(x)):
        total, product = total + x[t], product * x[-1 - t]
    return total + h, product + h


@pytest.mark.drawn
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("points", [0, FEW, MANY])
def test_repeats_beside_each_other(
    tmp_path: Path, cache: Cache, threads: int, points: int
) -> None:
    path = tmp_path / "model.so"
    table = two_recurrences(40, points)
    write_in_process(kernels(), table, path, triple=TRIPLE, cache=cache)
    r = np.random.default_rng(threads)
    x = r.uniform(0.9, 1.1, (40, COUNT)).astype(np.float32)
    h = r.uniform(-1, 1, (1, COUNT)).astype(np.float32)
    made = [np.zeros((1, COUNT), np.float32) for _ in range(2)]
    times = np.zeros(6, np.int64)
    with Library(path).create(threads) as instance:
        for _ in range(20):
            instance.run([x, h], made, nanoseconds=times)
            for one, other in zip(made, both(x, h), strict=True):
                np.testing.assert_array_equal(one, other)
    assert (times > 0).all()


TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
)


# In front of and behind the repeats there are two steps each, which threads share.
@pytest.mark.parametrize(
    ("threads", "points", "shared"),
    [
        (2, MANY, [2]),  # a repeat for each thread
        (3, MANY, [2]),
        (4, MANY, [TASKS] * 12),  # each step of six trips in all threads
        (4, FEW, [2]),
        (4, 0, [TASKS] * 12),
    ],
)
def test_what_threads_share(
    tmp_path: Path, cache: Cache, threads: int, points: int, shared: list[int]
) -> None:
    found: list[int] = []

    def alone(_: int, task: int, argument: int, tasks: int) -> None:
        found.append(tasks)
        TASK(task)(argument, 0, tasks)

    path = tmp_path / "model.so"
    table = two_recurrences(6, points)
    write_in_process(kernels(), table, path, triple=TRIPLE, cache=cache)
    x, h = (np.full((n, COUNT), 1.25, np.float32) for n in (6, 1))
    made = [np.zeros((1, COUNT), np.float32) for _ in range(2)]
    counted = PARALLEL(alone)
    with Library(path).create(threads) as instance:
        arena = instance.arena()
        arena.call.parallel = ctypes.cast(counted, ctypes.c_void_p)
        instance.run([x, h], made, arena=arena)
    assert found == [TASKS] * 2 + shared + [TASKS] * 2
    for one, other in zip(made, both(x, h), strict=True):
        np.testing.assert_array_equal(one, other)


def test_short_trips_run_in_one_thread(tmp_path: Path, cache: Cache) -> None:
    """Of one repeat alone, too."""
    found: list[int] = []
    table = recurrence(4)
    for points in (FEW, MANY):
        repeats = tuple(replace(x, points=points) for x in table.repeats)
        path = tmp_path / f"{points}.so"
        made = replace(table, repeats=repeats)
        write_in_process(kernels(), made, path, triple=TRIPLE, cache=cache)

        def alone(_: int, task: int, argument: int, tasks: int) -> None:
            found.append(tasks)
            TASK(task)(argument, 0, tasks)

        counted = PARALLEL(alone)
        with Library(path).create(2) as instance:
            arena = instance.arena()
            arena.call.parallel = ctypes.cast(counted, ctypes.c_void_p)
            x, h = (np.ones((n, COUNT), np.float32) for n in (4, 1))
            instance.run([x, h], [np.zeros_like(x), np.zeros_like(h)], arena=arena)
    assert len(found) == 2 + (2 + 3 * 4)
