"""Products with sums along rows between them: one kernel, whatever the sums are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.kernels.program import Program
from nanoloom.nest.product_chain import chain_of
from nanoloom.target import Target
from tests.kernels.attention_programs import roots
from tests.linalg.bounds import EPS, sample
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    Array,
    Make,
    backwards,
    executable,
    program_of,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
CHAIN = ["contractions"]
EPSILON = 1e-5
SIZES = [(2, 17, 33, 13, 29), (1, 5, 70, 9, 50), (3, 130, 19, 40, 64), (2, 1, 31, 7, 9)]


def sizes_of(given: tuple[int, ...]) -> list[Array]:
    """x[b, m, k], w[b, k, n], v[b, n, f], of small integers."""
    b, m, n, k, f = given
    shapes = [(b, m, k), (b, k, n), (b, n, f)]
    return [
        np.rint(sample(i, shape, "float32", -3, 3)) for i, shape in enumerate(shapes)
    ]


def first(b: Any, x: Any, w: Any) -> Any:
    return b.einsum("amk,akn->amn", x, w)


def last(b: Any, p: Any, v: Any) -> Any:
    return b.einsum("amn,anf->amf", p, v)


def below_the_top(b: Any, x: Any, w: Any, v: Any) -> Any:
    """Rows without their largest number: all of it is exact."""
    a = first(b, x, w)
    top = b.reduce(lambda sofar, s: sofar.maximum(s), a, [2], -np.inf)
    return last(b, b.elementwise(lambda s, t: s - t, a, top), v)


def normal(b: Any, x: Any, w: Any, v: Any) -> Any:
    """Rows with mean 0 and variance 1."""
    a = first(b, x, w)
    n = a.shape[2]
    mean = b.elementwise(lambda s: s * (1 / n), total(b, a))
    centred = b.elementwise(lambda s, t: s - t, a, mean)
    squares = total(b, b.elementwise(lambda s: s * s, centred))
    p = b.elementwise(
        lambda s, t: s / (t * (1 / n) + EPSILON).math("sqrt"), centred, squares
    )
    return last(b, p, v)


def total(b: Any, x: Any) -> Any:
    return b.reduce(lambda sofar, s: sofar + s, x, [2], 0)


def exactly_normal(x: Array, w: Array, v: Array) -> tuple[Array, Array]:
    """The result, and a bound: what sums and roundings do to the rows between.

    A deviation is no more wrong than the numbers that it is of.
    """
    unit = EPS[np.dtype(np.float32)]
    x, w, v = (each.astype(np.float64) for each in (x, w, v))
    a, k, n = x @ w, x.shape[2], w.shape[2]
    wrong = (k + n + 4) * unit * (abs(x) @ abs(w)).max(2, keepdims=True)
    centred = a - a.mean(2, keepdims=True)
    deviation = np.sqrt((centred**2).mean(2, keepdims=True) + EPSILON)
    p = centred / deviation
    apart = 2 * wrong / deviation * (1 + abs(p)) + (n + 8) * unit * abs(p)
    return p @ v, apart @ abs(v) + (n + 2) * unit * (abs(p) @ abs(v))


def ran(make: Make, target: Target, *inputs: Array) -> Array:
    """The numbers of a program that is one chain."""
    program = program_of(make, *inputs)
    assert roots(program)[-1:] == CHAIN
    assert "contraction" not in roots(program)
    (got,) = executable(program, target)(*inputs, order=backwards)
    return got


# ---- numbers -------------------------------------------------------------------------


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_largest_number_between_products(
    sizes: tuple[int, ...], target: Target
) -> None:
    x, w, v = sizes_of(sizes)
    a = x @ w
    exact = (a - a.max(2, keepdims=True)) @ v
    got = ran(below_the_top, target, x, w, v)
    assert (got == exact).all()
    assert exact.any() and not (a @ v == exact).all()


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_normalization_between_products(
    sizes: tuple[int, ...], target: Target
) -> None:
    inputs = sizes_of(sizes)
    exact, bound = exactly_normal(*inputs)
    check(ran(normal, target, *inputs), exact, 1, bound / EPS[np.dtype(np.float32)])


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", [(1, 2, 24, 13, 53), (2, 3, 5, 3, 9), *SIZES[:1]])
def test_rows_that_are_read_again_behind_their_sums(
    sizes: tuple[int, ...], target: Target
) -> None:
    """Where a tile is all of a task's rows, all that follows stands behind it."""

    def make(b: Any, x: Any, w: Any, v: Any) -> Any:
        a = b.elementwise(lambda s: s + s, first(b, x, w))
        squares = b.elementwise(lambda s: s * s, a)
        top = b.reduce(lambda sofar, s: sofar.maximum(s), squares, [2], -np.inf)
        return last(b, b.elementwise(lambda s, t: t - s, a, top), v)

    x, w, v = sizes_of(sizes)
    a = 2 * (x @ w)
    exact = ((a * a).max(2, keepdims=True) - a) @ v
    assert (ran(make, target, x, w, v) == exact).all() and exact.any()


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", [(4, 11, 11, 6, 11), (2, 17, 33, 13, 29)])
def test_rows_that_are_turned_behind_the_product(
    sizes: tuple[int, ...], target: Target
) -> None:
    """As XLNet writes its scores: words, heads, words."""

    def make(b: Any, x: Any, w: Any, v: Any) -> Any:
        a = b.transpose(b.einsum("amk,akn->man", x, w), [1, 0, 2])
        a = b.elementwise(lambda s: s + s, a)
        top = b.reduce(lambda sofar, s: sofar.maximum(s), a, [2], -np.inf)
        return last(b, b.elementwise(lambda s, t: s - t, a, top), v)

    x, w, v = sizes_of(sizes)
    a = 2 * (x @ w)
    exact = (a - a.max(2, keepdims=True)) @ v
    assert (ran(make, target, x, w, v) == exact).all() and exact.any()


@TARGETS
def test_small_weights(target: Target) -> None:
    x, w, v = sizes_of((1, 37, 33, 13, 29))

    def make(b: Any, x: Any) -> Any:
        return below_the_top(b, x, b.constant(w), b.constant(v))

    a = x @ w
    assert (ran(make, target, x) == (a - a.max(2, keepdims=True)) @ v).all()


@TARGETS
def test_rows_that_have_right_operands_of_their_own(target: Target) -> None:
    """Heads with keys of their own, one row each, and values that they share."""
    shapes = [(5, 9), (5, 9, 33), (33, 29)]
    x, w, v = (
        np.rint(sample(i, shape, "float32", -3, 3)) for i, shape in enumerate(shapes)
    )

    def make(b: Any, x: Any, w: Any, v: Any) -> Any:
        a = b.einsum("ak,akn->an", x, w)
        top = b.reduce(lambda sofar, s: sofar.maximum(s), a, [1], -np.inf)
        return b.einsum("an,nf->af", b.elementwise(lambda s, t: s - t, a, top), v)

    a = np.einsum("ak,akn->an", x, w)
    assert (ran(make, target, x, w, v) == (a - a.max(1, keepdims=True)) @ v).all()


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", [(1, 6, 24, 40, 40), (2, 17, 9, 13, 20)], ids=str)
def test_products_in_a_row_are_chains_of_two(
    sizes: tuple[int, ...], target: Target
) -> None:
    """A task of three would compute what is between the last two for each tile."""
    (b, _, _, n, f), k, rng = sizes, 19, np.random.default_rng(3)
    x, w, v = sizes_of(sizes)
    more = [np.rint(rng.uniform(-2, 2, s)).astype("f4") for s in ((b, f, n), (b, n, k))]

    def tops(b: Any, a: Any) -> Any:
        top = b.reduce(lambda sofar, s: sofar.maximum(s), a, [2], -np.inf)
        return b.elementwise(lambda s, t: s - t, a, top)

    def make(b: Any, x: Any, *rights: Any) -> Any:
        for right in rights[:-1]:
            x = tops(b, first(b, x, right))
        return last(b, x, rights[-1])

    rights = [w, v, *more]
    program = program_of(make, x, *rights)
    (got,) = executable(program, target)(x, *rights, order=backwards)
    exact = x.astype(np.float64)
    for right in rights[:-1]:
        exact = exact @ right
        exact = exact - exact.max(2, keepdims=True)
    assert roots(program).count("contractions") == 2
    assert abs(exact).max() < 2**22 and (got == exact @ rights[-1]).all()


# ---- which programs are chains -------------------------------------------------------


@pytest.mark.parametrize("n", [8, 600])
def test_large_weights_are_packed_for_a_product_each(n: int) -> None:
    """What all tasks would read, whole, is better packed for tasks of its columns.

    The rows between are then made in front of the second product.
    """
    x, w, v = sizes_of((1, 37, n, 64, 29))

    def make(b: Any, x: Any) -> Any:
        return below_the_top(b, x, b.constant(w), b.constant(v))

    apart = ["contraction", "contraction"]
    assert roots(program_of(make, x)) == (CHAIN if n == 8 else apart)


def test_sums_along_columns_are_no_chain() -> None:
    def make(b: Any, x: Any, w: Any, v: Any) -> Any:
        a = first(b, x, w)
        top = b.reduce(lambda sofar, s: sofar.maximum(s), a, [1], -np.inf)
        return last(b, b.elementwise(lambda s, t: s - t, a, top), v)

    assert "contractions" not in roots(program_of(make, *sizes_of(SIZES[0])))


def test_a_row_that_is_read_elsewhere() -> None:
    """What is between the products must be written: no chain."""

    def make(b: Any, x: Any, w: Any, v: Any) -> Any:
        a = first(b, x, w)
        p = b.elementwise(lambda s, t: s - t, a, total(b, a))
        return [p, last(b, p, v)]

    assert "contractions" not in roots(program_of(make, *sizes_of(SIZES[0])))


def nest_of(program: Program) -> Any:
    return list(program.kernels.values())[-1].nest


def test_the_nest_says_what_it_is() -> None:
    """A chooser asks the nest alone: how many products, and what is between them."""
    chain = chain_of(nest_of(program_of(normal, *sizes_of(SIZES[0]))))
    assert chain is not None
    assert (chain.first.name, chain.last.name) == ("product", "product_2")
    assert chain.inner.rows and chain.outer.rows
    x, w, _ = sizes_of(SIZES[0])
    assert chain_of(nest_of(program_of(first, x, w))) is None
