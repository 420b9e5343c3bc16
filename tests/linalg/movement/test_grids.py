"""GridSample and AffineGrid against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from nanoloom.errors import Error
from tests.drawn_cases import few_examples
from tests.linalg.bounds import sample
from tests.linalg.movement.test_shaping import same
from tests.linalg.single import model_of, run_node

few = few_examples(10)
paddings = st.sampled_from(["zeros", "border", "reflection"])


@few
@given(
    st.sampled_from(["nearest", "linear", "cubic"]),
    paddings,
    st.integers(0, 1),
    st.integers(1, 3),
    st.sampled_from([3, 19]),
)
def test_grid_sample(
    mode: str, padding: str, align: int, depth: int, channels: int
) -> None:
    """Cubic to the border is another one: see below.  19 channels are read as rows."""
    depth = 2 if mode == "cubic" else depth
    padding = "zeros" if (mode, padding) == ("cubic", "border") else padding
    image, out = (4, 5, 3)[:depth], (3, 2, 4)[:depth]
    x = sample(1, (2, channels, *image), "float32")
    grid = sample(2, (2, *out, depth), "float32", -2.5, 2.5)
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": align}
    got = run_node("GridSample", [x, grid], **attributes)[0]
    model, feeds = model_of("GridSample", [x.astype(np.float64), grid], attributes)
    right = ReferenceEvaluator(model).run(None, feeds)[0]
    if mode == "nearest":
        same(got, right.astype(np.float32))
        return
    # Coordinates up to 12 are rounded 6 times; slopes are at most 4 * |x| an axis.
    bound = depth * 6 * 12 * 2.0**-24 * 4 * abs(x).max() + 128 * 2.0**-24 * abs(x).max()
    assert (abs(got - right) <= bound).all()
    assert not (abs(0 * got - right) <= bound).all()


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("channels", [1, 17])
def test_wild_coordinates_read_no_other_memory(
    padding: str, mode: str, channels: int
) -> None:
    x = np.full((1, channels, 3, 3), 2.0, np.float32)
    wild = [np.nan, np.inf, -np.inf, 1e30, -1e30, 1e5, -1e5, 0]
    grid = np.array(wild, np.float32).reshape(1, 2, 2, 2)
    got = run_node("GridSample", [x, grid], mode=mode, padding_mode=padding)[0]
    assert ((got == 0) | np.isnan(got) | (abs(got - 2) < 1e-5)).all()


def keys(t: np.ndarray) -> np.ndarray:
    """Keys' weights of the four elements around a place, [..., 4]; t: its fraction."""
    s, a = abs(t[..., None] - np.arange(-1, 3)), -0.75
    near, far = ((a + 2) * s - (a + 3)) * s * s + 1, ((a * s - 5 * a) * s + 8 * a) * s
    return np.where(s <= 1, near, far - 4 * a)


def cubic_to_border(x: np.ndarray, grid: np.ndarray, align: int) -> np.ndarray:
    """In float64: elements outside of the image are those at its border."""
    image = x.astype(np.float64)[0, 0]
    parts = []
    for axis, extent in enumerate(image.shape):
        g = grid[0, ..., 1 - axis].astype(np.float64)
        place = (g + 1) / 2 * (extent - 1) if align else ((g + 1) * extent - 1) / 2
        first = np.floor(place)
        taps = (first[..., None] + np.arange(-1, 3)).clip(0, extent - 1).astype(int)
        parts.append((taps, keys(place - first)))
    (rows, high), (columns, wide) = parts
    values = image[rows[..., :, None], columns[..., None, :]]
    return np.einsum("yxij,yxi,yxj->yx", values, high, wide)[None, None]


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize(("version", "mode"), [(16, "bicubic"), (20, "cubic")])
def test_cubic_to_the_border(align: int, version: int, mode: str) -> None:
    """As PyTorch and ONNX Runtime have it; ONNX's reference moves the coordinate."""
    x = sample(7, (1, 1, 5, 4), "float32")
    grid = sample(8, (1, 9, 8, 2), "float32", -2.5, 2.5)
    attributes = {"mode": mode, "padding_mode": "border", "align_corners": align}
    got = run_node("GridSample", [x, grid], version=version, **attributes)[0]
    right = cubic_to_border(x, grid, align)
    bound = (2 * 6 * 12 * 4 + 128) * 2.0**-24 * abs(x).max()
    assert (abs(got - right) <= bound).all()
    attributes["mode"] = "cubic"
    model, feeds = model_of("GridSample", [x.astype(np.float64), grid], attributes)
    moved = ReferenceEvaluator(model).run(None, feeds)[0]
    assert not (abs(moved - right) <= bound).all()
    assert not (abs(0 * got - right) <= bound).all()


@pytest.mark.parametrize("name", ["int32", "bool", "float64"])
def test_nearest_of_other_types(name: str) -> None:
    x = sample(3, (1, 2, 3, 3), name)
    centres = np.array([-2 / 3, 0, 2 / 3])
    grid = np.stack(np.meshgrid(centres, centres), -1)[None].astype(np.float32)
    same(run_node("GridSample", [x, grid], mode="nearest")[0], x)


def test_linear_of_integers_is_refused() -> None:
    x, grid = sample(4, (1, 1, 3, 3), "int32"), sample(5, (1, 2, 2, 2), "float32")
    with pytest.raises(Error, match="int32"):
        run_node("GridSample", [x, grid], mode="linear")


@few
@given(
    st.sampled_from([(5, 7), (1, 4), (3, 2, 5)]), st.integers(0, 1), st.integers(1, 2)
)
def test_affine_grid(image: tuple[int, ...], align: int, rows: int) -> None:
    depth = len(image)
    theta = sample(6, (rows, depth, depth + 1), "float32")
    size = np.array([rows, 3, *image], np.int64)
    got = run_node("AffineGrid", [theta, size], constants=[1], align_corners=align)[0]
    lines = [
        np.linspace(-1, 1, s) if align else (2 * np.arange(s) + 1) / s - 1
        for s in image
    ]
    points = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(image)], -1)
    exact = np.einsum("nij,...j->n...i", theta.astype(np.float64), points)
    size_ = np.einsum("nij,...j->n...i", abs(theta), abs(points))
    bound = (depth + 3) * 2.0**-24 * size_
    assert got.shape == exact.shape
    assert (abs(got - exact) <= bound).all()
    assert not (abs(0 * got - exact) <= bound).all()


@pytest.mark.parametrize("name", ["float16", "float64"])
def test_rows_of_channels_of_other_types(name: str) -> None:
    """As many channels as are read as rows, and the same one by one."""
    x, grid = sample(1, (1, 40, 4, 5), name), sample(2, (1, 3, 2, 2), name, -1.2, 1.2)
    got = run_node("GridSample", [x, grid])[0]
    alone = [run_node("GridSample", [x[:, c : c + 4], grid])[0] for c in (0, 4, 36)]
    for place, right in zip((0, 4, 36), alone, strict=True):
        np.testing.assert_array_equal(got[:, place : place + 4], right)
    assert got.dtype == x.dtype and got.any()
