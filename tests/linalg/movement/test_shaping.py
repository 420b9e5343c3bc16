"""Reshapes, cuts, joins and repeats: numpy's answer, element for element."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import Error
from nanoloom.linalg.builder.reassociation import groups_of
from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, INTEGERS, sample, shapes
from tests.linalg.single import run_node

TYPES = (*FLOATS, *INTEGERS, "bool")
few = few_examples(12)
dims = st.lists(st.integers(1, 5), min_size=1, max_size=5).map(tuple)


def same(got: np.ndarray, right: np.ndarray) -> None:
    """Equal type, shape and elements; anything else fails, zeros first of all."""
    assert got.dtype == right.dtype
    np.testing.assert_array_equal(got, right)
    if right.size and (right != np.zeros((), right.dtype)).any():
        with pytest.raises(AssertionError):
            np.testing.assert_array_equal(np.zeros_like(got), right)


@few
@given(shapes, st.sampled_from(TYPES), st.randoms(use_true_random=False))
def test_transpose(shape: tuple[int, ...], name: str, random: object) -> None:
    x = sample(1, shape, name)
    order = list(range(x.ndim))
    random.shuffle(order)  # type: ignore[attr-defined]
    same(run_node("Transpose", [x], perm=order or None)[0], x.transpose(order))
    same(run_node("Transpose", [x])[0], x.T)


@few
@given(dims, st.randoms(use_true_random=False), st.sampled_from(TYPES))
def test_reshape(shape: tuple[int, ...], random: object, name: str) -> None:
    factors = [*shape, 1, 1]
    random.shuffle(factors)  # type: ignore[attr-defined]
    x = sample(2, shape, name)
    target = np.array([*factors[:-1], -1], np.int64)
    same(run_node("Reshape", [x, target], constants=[1])[0], x.reshape(target))


@pytest.mark.parametrize(
    ("old", "new", "left", "right"),
    [
        ((1, 128, 768), (1, 128, 12, 64), [[0], [1], [2]], [[0], [1], [2, 3]]),
        ((128, 768), (1, 128, 768), [[0], [1]], [[0, 1], [2]]),
        ((2, 3, 4), (6, 4), [[0, 1], [2]], [[0], [1]]),
        ((4, 3), (3, 4), [[0, 1]], [[0, 1]]),
        ((5, 1, 1), (5,), [[0, 1, 2]], [[0]]),
        ((1, 7), (7, 1), [[0, 1]], [[0, 1]]),
    ],
)
def test_groups(
    old: tuple[int, ...], new: tuple[int, ...], left: object, right: object
) -> None:
    assert groups_of(old, new) == (left, right)


@pytest.mark.parametrize(
    ("old", "new"), [((), (1, 1)), ((1, 1), ()), ((0, 3), (3, 0, 2)), ((2, 0), (0,))]
)
def test_reshape_of_scalars_and_nothing(
    old: tuple[int, ...], new: tuple[int, ...]
) -> None:
    x = sample(3, old, "float32")
    target = np.array(new, np.int64)
    got = run_node("Reshape", [x, target], constants=[1], allowzero=1)[0]
    same(got, x.reshape(new))


@pytest.mark.parametrize("version", [11, 13])
def test_squeeze_and_unsqueeze(version: int) -> None:
    x = sample(4, (1, 3, 1, 5), "int16")
    axes = np.array([0, -2], np.int64)
    inside = {"axes": axes.tolist()} if version < 13 else {}
    given_axes = [] if version < 13 else [axes]
    got = run_node(
        "Squeeze",
        [x, *given_axes],
        constants=range(1, 1 + len(given_axes)),
        version=version,
        **inside,
    )[0]
    same(got, x.reshape(3, 5))
    got = run_node(
        "Unsqueeze",
        [got, *given_axes],
        constants=range(1, 1 + len(given_axes)),
        version=version,
        **inside,
    )[0]
    same(got, x)


@pytest.mark.parametrize("axis", [0, 1, 3, -1])
def test_flatten(axis: int) -> None:
    x = sample(5, (2, 3, 5), "uint8")
    rows = int(np.prod(x.shape[:axis]))
    same(run_node("Flatten", [x], axis=axis)[0], x.reshape(rows, -1))


@few
@given(dims, st.sampled_from(TYPES), st.data())
def test_concat_and_split(
    shape: tuple[int, ...], name: str, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    parts = []
    for i, size in enumerate(sizes):
        part = list(shape)
        part[axis] = size
        parts.append(sample(i, tuple(part), name))
    whole = np.concatenate(parts, axis)
    same(run_node("Concat", parts, axis=axis)[0], whole)
    cuts = np.array(sizes, np.int64)
    got = run_node("Split", [whole, cuts], constants=[1], outputs=len(sizes), axis=axis)
    for one, right in zip(got, parts, strict=True):
        same(one, right)


def test_uneven_split() -> None:
    x = sample(6, (7, 2), "float32")
    got = run_node("Split", [x], outputs=3, num_outputs=3)
    for one, right in zip(got, (x[:3], x[3:6], x[6:]), strict=True):
        same(one, right)


@few
@given(dims, st.sampled_from(TYPES), st.data())
def test_slice(shape: tuple[int, ...], name: str, data: st.DataObject) -> None:
    x = sample(7, shape, name)
    number = st.integers(-7, 7)
    axes = data.draw(st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1))
    first, last = ([data.draw(number) for _ in axes] for _ in range(2))
    steps = [data.draw(st.sampled_from([-2, -1, 1, 2, 3])) for _ in axes]
    cut = [slice(None)] * x.ndim
    for axis, one, other, step in zip(axes, first, last, steps, strict=True):
        begin = max(one, -x.shape[axis])  # ONNX, unlike numpy, moves it to the first
        cut[axis] = slice(begin, other, step)
    arrays = [np.array(v, np.int64) for v in (first, last, axes, steps)]
    got = run_node("Slice", [x, *arrays], constants=[1, 2, 3, 4])[0]
    same(got, x[tuple(cut)])


def test_slice_with_attributes() -> None:
    x = sample(8, (5, 7), "float64")
    got = run_node("Slice", [x], version=9, starts=[1, -3], ends=[4, 100])[0]
    same(got, x[1:4, -3:])


@few
@given(shapes, st.sampled_from(TYPES), st.data())
def test_expand_and_tile(
    shape: tuple[int, ...], name: str, data: st.DataObject
) -> None:
    x = sample(9, shape, name)
    repeats = np.array([data.draw(st.integers(0, 3)) for _ in shape], np.int64)
    same(run_node("Tile", [x, repeats], constants=[1])[0], np.tile(x, repeats))
    full = (2, *[data.draw(st.integers(2, 3)) if s == 1 else s for s in shape])
    target = np.array(full, np.int64)
    got = run_node("Expand", [x, target], constants=[1])[0]
    same(got, np.broadcast_to(x, full))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("name", ["float16", "int8"])
def test_depth_to_space(mode: str, name: str) -> None:
    x = sample(10, (2, 12, 3, 5), name)
    deep = (2, 2, 2, 3) if mode == "DCR" else (2, 3, 2, 2)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    right = x.reshape(*deep, 3, 5).transpose(order).reshape(2, 3, 6, 10)
    same(run_node("DepthToSpace", [x], blocksize=2, mode=mode)[0], right)
    if mode == "DCR":
        same(run_node("SpaceToDepth", [right], blocksize=2)[0], x)


def test_unknown_starts_are_bound_or_refused() -> None:
    x = sample(11, (7,), "float32")
    one, other = np.array([2], np.int64), np.array([5], np.int64)
    same(run_node("Slice", [x, one, other])[0], x[2:5])
    with pytest.raises(Error, match="do not fit together"):
        run_node("Concat", [x, x.reshape(1, 7)], axis=0)
