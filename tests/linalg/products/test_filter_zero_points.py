"""Filters with zero points are multiplied as bytes; every sum is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nanoloom
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.filter_zero_points import ByteFilters
from nanoloom.linalg.products.integer_convolution import dense_sums, in_groups
from nanoloom.schedule.choose import choose
from nanoloom.target import by_name
from tests.drawn_cases import few_examples
from tests.linalg.products.test_convolution import convolve
from tests.linalg.products.test_integer_convolution import integers
from tests.linalg.single import model_of, run_node
from tests.vector.kernel_harness import executable, program_of, targets

BYTES = ["uint8", "int8"]


@given(
    st.tuples(*[st.sampled_from(BYTES)] * 2),
    st.sampled_from([1, 2, 3]),
    st.integers(2, 5),
    st.booleans(),
    st.sampled_from([(), (1,), (1, 3), (1, 2, 3)]),
    st.integers(0, 2**32 - 1),
)
@few_examples(12)
def test_drawn_zero_points(
    kinds: tuple[str, str],
    groups: int,
    channels: int,
    per_filter: bool,
    constants: tuple[int, ...],
    seed: int,
) -> None:
    r = np.random.default_rng(seed)
    x = integers(r, kinds[0], 1, groups * channels, 6, 5)
    w = integers(r, kinds[1], groups * 3, channels, 2, 3)
    zeros = integers(r, kinds[0]), integers(r, kinds[1], *[len(w)] * per_filter)
    case: dict[str, Any] = {
        "pads": [1, 0, 1, 2],
        "strides": [1, 2],
        "dilations": [2, 1],
    }
    got = run_node(
        "ConvInteger",
        [x, w, *map(np.asarray, zeros)],
        constants=constants,
        group=groups,
        version=10,
        **case,
    )[0]
    filters = np.reshape(zeros[1].astype(np.int64), (-1, 1, 1, 1))
    wide = x.astype(np.int64) - zeros[0], w.astype(np.int64) - filters
    right = convolve(*wide, groups, case)
    assert (got == right).all() and (got != np.roll(right, 1, -1)).any()


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("kind", "zero"), [("uint8", 121), ("int8", 3)])
def test_they_are_products_of_bytes(groups: int, kind: str, zero: int) -> None:
    """Filters without their zero points are wider: no nanokernel multiplied them."""
    r = np.random.default_rng(3)
    x, w = integers(r, "uint8", 1, 32, 9, 16), integers(r, kind, 32, 32 // groups, 3, 3)
    arrays = x, w, np.array(9, np.uint8), np.array(zero, kind)
    case = {"pads": [1] * 4, "group": groups}
    model, _ = model_of("ConvInteger", arrays, case, constants=(1, 3))
    nests = nanoloom.compile(model).nests().values()
    chosen = [str(choose(nest, by_name("x86-64-v3"))) for nest in nests]
    assert sum("'int8-" in words for words in chosen) == 1


@pytest.mark.parametrize("planes", [False, True])
@pytest.mark.parametrize("per_filter", [False, True])
def test_rows_of_taps_and_planes(planes: bool, per_filter: bool) -> None:
    """Few channels, whose sums go along rows of pixels or over planes."""
    r = np.random.default_rng(7)
    kernel, strides, none = (3, 7), (2, 1), (0, 0)
    result, size = (3, 9), (7, 15)
    window = Window(kernel, strides, (1, 1), none, none, size, result, in_planes=planes)
    extent = in_groups(window).reach() if planes else size
    x, w = integers(r, "uint8", 1, 3, *extent), integers(r, "int8", 17, 3, *kernel)
    zeros = r.integers(-128, 128, (17,) * per_filter, np.int32)
    given = x if planes else np.moveaxis(x, 1, -1).copy()

    def make(b: Any, x: Any) -> Any:
        filters = ByteFilters(b.constant(w), b.constant(zeros))
        return dense_sums(b, x, None, filters, window)

    program = program_of(make, given)
    case: dict[str, Any] = {"pads": [0] * 4, "strides": strides, "dilations": (1, 1)}
    wide = w.astype(np.int64) - np.reshape(zeros, (-1, 1, 1, 1))
    right = convolve(x.astype(np.int64), wide, 1, case)[:, :, : result[0], : result[1]]
    for target in targets():
        (got,) = executable(program, target)(given)
        assert (got == np.moveaxis(right, 1, -1)).all()
