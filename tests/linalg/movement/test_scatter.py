"""Writing at run-time indices: exact in the order of the updates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import Error
from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, INTEGERS, sample
from tests.linalg.movement.test_gather import indices
from tests.linalg.movement.test_shaping import same
from tests.linalg.single import run_node

few = few_examples(12)
dims = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
COMBINE: dict[str, Callable[..., np.ndarray]] = {
    "none": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


@few
@given(
    dims,
    st.sampled_from(list(COMBINE)),
    st.sampled_from((*FLOATS, *INTEGERS, "bool")),
    st.data(),
)
def test_scatter_elements(
    shape: tuple[int, ...], reduction: str, name: str, data: st.DataObject
) -> None:
    x = sample(1, shape, name)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    inner = list(shape)
    inner[axis] = data.draw(st.integers(0, 5))
    where = indices(2, x.shape[axis], tuple(inner), "int32")
    updates = sample(3, tuple(inner), name)
    got = run_node(
        "ScatterElements", [x, where, updates], axis=axis, reduction=reduction
    )
    right = x.copy()
    for at in np.ndindex(*inner):
        place = list(at)
        place[axis] = where[at]
        spot = tuple(place)
        right[spot] = COMBINE[reduction](right[spot], updates[at]).astype(x.dtype)
    same(got[0], right)


@few
@given(
    st.integers(1, 4),
    st.sampled_from([(3,), (2, 3), (), (0,)]),
    st.sampled_from(list(COMBINE)),
    st.sampled_from((*FLOATS, *INTEGERS)),
)
def test_scatter_nd(
    depth: int, outer: tuple[int, ...], reduction: str, name: str
) -> None:
    x = sample(4, (3, 2, 5, 3), name)
    where = np.stack([indices(5 + d, x.shape[d], outer) for d in range(depth)], -1)
    updates = sample(6, (*outer, *x.shape[depth:]), name)
    got = run_node("ScatterND", [x, where, updates], reduction=reduction)
    right = x.copy()
    for at in np.ndindex(*outer):
        spot = tuple(where[at])
        right[spot] = COMBINE[reduction](right[spot], updates[at]).astype(x.dtype)
    same(got[0], right)


@pytest.mark.parametrize("name", ["bool", "uint8"])
def test_old_scatter(name: str) -> None:
    x, updates = sample(7, (3, 5), name), sample(8, (2, 5), name)
    where = np.array([[0, 1, 2, 0, 1], [2, 0, 0, 1, 2]], np.int64)
    right = x.copy()
    np.put_along_axis(right, where, updates, 0)
    same(run_node("Scatter", [x, where, updates], version=10)[0], right)


def test_inputs_are_not_written() -> None:
    x = np.zeros((3, 2), np.float32)
    run_node("ScatterND", [x, np.array([[1]], np.int64), np.ones((1, 2), np.float32)])
    assert not x.any()


def test_unknown_reduction() -> None:
    x = np.zeros(3, np.float32)
    where = np.zeros((1, 1), np.int64)
    with pytest.raises(Error, match="median"):
        run_node("ScatterND", [x, where, x[:1]], reduction="median")
