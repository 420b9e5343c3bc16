"""Crops of images and windows of rows against ONNX Runtime, with drawn sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.microsoft.single import both, check, floats

R = np.random.default_rng(7)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("turn", range(4))
def test_crops(mode: str, turn: int) -> None:
    """Boxes reach over the edges; sizes of 1 take the middle."""
    count, depth, height, width, boxes = (int(n) for n in R.integers(2, 9, 5))
    size = R.integers(1, 6, 2).astype(np.int32)
    size[turn % 2] = 1 if turn < 2 else size[turn % 2]
    x, rois = floats(R, count, depth, height, width), R.random((boxes, 4)) * 1.4 - 0.2
    images = R.integers(0, count, boxes).astype(np.int32)
    ours, theirs = both(
        "CropAndResize", [x, rois.astype(np.float32), images, size], mode=mode,
        extrapolation_value=2.5, constants=(3,) if turn % 2 else (),
    )  # fmt: skip
    assert ours[0].shape == (boxes, depth, *size)
    # A place is off by some roundings of up to `width` elements.
    check((ours[0], theirs[0]), theirs[0], 20 * 9, 8)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_windows(axis: int) -> None:
    shape = [int(n) for n in R.integers(4, 9, 3)]
    size, step = (int(n) for n in R.integers(1, 5, 2))
    ours, theirs = both(
        "UnfoldTensor", [floats(R, *shape)], dim=axis, size=size, step=step
    )
    assert ours[0].shape == theirs[0].shape
    assert (ours[0] == theirs[0]).all()
    assert ours[0].std()
