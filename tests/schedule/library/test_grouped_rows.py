"""Grouped convolutions whose weights are larger than the cache: rows in one task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Map
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Parallel, Tile
from nanoloom.target import Target, by_name
from tests.vector.kernel_harness import (
    Array,
    backwards,
    executable,
    program_of,
    targets,
)


@dataclass(frozen=True)
class Groups:
    """3x3 sums of an image of [size, size, groups, channels], as many filters each."""

    size: int
    groups: int
    channels: int
    stride: int = 1

    @property
    def image(self) -> tuple[int, ...]:
        side = self.stride * (self.size - 1) + 3
        return side, side, self.groups, self.channels

    def weights(self) -> Array:
        """Whole numbers, so that sums are exact in any order."""
        shape = (self.groups, self.channels, 3, 3, self.channels)
        return np.random.default_rng(1).integers(-2, 3, shape).astype("float32")

    def make(self, b: Any, x: Any) -> Any:
        y, z, g, f, ky, kx, c = (ir.AffineDimExpr.get(n) for n in range(7))
        s = self.stride
        shape = (self.size, self.size, self.groups, self.channels)
        made = b.full(shape, 0, np.dtype("float32"))
        return b.generic(
            [
                (x, Map.get(7, 0, [y * s + ky, z * s + kx, g, c])),
                (b.constant(self.weights()), Map.get(7, 0, [g, f, ky, kx, c])),
            ],
            [(made, Map.get(7, 0, [y, z, g, f]))],
            [PARALLEL] * 4 + [REDUCTION] * 3,
            lambda one, w, total: total + one * w,
        )[0]

    def exact(self, x: Array) -> Array:
        window = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (0, 1))
        window = window[:: self.stride, :: self.stride].astype(np.float64)
        return np.einsum("yzgcab,gfabc->yzgf", window, self.weights())


def nest_of(case: Groups) -> LoopNest:
    program = program_of(case.make, (case.image, "float32"))
    (kernel,) = program.kernels.values()
    return kernel.nest


@pytest.mark.parametrize(
    ("case", "rows"),
    [
        (Groups(7, 20, 112), 7),
        (Groups(14, 8, 168), 14),
        (Groups(7, 20, 112, stride=2), 7),
        (Groups(14, 8, 32), 1),  # the cache holds all weights: more tasks
    ],
    ids=str,
)
def test_a_panel_is_read_from_memory_once(case: Groups, rows: int) -> None:
    words = choose(nest_of(case), by_name("x86-64-v4")).directives
    (tasks,) = (word for word in words if isinstance(word, Parallel))
    assert tasks.sizes[0] == rows
    tiles = [word.sizes[0] for word in words if isinstance(word, Tile)]
    assert tiles[-1:] == [1] or rows == 1


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("case", [Groups(7, 9, 112), Groups(5, 3, 200, stride=2)])
def test_numbers(case: Groups, target: Target) -> None:
    x = np.random.default_rng(2).integers(-3, 4, case.image).astype("float32")
    program = program_of(case.make, x)
    (got,) = executable(program, target)(x, order=backwards)
    assert np.array_equal(got, case.exact(x))
