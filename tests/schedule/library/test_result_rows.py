"""Few rows of a large result for each task: when, in which loops, and the numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nanoloom.target import by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample
from tests.vector.checks import check, contracted
from tests.vector.kernel_harness import (
    backwards,
    program_of,
    run,
    stage_text,
    targets,
)

TARGET = by_name("sapphirerapids")  # 2 MB in the second level


def product(b: Any, left: Any, right: Any) -> Any:
    return b.einsum("mk,kn->mn", left, right)


def schedule_of(m: int, k: int, n: int) -> str:
    shapes = ((m, k), "float32"), ((k, n), "float32")
    return stage_text(program_of(product, *shapes), "schedule", TARGET)


def test_a_tile_of_rows_is_a_task() -> None:
    """Its result is written from end to end."""
    check_text(
        schedule_of(256, 64, 3136),
        """
    CHECK: // register tile 6x4 vectors
    CHECK: tile_sizes [6, 0, 0] {{.*}}use_forall
    CHECK: tile_sizes [0, 64, 0]
    CHECK: tile_sizes [6, 0, 0]
    CHECK: "nanoloom.nanokernel"
    """,
    )


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (64, 64, 3136),  # its result stays in the cache
        (4096, 64, 512),  # rows of less than a page
        (256, 600, 3136),  # the right operand does not stay there
        (60, 40, 6144),  # few tasks
    ],
)
def test_others_have_all_rows(m: int, k: int, n: int) -> None:
    forall = r"tile_sizes \[\d+, 0, 0\] .*use_forall"
    assert not re.search(forall, schedule_of(m, k, n))
    assert re.search(forall, schedule_of(256, 64, 3136))


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("follows", [False, True])
def test_numbers(target: Any, follows: bool) -> None:
    """Rows over the edge, and columns where that is no copy; what follows the sum."""
    small = replace(target, caches=replace(target.caches, l2=1 << 16))
    m, k, n = 133, 5, 1031 if target.vector.mask_registers else 1032
    x, y = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    bias = sample(3, (m, 1), "float32")

    def make(b: Any, left: Any, right: Any, other: Any) -> Any:
        made = product(b, left, right)
        if not follows:
            return made
        return b.elementwise(lambda s, t: (s + t).maximum(0.0), made, other)

    text = stage_text(program_of(make, x, y, bias), "schedule", small)
    rows, _, _ = text.partition("register tile ")[2].partition("x")
    assert f"tile_sizes [{int(rows)}, 0" in text
    exact, magnitude, count = contracted("mk,kn->mn", x, y)
    if follows:
        exact = np.maximum(exact + bias.astype(np.float64), 0)
        magnitude = magnitude + abs(bias)
    got = run(make, x, y, bias, target=small, order=backwards)
    check(got, exact, count + 1, magnitude)


def test_a_batch_of_products() -> None:
    """Each has its own operands: a task has rows of one of them."""
    target = targets()[0]
    small = replace(target, caches=replace(target.caches, l2=1 << 16))
    x, y = sample(5, (3, 130, 4), "float32"), sample(6, (3, 4, 1040), "float32")

    def make(b: Any, left: Any, right: Any) -> Any:
        return b.einsum("bmk,bkn->bmn", left, right)

    text = stage_text(program_of(make, x, y), "schedule", small)
    assert "tile_sizes [1, " in text and "tile_sizes [0, 0, " in text
    exact, magnitude, count = contracted("bmk,bkn->bmn", x, y)
    got = run(make, x, y, target=small, order=backwards)
    check(got, exact, count, magnitude)
