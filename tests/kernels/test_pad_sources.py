"""What a border is put around by its reader: other shapes, parts of other tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.target.host import host
from tests.kernels.padded_programs import (
    Array,
    Windows,
    convolution,
    first_layer,
    plain,
    relu,
    stages,
)
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import at_once, backwards, executable, program_of

WINDOWS = Windows((3, 3), (1, 1), (1, 0), 2)
WEIGHTS = np.rint(sample(2, (3, 3, 16, 24), "float32"))
READER = ["pad", "fill", "product"]


def whole(*shape: int) -> Array:
    """Numbers whose sums of products are exact."""
    return np.rint(4 * sample(1, shape, "float32"))


def summed(x: Array) -> Array:
    return np.sum([t @ WEIGHTS[at] for at, t in WINDOWS.taps(x).items()], axis=0)


def require(make: Any, x: Array, *right: Array) -> list[list[str]]:
    """The stages of the kernels, whose results are right in any order of tasks."""
    program = program_of(make, x)
    for order in (at_once, backwards):
        made = executable(program, host())(x, order=order)
        for result, wanted in zip(made, right, strict=True):
            assert (result == wanted).all()
            assert (wanted != 0).any()
    return stages(program)


def test_a_reshaped_input() -> None:
    def make(b: Any, x: Any) -> Any:
        return convolution(WINDOWS, WEIGHTS)(b, b.reshape(x, (11, 12, 16)))

    x = whole(132, 16)
    assert require(make, x, summed(x.reshape(11, 12, 16))) == [READER]


def test_an_input_whose_rows_change_places() -> None:
    def make(b: Any, x: Any) -> Any:
        return convolution(WINDOWS, WEIGHTS)(b, b.transpose(x, (1, 0, 2)))

    x = whole(12, 11, 16)
    assert require(make, x, summed(x.transpose(1, 0, 2))) == [READER]


def test_an_input_whose_channels_do_not_lie_along_rows() -> None:
    """The kernel that turns it writes it between the border."""

    def make(b: Any, x: Any) -> Any:
        return convolution(WINDOWS, WEIGHTS)(b, b.transpose(x, (1, 2, 0)))

    x = whole(16, 11, 12)
    made = require(make, x, summed(x.transpose(1, 2, 0)))
    assert made[-2:] == [["copy"], READER[1:]]


def test_a_part_of_a_concatenation() -> None:
    eye = np.eye(16, dtype=np.float32)

    def make(b: Any, x: Any) -> list[Any]:
        product = b.einsum("yxc,cf->yxf", relu(b, x), b.constant(eye))
        both = b.concat([product, b.elementwise(lambda s: s + s, x)], 2)
        first = b.slice(both, (0, 0, 0), (11, 12, 16))
        return [both, convolution(WINDOWS, WEIGHTS)(b, first)]

    x = whole(11, 12, 16)
    positive = np.maximum(x, 0)
    both = np.concatenate([positive, x + x], 2)
    assert require(make, x, both, summed(positive))[-1] == READER


@pytest.mark.parametrize("batch", [1, 3])
def test_one_axis_of_a_batch(batch: int) -> None:
    """The border is in front of it only; a batch of one is no axis."""
    weights = np.rint(sample(3, (5, 16, 24), "float32"))
    windows = Windows((1, 5), (0, 4), (0, 0))

    def make(b: Any, x: Any) -> Any:
        start = b.full((batch, 50, 24), 0, x.dtype)
        (sums,) = b.generic(
            [(windows.pad(b, x), windows.indexing(6, 3, 5)),
             (b.constant(weights[None]), plain(6, 3, 4, 5, 2))],
            [(start, plain(6, 0, 1, 2))], ["parallel"] * 3 + ["reduction"] * 3,
            lambda a, w, total: total + a * w,
        )  # fmt: skip
        return sums

    x = whole(batch, 50, 16)
    right = np.sum([t @ weights[k] for (_, k), t in windows.taps(x).items()], axis=0)
    assert require(make, x, right) == [READER]


@pytest.mark.drawn
@pytest.mark.parametrize("channels", [1, 3, 16])
@pytest.mark.parametrize(
    ("begin", "count", "low", "high"),
    [
        ((0, 0), (9, 12), (0, 1), (2, 1)),  # the source goes on below
        ((2, 0), (9, 12), (3, 1), (0, 1)),  # and begins above
        ((0, 1), (11, 9), (1, 2), (1, 1)),
        ((0, 0), (10, 12), (1, 1), (0, 1)),  # as many rows as there are in the source
    ],
)
def test_a_part_of_what_is_within(
    begin: tuple[int, int],
    count: tuple[int, int],
    low: tuple[int, int],
    high: tuple[int, int],
    channels: int,
) -> None:
    """Where its source goes on there are zeros, whose border is left out nowhere."""
    windows = Windows((3, 3), low, high)
    weights = np.rint(sample(4, (3, 3, channels, 8), "float32"))

    def make(b: Any, x: Any) -> Any:
        part = b.slice(x, [0, *begin], [channels, *count])
        return first_layer(windows, weights)(b, part)

    x = whole(channels, 11, 12)
    part = x[:, begin[0] :, begin[1] :][:, : count[0], : count[1]].transpose(1, 2, 0)
    taps = windows.taps(part).items()
    right = np.sum([t @ weights[at] for at, t in taps], axis=0)
    (names,) = require(make, x, np.maximum(right, 0))
    assert "pad" in names
