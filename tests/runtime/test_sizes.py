"""A hand-made program whose sizes are known at run time, bound to numbers of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nanoloom.binary.objects import emit
from nanoloom.binary.shared import write_in_process
from nanoloom.binary.sizes import COUNTED, SizesTable
from nanoloom.binary.table import Buffer, Element, ProgramTable, Space, Step, Tensor
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.runtime.library import Library
from nanoloom.sizes.size import Size
from tests.runtime.native import TRIPLE, kernel_ir

# Tasks of three elements: as many as the first word of the step says.
TASKS = """
define i64 @add_f32_tasks(ptr %sizes) {
  %n = load i64, ptr %sizes
  ret i64 %n
}
"""
N, FLOATS = Size(((1, ("n",)),)), Size(((3, ("n",)),))
BYTES, LEFT = Size(((12, ("n",)),)), Size(((-1, ("n",)), (9, ())))


def table() -> ProgramTable:
    """out = (a + a) + b, through the arena; at most 9 tasks."""
    a, b = Buffer(Space.INPUT), Buffer(Space.INPUT, index=1)
    twice, out = Buffer(Space.ARENA, slot=1), Buffer(Space.OUTPUT)
    shape = ((0,), (1,))
    return ProgramTable(
        steps=(
            Step("add_f32", COUNTED, (a, a, twice), "twice", word=0),
            Step("add_f32", COUNTED, (twice, b, out), "sum", word=0),
        ),
        arena_bytes=0,
        parameter_bytes=0,
        inputs=tuple(Tensor(x, Element.F32, (0,), shape[1]) for x in "ab"),
        outputs=(Tensor("out", Element.F32, (0,), shape[1]),),
        sizes=SizesTable(("n",), (N, FLOATS, BYTES, LEFT), ((0,), (2,))),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> Library:
    cpu = "x86-64" if TRIPLE.startswith("x86") else "generic"
    code = emit(kernel_ir("add_f32", "fadd") + TASKS, triple=TRIPLE, cpu=cpu)
    path = tmp_path_factory.mktemp("program") / "sized.so"
    write_in_process([code], table(), path, triple=TRIPLE, cache=cache)
    return Library(path)


def run(bound: Library, threads: int = 1) -> None:
    count = bound.inputs[0].shape[0]
    a, b = np.random.default_rng(count).standard_normal((2, count)).astype(np.float32)
    out = bound.new_outputs()
    with bound.create(threads) as instance:
        instance.run([a, b], out)
    assert (out[0] == (a + a) + b).all()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 5, 9])
def test_sizes(library: Library, n: int, threads: int) -> None:
    bound = library.bound([n])
    assert library.dims == bound.dims == ("n",)
    assert bound.outputs[0].shape == bound.inputs[1].shape == (3 * n,)
    # Two slots in whole lines: of n bytes, and of the sum; a byte each at least.
    lines = -(-max(n, 1) // 64) + -(-max(12 * n, 1) // 64)
    assert bound.arena_bytes == 64 * lines
    run(bound, threads)


def test_several_at_once(library: Library) -> None:
    few, many = library.bound([2]), library.bound([8])
    run(many)
    run(few)
    assert few.inputs[0].shape == (6,) and many.inputs[0].shape == (24,)


@pytest.mark.parametrize("n", [10, -1, 2**62])
def test_numbers_that_it_does_not_take(library: Library, n: int) -> None:
    with pytest.raises(Error, match=f"no sizes of the model: n={n}"):
        library.bound([n])


def test_threads_of_another_one(library: Library) -> None:
    """Bound programs run on the threads of the one that they are made from."""
    with library.create(2) as owner:
        bound = library.bound([7])
        borrowing = bound.create(owner)
        a = np.ones(21, np.float32)
        for _ in range(3):
            out = bound.new_outputs()
            borrowing.run([a, a], out)
            assert (out[0] == 3).all()
        assert borrowing.threads == owner.threads
        borrowing.close()
        other = library.bound([2])
        run(other)


def test_a_bound_program_keeps_its_code(tmp_path: Path, cache: Cache) -> None:
    cpu = "x86-64" if TRIPLE.startswith("x86") else "generic"
    code = emit(kernel_ir("add_f32", "fadd") + TASKS, triple=TRIPLE, cpu=cpu)
    path = tmp_path / "sized.so"
    write_in_process([code], table(), path, triple=TRIPLE, cache=cache)
    whole = Library(path)
    bound = whole.bound([4])
    del whole
    run(bound)
