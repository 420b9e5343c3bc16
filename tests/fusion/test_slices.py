"""Slices that are read in another shape: read where they are, as far as they can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.attention_programs import roots
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import backwards, executable, program_of, targets

X = np.rint(sample(1, (2, 11, 63), "float32", -9, 9))


def heads(b: Any, x: Any, begin: int = 0, count: int = 3, size: int = 7) -> Any:
    """Some columns of a product as rows of heads."""
    taken = b.slice(x, [0, 0, begin], [2, 11, count * size])
    shaped = b.reshape(taken, (2, 11, count, size))
    return b.transpose(shaped, [0, 2, 1, 3])


def exact(x: np.ndarray, begin: int, count: int = 3, size: int = 7) -> np.ndarray:
    taken = x[:, :, begin : begin + count * size]
    return taken.reshape(2, 11, count, size).swapaxes(1, 2)


def split(b: Any, x: Any) -> list[Any]:
    made = b.elementwise(lambda s: s + s, x)
    return [
        b.elementwise(lambda s: s * 0.5, heads(b, made, begin)) for begin in (0, 21, 42)
    ]


@pytest.mark.parametrize("target", targets(), ids=str)
def test_outputs_of_a_split_are_read_as_heads(target: Any) -> None:
    program = program_of(split, X)
    assert roots(program) == ["elementwise"] * 4
    read = {str(k.nest.stages[0].reads[0]) for k in program.kernels.values()}
    assert "arg0[d0, d2, d1 + 3, d3]" in read
    got = executable(program, target)(X, order=backwards)
    for begin, made in zip((0, 21, 42), got, strict=True):
        assert (made == exact(X, begin)).all() and made.any()


def test_of_a_single_batch() -> None:
    """Its extent of 1 is in no loop, and in the way of no slice."""
    x = X[:1]

    def make(b: Any, x: Any) -> list[Any]:
        made = b.elementwise(lambda s: s + s, x)
        taken = [b.slice(made, [0, 0, n], [1, 11, 21]) for n in (0, 21)]
        shaped = [b.reshape(t, (1, 11, 3, 7)) for t in taken]
        heads = [b.transpose(t, [0, 2, 1, 3]) for t in shaped]
        rows = b.slice(made, [0, 2, 0], [1, 5, 63])
        return [*(b.elementwise(lambda s: -s, t) for t in (*heads, rows))]

    program = program_of(make, x)
    assert roots(program) == ["elementwise"] * 4
    first, second, row = executable(program, targets()[0])(x, order=backwards)
    for begin, got in ((0, first), (21, second)):
        taken = x[:, :, begin : begin + 21].reshape(1, 11, 3, 7).swapaxes(1, 2)
        assert (got == -2 * taken).all()
    assert (row == -2 * x[:, 2:7]).all()


@pytest.mark.parametrize(
    ("begin", "count", "size"), [(20, 3, 7), (0, 5, 12), (3, 6, 10)], ids=str
)
def test_a_slice_that_ends_within_a_head(begin: int, count: int, size: int) -> None:
    """63 columns are no whole heads of 12, and 20 in front of some no heads of 7."""

    def make(b: Any, x: Any) -> Any:
        made = b.elementwise(lambda s: s + s, x)
        return b.elementwise(lambda s: s * 0.5, heads(b, made, begin, count, size))

    program = program_of(make, X)
    assert "opaque" in roots(program)
    (got,) = executable(program, targets()[0])(X)
    assert (got == exact(X, begin, count, size)).all()


def test_a_slice_that_a_product_reads() -> None:
    """It is made for the product, a block of rows at a time."""
    w = np.rint(sample(2, (7, 5), "float32", -3, 3))

    def make(b: Any, x: Any) -> Any:
        made = b.elementwise(lambda s: s + s, x)
        return b.einsum("ahmk,kn->ahmn", heads(b, made, 21), b.constant(w))

    program = program_of(make, X)
    assert roots(program) == ["elementwise", "contraction"]
    (got,) = executable(program, targets()[0])(X)
    assert (got == exact(X + X, 21) @ w).all()


def test_a_slice_with_steps() -> None:
    def make(b: Any, x: Any) -> Any:
        taken = b.slice(
            b.elementwise(lambda s: s + s, x), [0, 0, 0], [2, 11, 21], [1, 1, 3]
        )
        return b.elementwise(lambda s: -s, b.reshape(taken, (2, 11, 3, 7)))

    (got,) = executable(program_of(make, X), targets()[0])(X)
    assert (got == -2 * X[:, :, ::3].reshape(2, 11, 3, 7)).all()
