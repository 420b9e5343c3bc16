"""A hand-made program loaded and run in this process."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nanoloom.binary.shared import write_in_process
from nanoloom.binary.table import Buffer, ProgramTable, Step
from nanoloom.cache import Cache
from nanoloom.errors import Error, InputError
from nanoloom.interface.tensor import Element, Space, Tensor
from nanoloom.runtime import layout, shared_pool
from nanoloom.runtime.library import Library
from tests.runtime.native import TRIPLE, aligned, expected, in_process, kernels, table

TASKS = 1237
COUNT = 3 * TASKS
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> Library:
    return Library(in_process(tmp_path_factory.mktemp("program"), cache, TASKS))


@pytest.fixture(scope="module")
def arrays() -> Arrays:
    random = np.random.default_rng(7)
    a, b, weights = random.standard_normal((3, COUNT)).astype(np.float32)
    return a, b, aligned(weights)


def outputs() -> list[np.ndarray]:
    return [np.full(COUNT, np.nan, np.float32) for _ in range(2)]


def test_describes_itself(library: Library) -> None:
    assert library.inputs == table(TASKS).inputs
    assert library.outputs == table(TASKS).outputs
    assert library.steps == ("layer/add", "layer/mul", "layer/total")
    assert library.parameter_bytes == 4 * COUNT
    assert library.arena_bytes == 4 * COUNT + 64


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_same_bits_at_any_number_of_threads(
    library: Library, arrays: Arrays, threads: int
) -> None:
    a, b, weights = arrays
    with library.create(threads, weights) as instance:
        assert instance.threads == threads
        for _ in range(20):
            got = outputs()
            instance.run([a, b], got)
            for one, other in zip(got, expected(a, b, weights), strict=True):
                assert one.tobytes() == other.tobytes()


def test_times_of_every_step(library: Library, arrays: Arrays) -> None:
    a, b, weights = arrays
    with library.create(2, weights) as instance:
        times = np.full(3, -1, np.int64)
        begin = time.monotonic_ns()
        instance.run([a, b], outputs(), nanoseconds=times)
        assert (times >= 0).all()
        assert 0 < times.sum() <= 1.01 * (time.monotonic_ns() - begin)
        with pytest.raises(ValueError, match=r"int64\[3\]"):
            instance.run([a, b], outputs(), nanoseconds=times[:2])


def test_threads_run_one_instance_at_once(library: Library, arrays: Arrays) -> None:
    a, b, weights = arrays
    wrong: list[int] = []

    def work(seed: int) -> None:
        mine = np.roll(a, seed)
        want = expected(mine, b, weights)
        arena = instance.arena() if seed % 2 else None
        for _ in range(100):
            got = outputs()
            instance.run([mine, b], got, arena=arena)
            if any((g != w).any() for g, w in zip(got, want, strict=True)):
                wrong.append(seed)

    with library.create(2, weights) as instance:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_an_arena_belongs_to_a_program(library: Library, arrays: Arrays) -> None:
    a, b, weights = arrays
    other = library.create(1, weights)
    with library.create(1, weights) as one, pytest.raises(ValueError, match="another"):
        one.run([a, b], outputs(), arena=other.arena())
    other.close()


def test_a_forked_child_runs(library: Library, arrays: Arrays) -> None:
    a, b, weights = arrays
    with library.create(2, weights) as instance:
        instance.run([a, b], outputs())
        process = os.fork()
        if not process:
            got = outputs()
            instance.run([a, b], got)
            right = (got[1] == expected(a, b, weights)[1]).all()
            os._exit(0 if right else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def test_the_callers_rounding_does_not_matter(library: Library, arrays: Arrays) -> None:
    a, b, weights = arrays
    want = expected(a, b, weights)
    libm = ctypes.CDLL("libm.so.6")
    upward = {"x86_64": 0x800, "aarch64": 0x400000, "riscv64": 3}[TRIPLE.split("-")[0]]
    for threads in (1, 2):
        with library.create(threads, weights) as instance:
            got = outputs()
            before = libm.fegetround()
            assert libm.fesetround(upward) == 0
            try:
                instance.run([a, b], got)
                assert libm.fegetround() == upward
            finally:
                libm.fesetround(before)
            assert all((g == w).all() for g, w in zip(got, want, strict=True))


def test_unaligned_arrays(library: Library, arrays: Arrays) -> None:
    a, b, weights = arrays
    room = np.zeros(COUNT + 16, np.float32)
    start = (-room.ctypes.data % 64) // 4 + 1
    mine = room[start : start + COUNT]
    mine[:] = a
    assert mine.ctypes.data % 64 == 4
    with library.create(2, weights) as instance:
        got = outputs()
        instance.run([mine, b], got)
    assert (got[0] == expected(a, b, weights)[0]).all()


def test_wrong_arrays_are_refused(library: Library, arrays: Arrays) -> None:
    a, b, weights = arrays
    frozen = np.zeros(COUNT, np.float32)
    frozen.flags.writeable = False
    cases = [
        ([a], outputs(), r"1 inputs given, the model has 2"),
        ([a, b[:-1]], outputs(), r"input b: float32\[3710\] given, .* float32\[3711\]"),
        ([a, b.astype(np.float64)], outputs(), r"input b: float64"),
        ([a, np.zeros(2 * COUNT, np.float32)[::2]], outputs(), "input b: .*contiguous"),
        ([a, b], [frozen, frozen], "output out: .*writable"),
    ]
    with library.create(2, weights) as instance:
        for inputs, results, message in cases:
            with pytest.raises(InputError, match=message):
                instance.run(inputs, results)


class Subclass(np.ndarray):
    """Its layout is an array's; what it means is its own."""


def test_what_c_leaves_to_python(library: Library, arrays: Arrays) -> None:
    a, b, weights = arrays
    equal = a.astype(np.dtype("f4", metadata={"unit": "m"}))
    calls: list[int] = []
    with library.create(2, weights) as instance:
        run = instance._run_pointers
        instance._run_pointers = lambda *given: (calls.append(1), run(*given))[1]
        for given, by_python in (
            (a, False),
            (np.concatenate([a, a])[COUNT:], False),
            (a.view(Subclass), True),
            (equal, True),
        ):
            calls.clear()
            got = outputs()
            instance.run([given, b], got)
            assert bool(calls) == by_python
            for one, other in zip(got, expected(a, b, weights), strict=True):
                assert one.tobytes() == other.tobytes()
        calls.clear()
        shifted = np.zeros(4 * COUNT + 1, np.uint8)[1:].view(np.float32)
        for wrong in (a.astype(">f4"), a[None], a.reshape(3, -1), a[:-1], shifted):
            with pytest.raises(InputError, match=r"input b: "):
                instance.run([a, wrong], outputs())
        with pytest.raises(InputError, match="3 inputs given"):
            instance.run([a, b, a], outputs()[:1])  # as many arrays in all
        for thing in (None, 3.0, np.float32(3), [1.0]):
            with pytest.raises(InputError, match=r"input b: .* wants an array"):
                instance.run([a, thing], outputs())
        assert not calls


def test_wrong_parameters_are_refused(library: Library, arrays: Arrays) -> None:
    weights = arrays[2]
    with pytest.raises(ValueError, match="needs its parameters"):
        library.create(1)
    with pytest.raises(ValueError, match="14840 bytes of parameters, not 14844"):
        library.create(1, weights[:-1])
    shifted = aligned(np.append(weights, weights[:1]))[1:]
    with pytest.raises(ValueError, match="64-byte aligned"):
        library.create(1, shifted)


def test_closed_instances(library: Library, arrays: Arrays) -> None:
    a, b, weights = arrays
    instance = library.create(2, weights)
    instance.close()
    instance.close()
    with pytest.raises(Error, match="closed"):
        instance.run([a, b], outputs())
    gc.collect()
    holder = library.create(3, weights)
    before = users()
    forgotten = library.create(3, weights)
    forgotten.run([a, b], outputs())
    assert users() == before + 1
    del forgotten
    gc.collect()
    assert users() == before
    holder.close()


def users() -> int:
    """Programs that have a part in the process's threads."""
    pool = shared_pool._Shared.pool
    return pool.users if pool else 0


def test_arenas_are_aligned_and_huge_ones_on_huge_pages(
    tmp_path: Path, cache: Cache
) -> None:
    big = replace(table(5), arena_bytes=5 << 20)
    for name, program, alignment in (("a", table(5), 64), ("b", big, 2 << 20)):
        path = tmp_path / f"{name}.so"
        write_in_process(kernels(), program, path, triple=TRIPLE, cache=cache)
        with Library(path).create(1, aligned(np.zeros(15, np.float32))) as instance:
            arenas = [instance.arena() for _ in range(3)]
            assert len({arena.address for arena in arenas}) == 3
            assert all(arena.address % alignment == 0 for arena in arenas)


def test_a_program_without_steps_inputs_or_parameters(
    tmp_path: Path, cache: Cache
) -> None:
    scalar = Tensor('größe ??/ "x"\n', Element.BF16, ())
    step = Step("add_f32", 1, tuple(Buffer(Space.ARENA, 4 * i) for i in range(3)), "s")
    for steps in ((), (step,)):
        program = ProgramTable(steps, 64, 0, (), (scalar,))
        path = tmp_path / f"empty{len(steps)}.so"
        write_in_process(kernels(), program, path, triple=TRIPLE, cache=cache)
        library = Library(path)
        assert library.outputs == (scalar,)
        with library.create(2) as instance:
            instance.run([], [np.zeros((), Element.BF16.dtype)])


def test_files_that_are_no_libraries(tmp_path: Path) -> None:
    text = tmp_path / "model.so"
    text.write_text("no library")
    with pytest.raises(Error, match=r"model\.so: is no library of nanoloom"):
        Library(text)
    with pytest.raises(Error, match="cannot load the library: No such file"):
        Library(tmp_path / "absent.so")
    other = next(Path(np.__file__).parent.rglob("_multiarray_umath*.so"))
    with pytest.raises(Error, match="is no library of nanoloom"):
        Library(other)


def test_another_version_is_refused(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = in_process(tmp_path, cache, 2)
    made = layout.VERSION
    monkeypatch.setattr(layout, "VERSION", 99)
    with pytest.raises(
        Error, match=rf"another version .* format {made}; .* format 99;"
    ):
        Library(path)


def test_a_missing_function_is_named(tmp_path: Path, cache: Cache) -> None:
    path = tmp_path / "missing.so"
    write_in_process(kernels()[:1], table(2), path, triple=TRIPLE, cache=cache)
    with pytest.raises(Error, match=r"cannot load the library: .*mul_f32"):
        Library(path)
