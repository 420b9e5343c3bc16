"""Transposed convolutions with a filter for each channel, by phases of planes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.linalg.products.test_convolution import close, transposed
from tests.linalg.single import run_node


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("kernel", "strides", "dilations", "pads", "more"),
    [
        ((3, 4), (2, 2), (1, 1), (1, 1, 0, 1), (1, 0)),
        ((5, 2), (3, 1), (1, 3), (0, 0, 2, 1), (0, 0)),
        ((2, 3), (4, 3), (3, 2), (0, 4, 1, 2), (2, 1)),  # some phases have no tap
        ((1, 3), (2, 3), (1, 2), (0, 4, 1, 3), (0, 0)),  # one tap, and pixels cut off
        ((9, 1), (2, 2), (1, 1), (12, 0, 0, 8), (0, 0)),  # some beside the image
    ],
)
def test_phases(
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, int, int, int],
    more: tuple[int, int],
    constant: bool,
) -> None:
    r = np.random.default_rng(7)
    x = r.standard_normal((2, 3, 6, 11)).astype(np.float32)
    w = r.standard_normal((3, 1, *kernel)).astype(np.float32)
    bias = r.standard_normal(3).astype(np.float32)
    case: dict[str, Any] = {
        "strides": [*strides],
        "dilations": [*dilations],
        "pads": [*pads],
        "output_padding": [*more],
    }
    shared = [1] if constant else []
    got = run_node("ConvTranspose", [x, w, bias], group=3, constants=shared, **case)[0]
    added = bias.reshape(-1, 1, 1)
    wide, weights = x.astype(np.float64), w.astype(np.float64)
    right = transposed(wide, weights, 3, case) + added
    size = transposed(abs(wide), abs(weights), 3, case) + abs(added)
    assert close(got, right, size, w[0].size)
    assert not close(0 * got, right, size, w[0].size)


def test_one_tap_of_several_features_whose_pixels_are_cut_off() -> None:
    r = np.random.default_rng(7)
    x = r.standard_normal((1, 4, 5, 9)).astype(np.float32)
    w = r.standard_normal((4, 3, 1, 2)).astype(np.float32)
    case: dict[str, Any] = {
        "strides": [1, 1],
        "dilations": [1, 1],
        "pads": [1, 0, 2, 1],
        "output_padding": [0, 0],
    }
    got = run_node("ConvTranspose", [x, w], **case)[0]
    wide, weights = x.astype(np.float64), w.astype(np.float64)
    right = transposed(wide, weights, 1, case)
    size = transposed(abs(wide), abs(weights), 1, case)
    assert close(got, right, size, w[:, 0].size)
    assert not close(0 * got, right, size, w[:, 0].size)
