"""Results in another order: written by the kernel that makes them, in its cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Prefetch
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import (
    Array,
    Make,
    at_once,
    backwards,
    executable,
    program_of,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
# images, height, width, channels, filters
CASES = [(1, 7, 19, 33, 70), (2, 6, 33, 16, 17), (1, 1, 64, 5, 64), (1, 37, 40, 9, 40)]
EQUATION = "nhwc,cf->nhwf"
BORDER = (0, 1, 0, 0), (0, 0, 2, 0)
ORDERS = [(0, 3, 1, 2), (3, 0, 2, 1), (2, 3, 0, 1)]


def arrays(case: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """x [n, h, w, c], weights [c, f] and a bias [f]."""
    n, high, wide, channels, made = case
    shapes = (n, high, wide, channels), (channels, made), (made,)
    x, w, bias = (sample(i, shape, "float32") for i, shape in enumerate(shapes))
    return x, w, bias


def layer(
    case: tuple[int, ...], order: tuple[int, ...], **words: bool
) -> tuple[Make, Array]:
    """A layer of 1x1 filters with bias and ReLU, turned, and what it reads.

    twice: what is turned is a result, too.  plain: nothing follows the product.
    border: zeros around the image, one above and two at its right.
    """
    x, w, bias = arrays(case)

    def make(b: Any, image: Any) -> Any:
        made = b.einsum(EQUATION, image, b.constant(w))
        if not words.get("plain"):
            given = made, b.constant(bias)
            made = b.elementwise(lambda s, t: (s + t).maximum(0), *given)
        if words.get("border"):
            made = b.pad(made, *BORDER)
        y = b.transpose(made, list(order))
        return [made, y] if words.get("twice") else y

    return make, x


def roots(make: Make, x: Array) -> list[str]:
    return [name.split("_")[0] for name in program_of(make, x).kernels]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("plain", [False, True])
def test_a_turn_is_no_kernel(order: tuple[int, ...], plain: bool) -> None:
    """But for sums of a matrix alone, which may be cut (sum_chunks.py)."""
    found = roots(*layer(CASES[0], order, plain=plain))
    assert found == ["contraction", "elementwise"][: 1 + plain]


@pytest.mark.parametrize("plain", [False, True])
def test_long_sums(plain: bool) -> None:
    case = (1, 1, 130, 4096, 70)
    make, x = layer(case, ORDERS[0], plain=plain)
    (got,) = executable(program_of(make, x), by_name("x86-64-v3"))(x)
    _, w, bias = arrays(case)
    one, other = x.astype(np.float64), w.astype(np.float64)
    image = np.einsum(EQUATION, one, other)
    size = np.einsum(EQUATION, abs(one), abs(other)) + abs(bias)
    image = image if plain else np.maximum(image + bias, 0)
    check(got, image.transpose(ORDERS[0]), case[3] + 3, size.transpose(ORDERS[0]))


def test_channels_of_groups_are_turned_as_one() -> None:
    """The groups' axis is one of the result's with that of their channels."""
    x, w = sample(0, (7, 19, 3, 5), "float32"), sample(1, (3, 5, 20), "float32")

    def make(b: Any, image: Any) -> Any:
        made = b.einsum("hwgc,gcf->hwgf", image, b.constant(w))
        made = b.elementwise(lambda s: -s, made)
        return b.transpose(b.reshape(made, (7, 19, 60)), [2, 0, 1])

    program = program_of(make, x)
    assert [name.split("_")[0] for name in program.kernels] == ["contraction"]
    (got,) = executable(program, by_name("x86-64-v3"))(x)
    one, other = x.astype(np.float64), w.astype(np.float64)
    exact, size = (
        np.einsum("hwgc,gcf->gfhw", *each).reshape(60, 7, 19)
        for each in ((one, other), (abs(one), abs(other)))
    )
    check(got, -exact, 8, size)


def test_what_others_read_too_is_in_memory() -> None:
    assert len(roots(*layer(CASES[0], ORDERS[0], twice=True))) > 1


def test_tasks_are_register_tiles_that_are_turned() -> None:
    program = program_of(*layer(CASES[3], ORDERS[0]))
    text = stage_text(program, "schedule", by_name("x86-64-v4"))
    assert "turned in the cache" in text
    assert "nanokernel" in text
    assert "nanoloom.transpose_in_registers" in text


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize(
    ("case", "order", "border"),
    [*zip(CASES, [*ORDERS, ORDERS[0]], [False, True, False, True], strict=True)],
    ids=str,
)
def test_numbers(
    case: tuple[int, ...], order: tuple[int, ...], border: bool, target: Target
) -> None:
    """Tasks in any order give the same bits; with a wrong pixel the check fails."""
    make, x = layer(case, order, border=border)
    program = executable(program_of(make, x), target)
    (got,), (again,) = program(x, order=at_once), program(x, order=backwards)
    assert np.array_equal(got, again)
    _, w, bias = arrays(case)
    one, other = x.astype(np.float64), w.astype(np.float64)
    image = np.maximum(np.einsum(EQUATION, one, other) + bias, 0)
    size = np.einsum(EQUATION, abs(one), abs(other)) + abs(bias)
    around = [*zip(*BORDER, strict=True)] if border else 0
    image, size = (np.pad(a, around).transpose(order) for a in (image, size))
    steps = x.shape[-1] + 3
    check(got, image, steps, size)
    image = np.roll(image, 1)
    assert not passes(got, image, steps, size)


def test_panels_that_are_read_once_are_fetched_once() -> None:
    """A row of patches for each task: the product's prefetch is the permutation's."""
    w = sample(1, (32, 32, 3, 384), "float32")

    def make(b: Any, image: Any) -> Any:
        made = b.einsum("hiwjc,ijcf->hwf", image, b.constant(w))
        return b.transpose(b.elementwise(lambda s: -s, made), [2, 0, 1])

    program = program_of(make, ((7, 32, 7, 32, 3), "float32"))
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, by_name("x86-64-v4")).directives
    assert sum(isinstance(word, Prefetch) for word in words) == 1
