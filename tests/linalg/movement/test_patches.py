"""Col2Im against a plain loop."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nanoloom
from nanoloom.compiler import Report, partition_model
from nanoloom.errors import ModelError
from nanoloom.frontend.onnx import load
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.drawn_cases import few_examples
from tests.linalg.bounds import sample, within
from tests.linalg.single import model_of, run_node
from tests.vector.kernel_harness import shared_cache

pair = st.lists(st.integers(1, 3), min_size=2, max_size=2)


@few_examples(12)
@given(pair, pair, pair, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_col2im(
    block: list[int], strides: list[int], dilations: list[int], pads: list[int]
) -> None:
    image = [7, 8]
    counts = [
        (image[d] + pads[d] + pads[d + 2] - dilations[d] * (block[d] - 1) - 1)
        // strides[d]
        + 1
        for d in range(2)
    ]
    x = sample(1, (2, 3 * block[0] * block[1], counts[0] * counts[1]), "float32")
    sizes = [np.array(v, np.int64) for v in (image, block)]
    got = run_node(
        "Col2Im",
        [x, *sizes],
        constants=[1, 2],
        strides=strides,
        dilations=dilations,
        pads=pads,
    )[0]
    apart = x.astype(np.float64).reshape(2, 3, *block, *counts)
    right, size = np.zeros((2, 2, 3, *image))
    for k, m, i, j in product(*map(range, (*block, *counts))):
        row = i * strides[0] + k * dilations[0] - pads[0]
        column = j * strides[1] + m * dilations[1] - pads[1]
        if 0 <= row < image[0] and 0 <= column < image[1]:
            right[:, :, row, column] += apart[:, :, k, m, i, j]
            size[:, :, row, column] += abs(apart[:, :, k, m, i, j])
    steps = block[0] * block[1]
    assert within(got, right, steps, size)
    assert not within(0 * got, right, steps, size)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"strides": [0, 1]}, "not all above 0"),
        ({"dilations": [1, -1]}, "not all above 0"),
        ({"strides": [2, 2]}, "its blocks need"),
    ],
)
def test_blocks_that_do_not_fit(attributes: dict[str, list[int]], reason: str) -> None:
    x = np.ones((1, 4, 9), np.float32)
    sizes = [np.array([4, 4]), np.array([2, 2])]
    run_node("Col2Im", [x, *sizes], constants=[1, 2])
    with pytest.raises(ModelError, match=reason):
        run_node("Col2Im", [x, *sizes], constants=[1, 2], **attributes)


CASES: dict[str, dict[str, list[int]]] = {
    "over each other": {"image": [23, 37], "block": [3, 5], "strides": [1, 1]},
    "side by side": {"image": [24, 40], "block": [8, 4], "strides": [8, 4]},
    "half over each other": {"image": [21, 35], "block": [5, 4], "strides": [3, 2]},
    "apart": {"image": [41], "block": [3], "strides": [7]},
    "strided and dilated": {
        "image": [27, 35],
        "block": [4, 3],
        "strides": [2, 3],
        "dilations": [3, 2],
    },
    "three axes": {"image": [7, 9, 18], "block": [2, 3, 2], "strides": [1, 2, 1]},
}


def counts_of(
    image: list[int], block: list[int], strides: list[int], dilations: list[int]
) -> list[int]:
    rows = zip(image, block, strides, dilations, strict=True)
    return [(i - (k - 1) * d - 1) // s + 1 for i, k, s, d in rows]


def added(
    x: np.ndarray,
    image: list[int],
    block: list[int],
    strides: list[int],
    dilations: list[int],
) -> tuple[np.ndarray, np.ndarray]:
    """An image of blocks, and how large its terms are: one place after another."""
    counts = counts_of(image, block, strides, dilations)
    apart = x.astype(np.float64).reshape(*x.shape[:1], -1, *block, *counts)
    right, size = np.zeros((2, *apart.shape[:2], *image))
    for place in np.ndindex(*block):
        first = [p * d for p, d in zip(place, dilations, strict=True)]
        ends = [p + s * n for p, s, n in zip(first, strides, counts, strict=True)]
        at = tuple(slice(p, e, s) for p, e, s in zip(first, ends, strides, strict=True))
        right[..., *at] += apart[:, :, *place]
        size[..., *at] += abs(apart[:, :, *place])
    return right, size


@pytest.mark.parametrize("name", CASES)
def test_a_program_and_its_kernels(name: str) -> None:
    """Blocks are read where they lie: nothing is copied into a border first."""
    given = {"dilations": [1] * len(CASES[name]["image"]), **CASES[name]}
    counts = counts_of(**given)
    x = sample(2, (2, 3 * prod(given["block"]), prod(counts)), "float32")
    sizes = [np.array(given[word], np.int64) for word in ("image", "block")]
    words = {word: given[word] for word in ("strides", "dilations")}
    model, feeds = model_of("Col2Im", [x, *sizes], words, constants=[1, 2])
    (got,) = nanoloom.compile(model, threads=1, cache=shared_cache())(feeds).values()
    right, size = added(x, **given)
    terms = prod(given["block"])
    assert within(got, right, terms, size)
    assert not within(0 * got, right, terms, size)
    options = CompileOptions(by_name("x86-64-v4"))
    program = partition_model(load(model), options, Report())
    points = [
        prod(int(axis.extent) for axis in stage.axes)
        for kernel in program.kernels.values()
        for stage in kernel.nest.stages
    ]
    assert max(points) <= 4 * x.size


EDGES = [
    ((62, 53), (2, 1), (3, 1), (0, 0, 0, 1)),
    ((19, 72), (3, 1), (2, 1), (2, 0, 2, 0)),
    ((73, 65), (5, 1), (1, 1), (3, 0, 0, 0)),
    ((51, 40), (1, 3), (1, 1), (0, 0, 3, 0)),
    ((38, 9), (2, 1), (1, 2), (1, 1, 3, 3)),
]


@pytest.mark.parametrize(("image", "block", "dilations", "pads"), EDGES)
def test_borders_at_some_sides(
    image: tuple[int, int],
    block: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, int, int, int],
) -> None:
    """Places are read backwards: a task's part of a border is not where its first
    and last pixels say."""
    whole = [n + pads[d] + pads[d + 2] for d, n in enumerate(image)]
    counts = counts_of(whole, [*block], [1, 1], [*dilations])
    x = sample(1, (1, prod(block), prod(counts)), "float32")
    apart = x.astype(np.float64).reshape(*block, *counts)
    right, size = np.zeros((2, *whole))
    for k, m in product(*map(range, block)):
        rows = slice(k * dilations[0], k * dilations[0] + counts[0])
        columns = slice(m * dilations[1], m * dilations[1] + counts[1])
        right[rows, columns] += apart[k, m]
        size[rows, columns] += abs(apart[k, m])
    words = {"dilations": [*dilations], "pads": [*pads]}
    sizes = [np.array(v, np.int64) for v in (image, block)]
    model, feeds = model_of("Col2Im", [x, *sizes], words, constants=[1, 2])
    (got,) = nanoloom.compile(model, threads=1, cache=shared_cache())(feeds).values()
    cut = np.s_[pads[0] : pads[0] + image[0], pads[1] : pads[1] + image[1]]
    assert within(got[0, 0], right[cut], prod(block), size[cut])
    assert not within(0 * got[0, 0], right[cut], prod(block), size[cut])
