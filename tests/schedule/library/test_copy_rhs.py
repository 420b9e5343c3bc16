"""Which products copy the panels of a right operand that lies flat."""

from __future__ import annotations

import pytest

from nanoloom.notation import Buffer, axes, computation, maximum
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Nanokernel, Parallel, Schedule
from nanoloom.target import Target, by_name
from tests.notation.programs import kernels

AVX2, AVX512 = by_name("x86-64-v3"), by_name("x86-64-v4")


def schedule_of(batch: int, m: int, k: int, n: int, target: Target) -> Schedule:
    """For a batch of products, each behind its bias and relu."""
    b, i, j, r = axes("b i j r")
    x, w = Buffer("x", (batch, m, k)), Buffer("w", (batch, k, n))
    s, y, bias = Buffer("s", (batch, m, n)), Buffer("y"), Buffer("bias", (n,))
    s[b, i, j] += x[b, i, r] * w[b, r, j]
    y[b, i, j] = maximum(s[b, i, j] + bias[j], 0)
    (kernel,) = kernels(computation(y)).kernels.values()
    return choose(kernel.nest, target)


def nanokernel(schedule: Schedule) -> Nanokernel:
    (found,) = (w for w in schedule.directives if isinstance(w, Nanokernel))
    return found


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_masks_at_every_step_are_copied_away(batch: int) -> None:
    """Then they take no registers either: the tile is the largest there is."""
    chosen = schedule_of(batch, 131, 203, 89, AVX2)
    kernel = nanokernel(chosen)
    assert kernel.copy_rhs and kernel.rows * kernel.vectors == 12
    (tasks,) = (w for w in chosen.directives if isinstance(w, Parallel))
    assert tasks.sizes[-2:] == (0, kernel.vectors * 8)


@pytest.mark.parametrize("size", [(128, 64, 128), (128, 128, 64), (197, 197, 64)])
def test_whole_columns_are_read_where_they_are(size: tuple[int, int, int]) -> None:
    kernel = nanokernel(schedule_of(12, *size, AVX2))
    assert not kernel.copy_rhs and kernel.rows * kernel.vectors == 12


def test_few_rows_do_not_pay_for_a_copy() -> None:
    assert nanokernel(schedule_of(12, 12, 100, 90, AVX2)).copy_rhs
    assert not nanokernel(schedule_of(12, 11, 100, 90, AVX2)).copy_rhs


def test_mask_registers_cost_nothing() -> None:
    assert not nanokernel(schedule_of(7, 131, 203, 89, AVX512)).copy_rhs


def test_many_rows_of_parts_of_lines_are_copied() -> None:
    """800 bytes are no whole lines, 1024 are."""
    assert nanokernel(schedule_of(3, 500, 300, 200, AVX2)).copy_rhs
    assert not nanokernel(schedule_of(3, 500, 200, 256, AVX2)).copy_rhs
    assert not nanokernel(schedule_of(4, 128, 128, 200, AVX2)).copy_rhs
