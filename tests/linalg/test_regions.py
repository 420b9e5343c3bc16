"""RoiAlign, MaxRoiPool, MaxUnpool and DeformConv, place by place."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.errors import Error
from tests.drawn_cases import few_examples
from tests.linalg.products.test_convolution import convolve
from tests.linalg.single import model_of, run_node
from tests.vector.kernel_harness import shared_cache

WIDE = np.dtype(np.float64)


def regions(r: np.random.Generator, count: int, size: float) -> np.ndarray:
    """[x1, y1, x2, y2] of boxes, some reaching beyond the image."""
    first = r.uniform(-0.2 * size, 0.7 * size, (count, 2))
    return np.concatenate([first, first + r.uniform(0, 0.6 * size, (count, 2))], 1)


@given(
    st.sampled_from(["avg", "max"]),
    st.sampled_from([0, 1, 3]),
    st.sampled_from(["half_pixel", "output_half_pixel"]),
    st.integers(0, 3),
)
@few_examples(12)
def test_roi_align(mode: str, ratio: int, coordinates: str, count: int) -> None:
    r = np.random.default_rng(ratio + 7 * count)
    x = r.standard_normal((2, 3, 7, 5))
    rois = regions(r, count, 16.0)
    batch = r.integers(0, 2, count)
    attributes = {
        "mode": mode,
        "sampling_ratio": ratio,
        "output_height": 3,
        "output_width": 2,
        "spatial_scale": 0.5,
        "coordinate_transformation_mode": coordinates,
    }
    model, feeds = model_of("RoiAlign", [x, rois, batch], attributes)
    right = ReferenceEvaluator(model).run(None, feeds)[0] if count else None
    got = run_node("RoiAlign", [x, rois, batch], **attributes)[0]
    if right is None:
        assert got.shape == (0, 3, 3, 2)
        return
    # At most 25 samples of 4 terms; the weights' places are exact to 16 ulp of size 16.
    bound = (100 + 16 * 16) * np.finfo(WIDE).eps * abs(x).max()
    assert (abs(got - right) <= bound).all()
    if abs(right).max() > bound:
        assert not (abs(0 * got - right) <= bound).all()


@pytest.mark.drawn
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("count", [1, 40])
def test_roi_align_of_many_channels(mode: str, count: int) -> None:
    """A program: of one region, and of so many that an image is turned for them."""
    r = np.random.default_rng(count)
    x = r.standard_normal((2, 19, 24, 31)).astype(np.float32)
    rois = regions(r, count, 60.0).astype(np.float32)
    words = {
        "mode": mode, "sampling_ratio": 2, "output_height": 3, "output_width": 5,
        "spatial_scale": 0.5,
    }  # fmt: skip
    model, feeds = model_of("RoiAlign", [x, rois, r.integers(0, 2, count)], words)
    right = ReferenceEvaluator(model).run(None, feeds)[0]
    (got,) = nanoloom.compile(model, threads=1, cache=shared_cache())(feeds).values()
    # 4 samples of 4 terms; places below 64 are exact to some ulp, and so are weights.
    bound = (16 + 16 * 64) * np.finfo(np.float32).eps * abs(x).max()
    assert got.shape == right.shape and (abs(got - right) <= bound).all()
    assert not (abs(0 * got - right) <= bound).all()


@given(
    st.sampled_from(["avg", "max"]),
    st.sampled_from([0, 2]),
    st.sampled_from([1, 5, 19, 33, 70]),
    st.sampled_from([(13, 7), (9, 40)]),
    st.integers(0, 99),
)
@few_examples(6)
def test_roi_align_of_regions_of_many_sizes(
    mode: str, ratio: int, channels: int, size: tuple[int, int], seed: int
) -> None:
    """Few channels and many, of vectors that are full or not; infinities; each alone.

    What a region gives does not depend on those around it, whose grids are larger.
    """
    r = np.random.default_rng(seed)
    x = r.standard_normal((2, channels, *size))
    if mode == "avg":  # the reference's largest term depends on where a NaN comes
        x[0, 0, r.integers(size[0]), r.integers(size[1])] = np.inf
    rois, batch = regions(r, 5, 2.0 * max(size)), np.array([1, 0, 1, 0, 1])
    words = {
        "mode": mode, "sampling_ratio": ratio, "output_height": 3, "output_width": 4,
        "spatial_scale": 0.5,
    }  # fmt: skip
    model, feeds = model_of("RoiAlign", [x, rois, batch], words)
    with np.errstate(invalid="ignore"):
        right = ReferenceEvaluator(model).run(None, feeds)[0]
        got = run_node("RoiAlign", [x, rois, batch], **words)[0]
        alone = run_node("RoiAlign", [x, rois[3:4], batch[3:4]], **words)[0]
    finite = np.isfinite(right)
    # At most 13^2 samples of 4 terms; places below 80 are exact to some ulp.
    bound = (4 * 13**2 + 16 * 80) * np.finfo(WIDE).eps * abs(x[np.isfinite(x)]).max()
    assert (abs(got[finite] - right[finite]) <= bound).all()
    assert np.array_equal(got[~finite], right[~finite], equal_nan=True)
    assert (abs(alone[finite[3:4]] - right[3:4][finite[3:4]]) <= bound).all()


def max_roi_pool(
    x: np.ndarray, rois: np.ndarray, shape: tuple[int, int], scale: float
) -> np.ndarray:
    out = np.zeros((len(rois), x.shape[1], *shape))
    for n, (image, *box) in enumerate(rois):
        x1, y1, x2, y2 = (
            int(np.copysign(np.floor(abs(v * scale) + 0.5), v)) for v in box
        )
        tall, broad = max(y2 - y1 + 1, 1) / shape[0], max(x2 - x1 + 1, 1) / shape[1]
        for i, j in product(range(shape[0]), range(shape[1])):
            rows = np.clip(
                [np.floor(i * tall) + y1, np.ceil((i + 1) * tall) + y1], 0, x.shape[2]
            ).astype(int)
            columns = np.clip(
                [np.floor(j * broad) + x1, np.ceil((j + 1) * broad) + x1], 0, x.shape[3]
            ).astype(int)
            part = x[int(image), :, slice(*rows), slice(*columns)]
            if part.size:
                out[n, :, i, j] = part.max((1, 2))
    return out


@given(
    st.integers(0, 4), st.sampled_from([(1, 1), (3, 2)]), st.sampled_from([1.0, 0.5])
)
@few_examples(8)
def test_max_roi_pool(count: int, shape: tuple[int, int], scale: float) -> None:
    r = np.random.default_rng(count)
    x = -1 - r.random((2, 3, 9, 7))
    boxes = np.round(regions(r, count, 12.0) / scale)
    rois = np.concatenate([r.integers(0, 2, (count, 1)), boxes], 1).astype(WIDE)
    got = run_node(
        "MaxRoiPool", [x, rois], pooled_shape=list(shape), spatial_scale=scale
    )[0]
    assert (got == max_roi_pool(x, rois, shape, scale)).all()
    assert not count or got.min() < -1


@pytest.mark.parametrize("shape", [(2, 3, 7), (1, 2, 5, 6), (2, 1, 4, 3, 5), (0, 2, 5)])
def test_max_unpool_undoes_max_pool(shape: tuple[int, ...]) -> None:
    rank = len(shape) - 2
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    window = {"kernel_shape": [2] * rank, "strides": [2] * rank}
    top, places = run_node("MaxPool", [x], outputs=2, **window)
    size = np.array([*shape[:2], *[s // 2 * 2 for s in shape[2:]]])
    even = x[tuple(slice(0, s) for s in size)]
    top, places = run_node("MaxPool", [even], outputs=2, **window)
    right = np.zeros(even.size, np.float32)
    right[places.reshape(-1)] = top.reshape(-1)
    got = run_node("MaxUnpool", [top, places], **window)[0]
    assert (got == right.reshape(even.shape)).all()
    larger = np.array(shape) + [0, 0, *[1] * rank]
    wide = run_node("MaxUnpool", [top, places, larger], constants=[2], **window)[0]
    assert wide.shape == tuple(larger)
    assert (wide[tuple(slice(0, s) for s in size)] == got).all()
    assert np.count_nonzero(wide) == np.count_nonzero(got)


def test_max_unpool_writes_nowhere_else() -> None:
    """Places that the model gets wrong stay inside the result."""
    x, places = np.ones((1, 1, 2), np.float32), np.array([[[-9, 99]]])
    got = run_node("MaxUnpool", [x, places], kernel_shape=[2], strides=[2])[0]
    assert got.tolist() == [[[1, 0, 0, 1]]]


def deform(
    x: np.ndarray,
    w: np.ndarray,
    offset: np.ndarray,
    mask: np.ndarray,
    groups: int,
    offset_groups: int,
    case: dict[str, list[int]],
) -> np.ndarray:
    """Sums over taps of linearly interpolated elements, zero outside."""
    rank, n, out = x.ndim - 2, x.shape[0], offset.shape[2:]
    kernel = w.shape[2:]
    offset = offset.reshape(n, offset_groups, *kernel, rank, *out)
    mask = mask.reshape(n, offset_groups, *kernel, *out)
    seen = np.zeros((n, x.shape[1], *kernel, *out))
    each = x.shape[1] // offset_groups
    for i, c in product(range(n), range(x.shape[1])):
        for tap in product(*map(range, kernel)):
            for o in product(*map(range, out)):
                at = [
                    o[d] * case["strides"][d]
                    + tap[d] * case["dilations"][d]
                    - case["pads"][d]
                    + offset[(i, c // each, *tap, d, *o)]
                    for d in range(rank)
                ]
                value = interpolate(x[i, c], at)
                seen[(i, c, *tap, *o)] = value * mask[(i, c // each, *tap, *o)]
    result = np.zeros((n, w.shape[0], *out))
    made, parts = w.shape[0] // groups, w.shape[1]
    axes = tuple(range(1, rank + 2))
    for g in range(groups):
        part = seen[:, g * parts : (g + 1) * parts]
        filters = w[g * made : (g + 1) * made]
        result[:, g * made : (g + 1) * made] = np.moveaxis(
            np.tensordot(part, filters, (axes, axes)), -1, 1
        )
    return result


def interpolate(x: np.ndarray, at: list[float]) -> float:
    low, total = np.floor(at).astype(int), 0.0
    for corner in product((0, 1), repeat=x.ndim):
        place = low + corner
        if (place >= 0).all() and (place < x.shape).all():
            total += x[tuple(place)] * np.prod(1 - abs(np.array(at) - place))
    return total


@given(
    st.sampled_from([1, 2]),
    st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2)]),
    st.booleans(),
    st.integers(1, 2),
    st.integers(1, 2),
    st.integers(0, 1),
)
@few_examples(12)
def test_deform_conv(
    rank: int,
    groups: tuple[int, int],
    with_mask: bool,
    stride: int,
    dilation: int,
    pad: int,
) -> None:
    r = np.random.default_rng(rank)
    size, kernel = [6, 5][:rank], [2, 3][:rank]
    group, offset_group = groups
    x, w = r.standard_normal((2, 4, *size)), r.standard_normal((2, 4 // group, *kernel))
    case = {
        "strides": [stride] * rank,
        "dilations": [dilation] * rank,
        "pads": [pad] * (2 * rank),
    }
    plain = convolve(x, w, group, case)
    taps = offset_group * int(np.prod(kernel))
    shape = (2, taps * rank, *plain.shape[2:])
    offset, bias = r.uniform(-2, 2, shape), r.standard_normal(2)
    mask = r.random((2, taps, *plain.shape[2:]))
    inputs = [x, w, offset, bias, *([mask] if with_mask else [])]
    got = run_node(
        "DeformConv", inputs, group=group, offset_group=offset_group, **case
    )[0]
    given_mask = mask if with_mask else np.ones_like(mask)
    added = bias.reshape(-1, *[1] * rank)
    right = deform(x, w, offset, given_mask, group, offset_group, case) + added
    # 24 taps of 4 terms, each with 8 roundings, of size |x| |w| at most.
    bound = 24 * 4 * 8 * np.finfo(WIDE).eps * abs(x).max() * abs(w).max()
    assert (abs(got - right) <= bound).all()
    assert not (abs(0 * got - right) <= bound).all()
    still = run_node(
        "DeformConv", [x, w, 0 * offset], group=group, offset_group=offset_group, **case
    )[0]
    assert (abs(still - plain) <= bound).all()


def test_deform_conv_reads_nothing_far_away() -> None:
    """Offsets that are huge or no number give zero, not memory from elsewhere."""
    x, w = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 1, 1), np.float32)
    offset = np.zeros((1, 2, 3, 3), np.float32)
    offset[0, 0, 0] = 1e30, -np.inf, np.nan
    got = run_node("DeformConv", [x, w, offset])[0]
    assert (got[0, 0, 0] == 0).all() and (got[0, 0, 1:] == 1).all()


def test_refusals() -> None:
    x = np.ones((1, 1, 3, 3), np.float32)
    with pytest.raises(Error):
        run_node("MaxRoiPool", [x, np.ones((1, 4), np.float32)], pooled_shape=[1, 1])
