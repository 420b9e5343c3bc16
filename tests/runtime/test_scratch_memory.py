"""Scratch memory: a part for every thread that runs tasks."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nanoloom.binary.objects import emit
from nanoloom.binary.shared import write_in_process, write_shared_library
from nanoloom.binary.table import Buffer, ProgramTable, Step
from nanoloom.cache import Cache
from nanoloom.interface.tensor import Element, Space, Tensor
from nanoloom.runtime.library import Library
from nanoloom.runtime.threads import default_threads
from tests.runtime.native import TRIPLE

TASKS, SCRATCH, ALONE = 500, 128, 1 << 14

# Writes to both ends of its scratch memory, waits, and gives the address of what it
# still finds there: 0 if another thread was at it.
KERNEL = """
define void @{name}(ptr %buffers, i64 %begin, i64 %end, ptr %scratch) {{
  %out = load ptr, ptr %buffers
  %last = getelementptr i8, ptr %scratch, i64 {last}
  br label %head
head:
  %i = phi i64 [ %begin, %0 ], [ %next, %done ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %out_of_it
body:
  store volatile i64 %i, ptr %scratch
  store volatile i64 %i, ptr %last
  br label %wait
wait:
  %turn = phi i64 [ 0, %body ], [ %turns, %wait ]
  %turns = add i64 %turn, 1
  %first = load volatile i64, ptr %scratch
  %other = load volatile i64, ptr %last
  %again = icmp slt i64 %turns, 2000
  br i1 %again, label %wait, label %done
done:
  %one = icmp eq i64 %first, %i
  %two = icmp eq i64 %other, %i
  %both = and i1 %one, %two
  %address = ptrtoint ptr %scratch to i64
  %found = select i1 %both, i64 %address, i64 0
  %place = getelementptr i64, ptr %out, i64 %i
  store i64 %found, ptr %place
  %next = add i64 %i, 1
  br label %head
out_of_it:
  ret void
}}
"""
TABLE = ProgramTable(
    steps=(
        Step("several", TASKS, (Buffer(Space.OUTPUT),), "several", SCRATCH),
        Step("alone", 1, (Buffer(Space.OUTPUT, index=1),), "alone", ALONE),
        Step("several", TASKS, (Buffer(Space.OUTPUT, index=2),), "again", SCRATCH),
    ),
    arena_bytes=0,
    parameter_bytes=0,
    inputs=(),
    outputs=tuple(
        Tensor(name, Element.I64, (size,))
        for name, size in (("first", TASKS), ("one", 1), ("second", TASKS))
    ),
)


def objects() -> list[bytes]:
    cpu = "generic" if not TRIPLE.startswith("x86") else "x86-64"
    sizes = {"several": SCRATCH, "alone": ALONE}
    texts = [KERNEL.format(name=n, last=size - 8) for n, size in sizes.items()]
    return [emit(text, triple=TRIPLE, cpu=cpu) for text in texts]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> Library:
    path = tmp_path_factory.mktemp("scratch") / "program.so"
    write_in_process(objects(), TABLE, path, triple=TRIPLE, cache=cache)
    return Library(path)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_have_parts_of_their_own(library: Library, threads: int) -> None:
    with library.create(threads) as instance:
        for _ in range(20):
            first, one, second = outputs = library.new_outputs()
            instance.run([], outputs)
            parts = {*first.tolist(), *second.tolist()}
            assert 0 not in parts
            assert len(parts) <= threads
            assert max(parts) - min(parts) <= (threads - 1) * SCRATCH
            assert all(part % 64 == 0 for part in parts)
            assert one[0] == min(parts) if threads == 1 else one[0] <= min(parts)


def test_how_much_there_is() -> None:
    assert TABLE.scratch_bytes == SCRATCH
    assert TABLE.alone_bytes == ALONE


def test_more_threads_than_parts_wait(tmp_path: Path, cache: Cache) -> None:
    """A pool of the caller's own, with more threads than this process has CPUs."""
    file = tmp_path / "model.so"
    write_shared_library(
        objects(), TABLE, None, file, "model", triple=TRIPLE, cache=cache
    )
    model = ctypes.CDLL(str(file))
    model.nanoloom_model_create_on.restype = ctypes.c_void_p
    many = 3 * default_threads()
    numbers = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    task = ctypes.CFUNCTYPE(None, *numbers)

    def parallel(_: int, do: Callable[..., None], argument: int, tasks: int) -> None:
        edges = [tasks * i // many for i in range(many + 1)]
        running = [
            threading.Thread(target=do, args=(argument, begin, end))
            for begin, end in itertools.pairwise(edges)
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    kind = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, task, ctypes.c_void_p, ctypes.c_int64
    )
    pool = kind(parallel)
    handle = ctypes.c_void_p(model.nanoloom_model_create_on(pool, None))
    made = [np.zeros(x.shape, np.int64) for x in TABLE.outputs]
    addresses = (ctypes.c_void_p * len(made))(*(x.ctypes.data for x in made))
    assert model.nanoloom_model_run(handle, None, addresses) == 0
    parts = {*made[0].tolist(), *made[2].tolist()}
    assert 0 not in parts
    assert len(parts) <= default_threads()
    model.nanoloom_model_destroy(handle)
