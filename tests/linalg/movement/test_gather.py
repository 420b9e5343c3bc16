"""Reading at run-time indices: exact, also for negative and invalid indices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, INTEGERS, sample
from tests.linalg.movement.test_shaping import same
from tests.linalg.single import run_node

TYPES = (*FLOATS, *INTEGERS, "bool")
few = few_examples(12)
dims = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def indices(
    seed: int, extent: int, shape: tuple[int, ...], name: str = "int64"
) -> np.ndarray:
    return np.random.default_rng(seed).integers(-extent, extent, shape).astype(name)


@few
@given(dims, st.sampled_from(TYPES), st.data())
def test_gather(shape: tuple[int, ...], name: str, data: st.DataObject) -> None:
    x = sample(1, shape, name)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    inner = data.draw(st.sampled_from([(), (3,), (2, 5), (0,)]))
    kind = data.draw(st.sampled_from(["int32", "int64"]))
    where = indices(2, x.shape[axis], inner, kind)
    constants = data.draw(st.sampled_from([[], [1]]))
    got = run_node("Gather", [x, where], constants=constants, axis=axis)[0]
    same(got, np.take(x, where, axis))


def test_gather_of_even_indices_is_a_slice() -> None:
    x = sample(3, (7, 5), "float32")
    for where in ([0, 2, 4], [-3, -2, -1], [6, 4, 2], [1, 1, 2]):
        array = np.array(where, np.int64)
        same(run_node("Gather", [x, array], constants=[1])[0], x[array])


def test_invalid_indices_read_no_other_memory() -> None:
    x = sample(4, (5, 3), "float32")
    where = np.array([5, -6, 2**40, -(2**40)], np.int64)
    got = run_node("Gather", [x, where])[0]
    np.testing.assert_array_equal(got, x[[4, 0, 4, 0]])


@few
@given(dims, st.sampled_from(TYPES), st.data())
def test_gather_elements(
    shape: tuple[int, ...], name: str, data: st.DataObject
) -> None:
    x = sample(5, shape, name)
    axis = data.draw(st.integers(0, x.ndim - 1))
    inner = list(shape)
    inner[axis] = data.draw(st.integers(0, 4))
    where = indices(6, x.shape[axis], tuple(inner))
    got = run_node("GatherElements", [x, where], axis=axis)[0]
    same(got, np.take_along_axis(x, where % x.shape[axis], axis))


@few
@given(st.integers(0, 2), st.integers(1, 3), st.sampled_from(TYPES))
def test_gather_nd(batch: int, depth: int, name: str) -> None:
    x = sample(7, (2, 3, 4, 5, 3), name)
    lead = x.shape[:batch]
    inner = (*lead, 3, 2)
    where = np.stack(
        [indices(8 + d, x.shape[batch + d], inner) for d in range(depth)], axis=-1
    )
    got = run_node("GatherND", [x, where], batch_dims=batch)[0]
    right = np.empty((*inner, *x.shape[batch + depth :]), x.dtype)
    for at in np.ndindex(*inner):
        right[at] = x[(*at[:batch], *where[at])]
    same(got, right)


@few
@given(st.booleans(), st.sampled_from(TYPES))
def test_reverse_sequence(time_first: bool, name: str) -> None:
    x = sample(9, (5, 4, 3) if time_first else (4, 5, 3), name)
    lengths = np.array([0, 1, 5, 3], np.int64)
    time, batch = (0, 1) if time_first else (1, 0)
    got = run_node(
        "ReverseSequence", [x, lengths], version=28, time_axis=time, batch_axis=batch
    )[0]
    right = np.moveaxis(x, batch, 0).copy()
    for row, length in zip(right, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    same(got, np.moveaxis(right, 0, batch))


@few
@given(
    st.sampled_from([(3,), (2, 5), (0, 2)]),
    st.sampled_from(["int8", "int64", "uint8", "float32"]),
    st.data(),
)
def test_one_hot(shape: tuple[int, ...], name: str, data: st.DataObject) -> None:
    depth = 7
    where = np.random.default_rng(10).integers(0, depth + 2, shape).astype(name)
    if name != "uint8" and where.size:
        where.reshape(-1)[0] = -3
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    values = np.array([-2, 3], data.draw(st.sampled_from(["float16", "int32"])))
    constants = data.draw(st.sampled_from([[1], [1, 2]]))
    got = run_node(
        "OneHot",
        [where, np.array(depth, np.int64), values],
        constants=constants,
        axis=axis,
    )[0]
    wide = where.astype(np.int64)
    hit = np.where(wide < 0, wide + depth, wide)[..., None] == np.arange(depth)
    same(got, np.moveaxis(np.where(hit, values[1], values[0]), -1, axis))


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_tensor_scatter(mode: str, name: str) -> None:
    cache, update = sample(11, (3, 2, 7, 5), name), sample(12, (3, 2, 3, 5), name)
    starts = np.array([0, 4, 2 if mode == "linear" else 6], np.int64)
    got = run_node(
        "TensorScatter", [cache, update, starts], mode=mode, axis=-2, version=24
    )[0]
    right = cache.copy()
    for row in range(3):
        for i in range(3):
            right[row, :, (starts[row] + i) % 7] = update[row, :, i]
    same(got, right)
