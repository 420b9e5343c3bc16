"""Long sums in chunks: when they are cut and where, and the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.schedule.library.k_blocking import divisor
from nanoloom.target import by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample
from tests.vector.checks import check, contracted
from tests.vector.kernel_harness import (
    Array,
    backwards,
    program_of,
    run,
    stage_text,
    targets,
)

TARGET = by_name("sapphirerapids")  # 2 MB in the second level


def product(right: Array) -> Any:
    return lambda b, x: b.einsum("mk,kn->mn", x, b.constant(right))


def schedule_of(m: int, k: int, n: int) -> str:
    make = product(np.zeros((k, n), np.float32))
    return stage_text(program_of(make, ((m, k), "float32")), "schedule", TARGET)


def test_chunks_are_equal_parts_in_fours() -> None:
    assert divisor(4096, 512) == 512
    assert divisor(3080, 512) == 440
    assert divisor(4160, 512) == 520
    for nothing in (4099, 2 * 2053, 4098):
        assert divisor(nothing, 512) is None


def test_a_long_sum_is_cut() -> None:
    """The chunk, then panels, then tiles of rows; the task has several panels.

    The last chunk is left for the loops that write the result.
    """
    text = schedule_of(512, 4096, 4096)
    check_text(
        text,
        """
    CHECK: // register tile 6x4 vectors: {{.*}}; sums in chunks of 512
    CHECK: structured.split {{.*}} after 3584 {dimension = 2}
    CHECK: structured.fuse {{.*}} tile_sizes [132, 512] {apply_cleanup, use_forall}
    CHECK: tile_using_for {{.*}} tile_sizes [0, 0, 512]
    CHECK: tile_using_for {{.*}} tile_sizes [0, 64, 0]
    CHECK: tile_using_for {{.*}} tile_sizes [6, 0, 0]
    CHECK: structured.fuse {{.*}} tile_sizes [0, 64] {apply_cleanup}
    CHECK: structured.fuse {{.*}} tile_sizes [6, 0] {apply_cleanup}
    CHECK: "nanoloom.nanokernel"
    """,
    )


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (512, 1984, 4096),  # the rows of a block stay in the cache
        (16, 4096, 4096),  # so do few rows
        (512, 4099, 4096),  # a prime
        (128, 4096, 768),  # too few tasks would be left
    ],
)
def test_others_are_left_whole(m: int, k: int, n: int) -> None:
    assert "tile_using_for" not in schedule_of(m, k, n)


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("follows", [False, True])
def test_numbers(target: Any, follows: bool) -> None:
    """Rows and columns over the edge; with and without what follows the sum."""
    m, k, n = 389, 3080, 775
    x, w = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    bias, residual = sample(3, (n,), "float32"), sample(4, (m, n), "float32")

    def make(b: Any, left: Any, other: Any) -> Any:
        made = product(w)(b, left)
        if not follows:
            return made
        summed = b.elementwise(lambda s, t: s + t, made, b.constant(bias))
        return b.elementwise(lambda s, t: s + t, summed, other)

    text = stage_text(program_of(make, x, residual), "schedule", target)
    assert "tile_using_for" in text
    exact, magnitude, count = contracted("mk,kn->mn", x, w)
    if follows:
        exact = exact + bias.astype(np.float64) + residual
        magnitude = magnitude + abs(bias) + abs(residual)
    got = run(make, x, residual, target=target, order=backwards)
    check(got, exact, count + 2, magnitude)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("target", targets(), ids=str)
def test_rows_in_two_dimensions(target: Any) -> None:
    """As of a batch of sequences: a task has rows of one of them."""
    x, w = sample(5, (3, 133, 3080), "float32"), sample(6, (3080, 1100), "float32")

    def make(b: Any, left: Any) -> Any:
        made = b.einsum("bmk,kn->bmn", left, b.constant(w))
        return b.elementwise(lambda s: s.maximum(0.0), made)

    assert "tile_using_for" in stage_text(program_of(make, x), "schedule", target)
    exact, magnitude, count = contracted("bmk,kn->bmn", x, w)
    got = run(make, x, target=target, order=backwards)
    check(got, np.maximum(exact, 0), count, magnitude)


def vector_text() -> str:
    make = product(np.zeros((4096, 4096), np.float32))
    return stage_text(program_of(make, ((512, 4096), "float32")), "vector", TARGET)


def test_sums_lie_apart_and_the_result_is_written_once() -> None:
    text = vector_text()
    check_text(
        text,
        """
    CHECK: func.func @kernel_0({{.*}}, [[SUMS:%arg5]]: memref<132x512xf32>
    CHECK: [[BLOCK:%.*]] = memref.subview [[SUMS]]
    CHECK: scf.for {{.*}} = %c0 to %c3584 step %c512
    CHECK: [[PART:%.*]] = memref.subview [[BLOCK]]
    CHECK: memref.subview [[PART]]
    CHECK: vector.transfer_write
    CHECK: memref.subview %arg2
    CHECK: memref.subview [[BLOCK]]
    CHECK: vector.transfer_read
    CHECK: vector.transfer_write
    """,
    )
    assert text.count("memref.subview %arg2") == 1 and "memref.copy" not in text


def test_behind_a_task_s_last_panel_comes_its_first_one() -> None:
    """Its next chunk is fetched; behind the last one the next task's first panel."""
    check_text(
        vector_text(),
        """
    CHECK: scf.for [[CHUNK:%.*]] = %c0 to %c3584 step %c512
    CHECK: scf.for [[COLUMN:%.*]] = %c0 to %c512{{.*}} step %c64
    CHECK: scf.for [[ROW:%.*]] =
    CHECK: scf.for [[K:%.*]] = %c0 to %c512
    CHECK: [[AHEAD:%.*]] = arith.addi [[CHUNK]], %c512
    CHECK: [[BEYOND:%.*]] = arith.select {{.*}}, [[AHEAD]], %c0
    CHECK: [[FIRST:%.*]] = arith.subi
    CHECK: [[NEXT:%.*]] = arith.addi {{.*}}, %c1
    CHECK: [[PANEL:%.*]] = arith.select {{.*}}, [[FIRST]], [[NEXT]]
    CHECK: [[START:%.*]] = arith.select {{.*}}, [[BEYOND]], [[CHUNK]]
    CHECK: memref.prefetch %arg1{{\\[}}[[PANEL]], [[START]], {{.*}}], read, locality<2>
    CHECK: [[START:%.*]] = arith.select {{.*}}, %c0, %c3584
    CHECK: memref.prefetch %arg1{{\\[}}{{%.*}}, [[START]], {{.*}}], read, locality<2>
    """,
    )
