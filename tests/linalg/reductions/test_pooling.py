"""Pools against numpy on float64, window by window."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import Error
from tests.drawn_cases import few_examples
from tests.linalg.single import run_node

Case = dict[str, list[int]]
Fold = Callable[[np.ndarray, int], np.ndarray]


def extents(size: tuple[int, ...], case: Case, ceil: bool) -> list[int]:
    """PyTorch's rule: no window starts behind the input and its front padding."""
    rank = len(size)
    found = list[int]()
    for i, s in enumerate(size):
        span = (case["kernel_shape"][i] - 1) * case["dilations"][i] + 1
        room = s + case["pads"][i] + case["pads"][rank + i] - span
        step = case["strides"][i]
        count = (-(-room // step) if ceil else room // step) + 1
        late = (count - 1) * step >= s + case["pads"][i]
        found.append(count - 1 if ceil and late else count)
    return found


def windows(
    x: np.ndarray, case: Case, ceil: bool, fill: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All taps [taps, n, c, o...], and masks: input, input or padding."""
    rank = x.ndim - 2
    out = extents(x.shape[2:], case, ceil)
    values, inside, counted = [], [], []
    for tap in product(*map(range, case["kernel_shape"])):
        index, real, padded = [], np.ones((), bool), np.ones((), bool)
        for i, t in enumerate(tap):
            at = np.arange(out[i]) * case["strides"][i] + t * case["dilations"][i]
            at = at - case["pads"][i]
            size, behind = x.shape[2 + i], case["pads"][rank + i]
            real = np.multiply.outer(real, (at >= 0) & (at < size))
            padded = np.multiply.outer(padded, at < size + behind)
            index.append(at.clip(0, size - 1))
        seen = x[(slice(None), slice(None), *np.ix_(*index))]
        values.append(np.where(real, seen, fill))
        inside.append(real)
        counted.append(padded)
    return np.stack(values), np.stack(inside), np.stack(counted)


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, ...], Case, bool]:
    rank = draw(st.integers(1, 3))
    ints = lambda low, high: draw(  # noqa: E731 - a word for the draws below
        st.lists(st.integers(low, high), min_size=rank, max_size=rank)
    )
    kernel = ints(1, 3)
    case = {
        "kernel_shape": kernel,
        "strides": ints(1, 3),
        "dilations": ints(1, 2),
        "pads": [
            min(p, k - 1) for p, k in zip(ints(0, 2) * 2, kernel * 2, strict=True)
        ],
    }
    size = [5 + s for s in ints(0, 4)]
    return (
        (draw(st.sampled_from([0, 1, 2])), draw(st.sampled_from([1, 3])), *size),
        (case),
        draw(st.booleans()),
    )


def close(got: np.ndarray, right: np.ndarray, bound: np.ndarray) -> bool:
    return got.shape == right.shape and bool((abs(got - right) <= bound).all())


@given(cases(), st.booleans(), st.sampled_from([19, 22]))
@few_examples(15)
def test_average_pool(
    drawn: tuple[tuple[int, ...], Case, bool], with_padding: bool, version: int
) -> None:
    shape, case, ceil = drawn
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    got = run_node(
        "AveragePool",
        [x],
        ceil_mode=int(ceil),
        count_include_pad=int(with_padding),
        version=version,
        **case,
    )[0]
    values, inside, counted = windows(x.astype(np.float64), case, ceil, 0)
    count = (counted if with_padding else inside).sum(0)
    right, size = values.sum(0) / count, abs(values).sum(0) / count
    bound = (len(values) + 2) * np.finfo(np.float32).eps * size
    assert close(got, right, bound)
    if got.size:
        assert not close(0 * got, right, bound)


@given(
    cases(),
    st.sampled_from(["float32", "float64", "int8", "uint8"]),
    st.sampled_from([12, 22]),
)
@few_examples(15)
def test_max_pool(
    drawn: tuple[tuple[int, ...], Case, bool], kind: str, version: int
) -> None:
    shape, case, ceil = drawn
    r = np.random.default_rng(1)
    x = (50 * r.standard_normal(shape) + 60 * (kind == "uint8")).astype(kind)
    words = {"ceil_mode": int(ceil), "version": version}
    got = run_node("MaxPool", [x], **words, **case)[0]
    right = windows(x.astype(np.float64), case, ceil, -np.inf)[0].max(0)
    assert got.dtype == x.dtype
    assert (got == right).all() and got.shape == right.shape


@given(cases(), st.integers(0, 1))
@few_examples(10)
def test_max_pool_places(drawn: tuple[tuple[int, ...], Case, bool], order: int) -> None:
    """Each place, decoded in its storage order, holds the maximum."""
    shape, case, ceil = drawn
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    got, places = run_node(
        "MaxPool", [x], outputs=2, ceil_mode=int(ceil), storage_order=order, **case
    )
    assert (got == run_node("MaxPool", [x], ceil_mode=int(ceil), **case)[0]).all()
    stored = x if order == 0 else np.transpose(x, [0, 1, *range(x.ndim - 1, 1, -1)])
    assert places.dtype == np.int64
    assert (stored.reshape(-1)[places] == got).all()


@pytest.mark.parametrize(
    ("op", "version"), [("MaxPool", 12), ("AveragePool", 19), ("LpPool", 18)]
)
def test_no_window_begins_behind_the_image(op: str, version: int) -> None:
    """At any version, as ONNX's reference has it; its inference learned so later."""
    x = np.ones((1, 1, 81), np.float32)
    case = {"kernel_shape": [2], "strides": [3], "ceil_mode": 1}
    assert run_node(op, [x], version=version, **case)[0].shape == (1, 1, 27)


def test_max_pool_of_nothing_but_infinity_and_nan() -> None:
    low, nan = -np.inf, np.nan
    x = np.array([[[low, low, 1, nan, 3, 2]]], np.float32)
    case = {"kernel_shape": [2], "strides": [2]}
    got, places = run_node("MaxPool", [x], outputs=2, **case)
    assert np.isneginf(got[0, 0, 0]) and np.isnan(got[0, 0, 1]) and got[0, 0, 2] == 3
    assert places.tolist() == [[[0, 3, 4]]]
    assert np.isnan(run_node("MaxPool", [x], **case)[0][0, 0, 1])


@given(cases(), st.sampled_from([1, 2, 3]))
@few_examples(10)
def test_lp_pool(drawn: tuple[tuple[int, ...], Case, bool], p: int) -> None:
    shape, case, ceil = drawn
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    got = run_node("LpPool", [x], p=p, ceil_mode=int(ceil), **case)[0]
    values = abs(windows(x.astype(np.float64), case, ceil, 0)[0])
    right = (values**p).sum(0) ** (1 / p)
    bound = (len(values) + 12) * np.finfo(np.float32).eps * right
    assert close(got, right, bound)
    if got.size:
        assert not close(0 * got, right, bound)


@pytest.mark.drawn
@pytest.mark.parametrize(
    "shape", [(2, 3, 5), (1, 4, 3, 7), (0, 2, 3, 3), (2, 1, 2, 3, 5)]
)
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_global_pools(shape: tuple[int, ...], name: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, name, name))
    x = (3 + np.random.default_rng(4).standard_normal(shape)).astype(kind)
    axes = tuple(range(2, x.ndim))
    wide = x.astype(np.float64)
    unit = float(ml_dtypes.finfo(kind).eps)
    unit += (wide[0, 0].size if x.size else 0) * float(np.finfo(np.float32).eps)
    got = run_node("GlobalMaxPool", [x])[0]
    assert (got == x.max(axes, keepdims=True)).all()
    for op, right in (
        ("GlobalAveragePool", wide.mean(axes, keepdims=True)),
        ("GlobalLpPool", np.sqrt((wide**2).sum(axes, keepdims=True))),
    ):
        got = run_node(op, [x])[0].astype(np.float64)
        bound = (unit + 1e-30) * abs(right)
        assert close(got, right, bound)
        assert not got.size or not close(0 * got, right, bound)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_automatic_padding(mode: str) -> None:
    """SAME: ceil(size / stride) windows, odd padding behind or before."""
    x = np.random.default_rng(6).standard_normal((1, 1, 7)).astype(np.float32)
    got = run_node("MaxPool", [x], kernel_shape=[4], strides=[2], auto_pad=mode)[0]
    pads = {"SAME_UPPER": [1, 2], "SAME_LOWER": [2, 1], "VALID": [0, 0]}[mode]
    right = run_node("MaxPool", [x], kernel_shape=[4], strides=[2], pads=pads)[0]
    assert got.shape == right.shape
    assert (got == right).all()


def test_refusals() -> None:
    x = np.ones((1, 1, 3, 3), np.float32)
    with pytest.raises(Error):
        run_node("MaxPool", [x], kernel_shape=[7, 7])
    with pytest.raises(Error):
        run_node("AveragePool", [x], kernel_shape=[2])


@pytest.mark.parametrize("op", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize("shape", [(1, 3, 4), (2, 3, 4, 5), (0, 3, 9), (2, 0, 9)])
def test_outputs_without_elements(op: str, shape: tuple[int, ...]) -> None:
    """A window one larger than the input stands nowhere; ONNX says so by rounding."""
    x = np.ones(shape, np.float32)
    kernel = [5] + [2] * (len(shape) - 3)
    for padding in (0, 1) if op == "AveragePool" else (None,):
        (got,) = run_node(op, [x], kernel_shape=kernel, count_include_pad=padding)
        assert got.size == 0 and got.shape[:2] == shape[:2]
