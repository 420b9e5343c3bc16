"""What follows a product in another shape is a part of its kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.target import Target
from tests.kernels.attention_programs import roots
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import (
    Array,
    backwards,
    executable,
    program_of,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)


def whole(seed: int, shape: tuple[int, ...]) -> Array:
    """Small integers, whose sums and products are exact."""
    return np.rint(sample(seed, shape, "float32", -3, 3))


X, W = whole(1, (22, 17)), whole(2, (17, 21))
SHAPE = (2, 11, 21)
MADE = (X @ W).reshape(SHAPE)


def product(b: Any, x: Any, shape: tuple[int, ...] = SHAPE) -> Any:
    return b.reshape(b.einsum("mk,kn->mn", x, b.constant(W)), shape)


def added(b: Any, x: Any, y: Any) -> Any:
    return b.elementwise(lambda s, t: s + t, x, y)


def results(make: Any, target: Target, *inputs: Array) -> tuple[list[str], Any]:
    program = program_of(make, *inputs)
    got = executable(program, target)(*inputs, order=backwards)
    return roots(program), got[0] if len(got) == 1 else got


@TARGETS
def test_a_function_that_reads_it_often(target: Target) -> None:
    """As GELU by its cube: all of it is in the product's kernel."""

    def make(b: Any, x: Any) -> Any:
        s = product(b, x)
        cube = b.elementwise(lambda s: s * s * s, s)
        other = b.elementwise(lambda s, t: s.maximum(t), s, cube)
        return b.elementwise(lambda s, t: s - t, s, other)

    kinds, got = results(make, target, X)
    assert kinds == ["contraction"]
    assert (got == MADE - np.maximum(MADE, MADE**3)).all() and got.any()


@TARGETS
def test_a_residual_and_a_bias(target: Target) -> None:
    y, bias = whole(3, SHAPE), whole(4, (21,))

    def make(b: Any, x: Any, y: Any) -> Any:
        return added(b, added(b, product(b, x), b.constant(bias)), y)

    kinds, got = results(make, target, X, y)
    assert kinds == ["contraction"]
    assert (got == MADE + bias + y).all()


@TARGETS
@pytest.mark.parametrize("shape", [(2, 11, 3, 7), (22, 3, 7), (11, 2, 7, 3)], ids=str)
def test_columns_in_a_shape_of_their_own(
    shape: tuple[int, ...], target: Target
) -> None:
    y, bias = whole(3, shape), whole(4, shape[-2:])

    def make(b: Any, x: Any, y: Any) -> Any:
        return added(b, added(b, product(b, x, shape), b.constant(bias)), y)

    kinds, got = results(make, target, X, y)
    assert kinds == ["contraction"]
    assert (got == MADE.reshape(shape) + bias + y).all()


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("split", [(0, 2, 11), (1, 3, 7)], ids=str)
def test_axes_that_are_one_further_on(
    split: tuple[int, int, int], target: Target
) -> None:
    """Rows or columns of a product that is written as three axes and read as two."""
    place, *sizes = split
    y, bias = whole(3, (22, 21)), whole(4, (21,))
    x = X.reshape(*sizes, 17) if place == 0 else X
    w = W.reshape(17, *sizes) if place == 1 else W
    terms = ["abk,kn->abn", "mk,kab->mab"][place]

    def make(b: Any, x: Any, y: Any) -> Any:
        s = b.reshape(b.einsum(terms, x, b.constant(w)), (22, 21))
        return added(b, added(b, s, b.constant(bias)), y)

    kinds, got = results(make, target, x, y)
    assert kinds == ["contraction"]
    assert (got == MADE.reshape(22, 21) + bias + y).all()


@TARGETS
def test_a_number_for_each_row(target: Target) -> None:
    y = whole(3, (2, 11, 1))

    def make(b: Any, x: Any, y: Any) -> Any:
        return added(b, product(b, x), y)

    kinds, got = results(make, target, X, y)
    assert kinds == ["contraction"]
    assert (got == MADE + y).all()


# ---- what stays apart ----------------------------------------------------------------


def test_an_operand_without_one_of_the_axes() -> None:
    y = whole(3, (11, 21))
    kinds, got = results(lambda b, x, y: added(b, product(b, x), y), targets()[0], X, y)
    assert kinds == ["contraction", "elementwise"]
    assert (got == MADE + y).all()


def test_a_reader_with_other_loops() -> None:
    """Of some of the numbers, and of all of them side by side with others."""
    y = whole(3, (5, *SHAPE))

    def make(b: Any, x: Any, y: Any) -> Any:
        s = product(b, x)
        return [
            added(b, y, s),
            b.elementwise(lambda s: -s, b.slice(s, [0] * 3, [1] * 3)),
        ]

    kinds, (sums, one) = results(make, targets()[0], X, y)
    assert kinds[0] == "contraction"
    assert (sums == MADE + y).all() and one == -MADE[0, 0, 0]


def test_a_shape_that_is_read_elsewhere() -> None:
    """The product has one result: the longest beginning that leaves it one is taken."""

    def make(b: Any, x: Any) -> Any:
        s = product(b, x)
        return [s, b.elementwise(lambda s: s.maximum(0), s)]

    kinds, (s, top) = results(make, targets()[0], X)
    assert kinds == ["contraction", "elementwise"]
    assert (s == MADE).all() and (top == MADE.clip(0)).all()


def test_a_chain_that_is_read_in_its_middle() -> None:
    def make(b: Any, x: Any) -> Any:
        s = b.elementwise(lambda s: s.maximum(0), product(b, x))
        return [s, b.elementwise(lambda s: -s, s)]

    kinds, (s, other) = results(make, targets()[0], X)
    assert kinds == ["contraction", "elementwise"]
    assert (s == MADE.clip(0)).all() and (other == -s).all()


def test_what_waits_for_sums_of_its_rows() -> None:
    """A normalization is made by rows, whose sums no tile of a product has."""

    def make(b: Any, x: Any) -> Any:
        s = product(b, x)
        total = b.reduce(lambda a, s: a + s, s, [2], 0)
        return b.elementwise(lambda s, t: s - t, s, total)

    kinds, got = results(make, targets()[0], X)
    assert kinds == ["contraction", "reduction"]
    assert (got == MADE - MADE.sum(2, keepdims=True)).all()


def test_an_operand_that_is_made_of_the_product() -> None:
    """The maximum of all numbers comes from another kernel, which reads the product."""

    def make(b: Any, x: Any) -> Any:
        s = b.elementwise(lambda s: s * 2, product(b, x))
        top = b.reduce(lambda a, s: a.maximum(s), s, [0, 1, 2], -np.inf)
        return b.elementwise(lambda s, t: s - t, s, top)

    kinds, got = results(make, targets()[0], X)
    assert kinds[0] == "contraction" and len(kinds) == 3
    assert (got == 2 * (MADE - MADE.max())).all()
