"""A hand-made program whose sizes are known at run time, bound to numbers of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nanoloom.binary.shared import write_in_process
from nanoloom.cache import Cache
from nanoloom.dynamic.floor_division import Floor
from nanoloom.dynamic.polynomial import Size
from nanoloom.errors import Error
from nanoloom.interface.bounds import Bounds
from nanoloom.runtime.library import Library
from tests.runtime.native import TRIPLE
from tests.runtime.sized import kernels, table

ANY = (Bounds(0),)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> Library:
    path = tmp_path_factory.mktemp("program") / "sized.so"
    write_in_process(kernels(), table(ANY), path, triple=TRIPLE, cache=cache)
    return Library(path)


def run(bound: Library, threads: int = 1) -> None:
    rows = bound.inputs[0].shape[0]
    a, b = np.random.default_rng(rows).standard_normal((2, rows, 3)).astype(np.float32)
    out = bound.new_outputs()
    with bound.create(threads) as instance:
        instance.run([a, b], out)
    assert (out[0] == ((a + a) + b).ravel()).all()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 5, 9])
def test_sizes(library: Library, n: int, threads: int) -> None:
    bound = library.bound([n])
    assert library.dims == bound.dims == ("n",)
    assert bound.inputs[1].shape == (n, 3)
    assert bound.outputs[0].shape == (3 * n,)
    # Two slots in whole lines: of n bytes, and of the sum; a byte each at least.
    lines = -(-max(n, 1) // 64) + -(-max(12 * n, 1) // 64)
    assert bound.arena_bytes == 64 * lines
    run(bound, threads)


def test_several_at_once(library: Library) -> None:
    few, many = library.bound([2]), library.bound([8])
    run(many)
    run(few)
    assert few.inputs[0].shape == (2, 3) and many.inputs[0].shape == (8, 3)


@pytest.mark.parametrize("n", [10, -1, 2**62])
def test_numbers_that_it_does_not_take(library: Library, n: int) -> None:
    with pytest.raises(Error, match=f"no sizes of the model: n={n}"):
        library.bound([n])


def test_dimensions_that_are_divided(tmp_path: Path, cache: Cache) -> None:
    """A limit for even numbers, and a shape of rows of two."""
    half, up = Floor("n", 0, 2), Floor("n", 1, 2)
    even = Size(((2, (half.name,)), (-1, ("n",))))
    whole = table(ANY)
    assert whole.sizes is not None
    words = (*whole.sizes.words, even, Size(((1, (up.name,)), (3, (half.name,)))))
    sizes = replace(whole.sizes, words=words, floors=(half, up))
    path, outputs = tmp_path / "half.so", (replace(whole.outputs[0], words=(5,)),)
    made = replace(whole, sizes=sizes, outputs=outputs)
    write_in_process(kernels(), made, path, triple=TRIPLE, cache=cache)
    library = Library(path)
    for n in (0, 2, 8):
        assert library.bound([n]).outputs[0].shape == ((n + 1) // 2 + 3 * (n // 2),)
    for n in (1, 7, 2**62):
        with pytest.raises(Error, match=f"no sizes of the model: n={n}"):
            library.bound([n])
    assert library.open and library.open.outputs == (
        ("(n + 1) // 2 + 3 * (n + 0) // 2",),
    )


def test_what_it_declares(library: Library) -> None:
    sizes = library.open
    assert sizes and (sizes.inputs, sizes.outputs) == (((("n", 3)),) * 2, (("3 * n",),))
    assert sizes.bounds == {"n": Bounds(0)}
    assert [x.shape for x in library.inputs] == [(-1, 3)] * 2


def test_threads_of_another_one(library: Library) -> None:
    """Bound programs run on the threads of the one that they are made from."""
    with library.create(2) as owner:
        bound = library.bound([7])
        borrowing = bound.create(owner)
        a = np.ones((7, 3), np.float32)
        for _ in range(3):
            out = bound.new_outputs()
            borrowing.run([a, a], out)
            assert (out[0] == 3).all()
        assert borrowing.threads == owner.threads
        borrowing.close()
        other = library.bound([2])
        run(other)


def test_a_bound_program_keeps_its_code(tmp_path: Path, cache: Cache) -> None:
    path = tmp_path / "sized.so"
    write_in_process(kernels(), table(ANY), path, triple=TRIPLE, cache=cache)
    whole = Library(path)
    bound = whole.bound([4])
    del whole
    run(bound)
