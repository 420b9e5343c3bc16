"""Rows that come before their tile: some lines a round, the same numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.ir.mlir import ir
from nanoloom.kernels.program import Program
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Nanokernel, Prefetch, Schedule
from nanoloom.target import by_name
from nanoloom.target.facts import Target
from tests.guarded import Side
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import (
    backwards,
    executable,
    program_of,
    stage_text,
    targets,
)

CHANNELS, FEATURES = 21, 37


def product(right: np.ndarray) -> Any:
    return lambda b, x: b.einsum("mk,kn->mn", x, b.constant(right))


def layer(right: np.ndarray) -> Any:
    """made[y, x, f] = sum of image[y + ky, 2 x + kx, c] * right[ky, kx, c, f]."""

    def make(b: Any, x: Any) -> Any:
        extents = (x.shape[0] - 2, (x.shape[1] - 3) // 2 + 1, FEATURES)
        start = b.full(extents, 0, x.dtype)
        y, pixel, f, ky, kx, c = (ir.AffineDimExpr.get(n) for n in range(6))
        image = ir.AffineMap.get(6, 0, [y + ky, pixel * 2 + kx, c])
        weights = ir.AffineMap.get(6, 0, [ky, kx, c, f])
        (sums,) = b.generic(
            [(x, image), (b.constant(right), weights)],
            [(start, ir.AffineMap.get(6, 0, [y, pixel, f]))],
            ["parallel"] * 3 + ["reduction"] * 3,
            lambda a, w, total: total + a * w,
        )
        return sums

    return make


def scheduled(program: Program, target: Target, ahead: int) -> Schedule:
    """As it is chosen, but that only the rows are fetched, in rounds of a few steps."""
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, target).directives
    kept = (
        replace(word, unroll=4) if isinstance(word, Nanokernel) else word
        for word in words
        if not isinstance(word, Prefetch)
    )
    return Schedule((*kept, Prefetch(0, ahead=ahead, level=2)))


def lines(rows: int, unroll: int) -> int:
    """Prefetches of a round: 16 steps fetch a line of each row."""
    return -(-rows // (16 // unroll))


def check(make: Any, x: np.ndarray, exact: np.ndarray, least: np.ndarray, ahead: int):
    """Against float64, with nothing behind the rows that could be read."""
    program = program_of(make, x)
    for target in targets():
        script = scheduled(program, target, ahead)
        (plan,) = (w for w in script.directives if isinstance(w, Nanokernel))
        text = stage_text(program, "vector", target, script=script)
        rounds = re.findall(r"scf.for .* step %c(\d+)\w* iter_args", text)
        # Rows behind the last whole tile have a loop of their own (`Versions`).
        loops = [rows for rows in (plan.rows, exact.shape[-2] % plan.rows) if rows]
        assert rounds.count(str(plan.unroll)) == len(loops)
        fetched = sum(lines(rows, plan.unroll) for rows in loops)
        assert text.count("memref.prefetch") == fetched > 0
        for side in Side:
            made = executable(program, target, script)
            (result,) = made(x, order=backwards, side=side)
            assert (abs(result - exact) <= least).all()
            assert not (abs(0 * result - exact) <= least).all()


def test_the_next_rows_of_a_product() -> None:
    x, right = sample(1, (37, 70), "float32"), sample(2, (70, FEATURES), "float32")
    wide, eps = x.astype(np.float64), np.finfo(np.float32).eps
    check(product(right), x, wide @ right, 72 * eps * (abs(wide) @ abs(right)), 70)


def test_the_next_row_of_an_image() -> None:
    x = sample(3, (6, 35, CHANNELS), "float32")
    right = sample(4, (3, 3, CHANNELS, FEATURES), "float32")
    wide, eps = x.astype(np.float64), np.finfo(np.float32).eps

    def sums(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
        taps = [(i, j) for i in range(3) for j in range(3)]
        parts = [image[i : i + 4, j : j + 33 : 2] @ weights[i, j] for i, j in taps]
        return np.sum(parts, axis=0)

    bound = (9 * CHANNELS + 2) * eps * sums(abs(wide), abs(right))
    check(layer(right), x, sums(wide, right), bound, 3 * CHANNELS)


def test_a_part_of_a_round_is_refused() -> None:
    right = np.ones((70, FEATURES), np.float32)
    program, target = (
        program_of(product(right), ((37, 70), "float32")),
        by_name("znver4"),
    )
    script = scheduled(program, target, 69)
    with pytest.raises(Error, match=r"ahead = 69: .* whole rounds of 70 steps"):
        stage_text(program, "vector", target, script=script)
