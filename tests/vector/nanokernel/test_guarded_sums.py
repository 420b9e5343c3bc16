"""Bytes of a model's own image, read where they lie: every sum exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.integer_convolution import contract_planes, in_groups
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Parallel, Schedule
from nanoloom.target import Target, by_name
from nanoloom.target.instructions.choose import dot_for
from tests.guarded import Side
from tests.linalg.products.test_convolution import convolve
from tests.linalg.products.test_integer_convolution import integers
from tests.vector.kernel_harness import (
    backwards,
    executable,
    program_of,
    stage_text,
    targets,
)

SIGNS = {"uint8": "u8", "int8": "s8"}
VNNI = "x86-64-v4+avx512vnni"
SAME = ((1, 1), (1, 1))
FIRST = ((3, 11, 75), (7, 7), (2, 2), (3, 3), (3, 2))  # ends, and tiles between them
CASES = [  # image, window, steps, border in front and behind
    FIRST,
    ((3, 40, 9), (3, 3), (2, 2), *SAME),  # a single tile of a row
    ((2, 2, 62), (5, 3), (1, 1), (2, 1), (2, 2)),  # windows reach above and below
    ((2, 9, 64), (2, 8), (1, 3), (0, 3), (1, 5)),
    ((3, 30, 2), (3, 3), (1, 1), (2, 2), (1, 1)),  # no whole group in a row
    ((2, 4, 3, 40), (2, 3, 3), (1, 1, 1), (1, 0, 1), (0, 2, 1)),
]
FAR = ((3, 4, 50), (1, 3), (1, 1), (0, 300), (0, 0))  # more tiles than have code
KINDS = [("uint8", 200, "int8"), ("int8", -7, "int8"), ("int8", 0, "uint8")]


def window_of(case: Any) -> Window:
    image, kernel, strides, low, high = case
    sides = zip(low, image[1:], high, kernel, strides, strict=True)
    result = tuple((a + n + b - k) // s + 1 for a, n, b, k, s in sides)
    return Window(kernel, strides, (1,) * len(kernel), low, high, image[1:], result)


def program(case: Any, x: Any, w: np.ndarray, number: int) -> Any:
    window = in_groups(window_of(case))

    def make(b: Any, x: Any) -> Any:
        return contract_planes(b, window.pad(b, x, number), b.constant(w), window)

    return program_of(make, x)


def expected(case: Any, x: np.ndarray, w: np.ndarray, number: int) -> np.ndarray:
    _, kernel, strides, low, high = case
    sides = [(0, 0), (0, 0), *zip(low, high, strict=True)]
    padded = np.pad(x.astype(np.int64), sides, constant_values=number)
    rank = len(kernel)
    words = {"pads": [0] * 2 * rank, "strides": strides, "dilations": [1] * rank}
    return np.moveaxis(convolve(padded, w.astype(np.int64), 1, words), 1, -1)


@pytest.mark.parametrize("width", [4, 8])
def test_nothing_is_around_a_row(width: int) -> None:
    """The border is above and below alone, and a row of the filter is whole groups."""
    case = ((3, 9, 11), (5, width), (1, 1), (3, 0), (1, 0))
    test_numbers(case, "uint8", 200, "int8")


@pytest.mark.drawn(one_in=5)
@pytest.mark.parametrize("case", [*CASES, FAR], ids=str)
@pytest.mark.parametrize(("kind", "number", "filters"), KINDS)
def test_numbers(case: Any, kind: str, number: int, filters: str) -> None:
    """Nothing lies beside the image that could be read, nor is it copied."""
    image, kernel, *_ = case
    r = np.random.default_rng(11)
    x, w = integers(r, kind, 1, *image), integers(r, filters, 17, image[0], *kernel)
    made, right = program(case, x, w, number), expected(case, x, w, number)
    (found,) = made.kernels.values()
    for target in targets():
        lies = dot_for(target, SIGNS[kind], SIGNS[filters]) and case is not FAR
        where = "source" if lies else "task"
        script = choose(found.nest, target)
        assert f"StoreAt('pad', '{where}')" in str(script)
        scripts = [script, *(in_blocks(script, 9, target) if case is FIRST else ())]
        for run in [executable(made, target, each) for each in scripts]:
            for side in Side:
                (got,) = run(x, order=backwards, side=side)
                assert (got == right).all() and (got != np.roll(right, 1, -1)).any()


def in_blocks(script: Schedule, pixels: int, target: Target) -> list[Schedule]:
    """Tasks of so many pixels, whose tiles are at ends as only a run knows."""
    words = [
        replace(word, sizes=(1, pixels, *word.sizes[2:]))
        if isinstance(word, Parallel)
        else word
        for word in script.directives
    ]
    return [Schedule(tuple(words))] if target.has("avx512vnni") else []


def test_the_code() -> None:
    """Tiles within a row, and at each end two groups of pixels, put together there."""
    image, kernel = (3, 224, 224), (7, 7)
    case = (image, kernel, (2, 2), (3, 3), (3, 3))
    w, target = np.ones((64, 3, *kernel), np.int8), by_name(VNNI)
    for number, more in ((0, 0), (114, 2)):
        made = program(case, ((1, *image), "uint8"), w, number)
        text = stage_text(made, "vector", target)
        assert "memref.alloc" not in text and "arith.select" not in text
        plan = str(choose(next(iter(made.kernels.values())).nest, target))
        rows, vectors = (int(n) for n in plan.split("Nanokernel(")[1].split(", ")[:2])
        # Two groups of a row are a loop, but at ends; the border has a row of its own.
        tiles = (1 + 2 * 2) * rows + more
        assert text.count("vpdpbusd") == 3 * vectors * tiles
