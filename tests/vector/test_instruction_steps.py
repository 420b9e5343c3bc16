"""Factors of several steps loaded at once, in vectors as wide as the machine's.

tests/runtime/test_emulated_products.py has the numbers.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks.assembly import inner_loops
from nanoloom.schedule.lane_factors import is_wide_room, wide_lane_factors
from nanoloom.target import by_name
from tests.vector.kernel_harness import program_of, stage_text


def largest_loop(rows: int, name: str, kind: str = "float32") -> list[str]:
    """Of a product with a weight of 66 x 384, the inner loop with most products."""
    right = np.zeros((66, 384), kind)
    program = program_of(
        lambda b, x: b.einsum("mk,kn->mn", x, b.constant(right)), ((rows, 66), kind)
    )
    loops = inner_loops(stage_text(program, "asm", by_name(name)))
    return max(loops, key=lambda loop: sum("fmla" in line for line in loop))


def test_where_lanes_multiply() -> None:
    for name in ("armv9-sve2", "neoverse-v1"):
        assert wide_lane_factors(by_name(name)) == 4
    for name in ("aarch64", "cortex-a76", "rv64gcv", "x86-64-v4"):
        assert wide_lane_factors(by_name(name)) == 0
    target = by_name("armv9-sve2")
    assert is_wide_room(6, 4, target)
    assert not is_wide_room(8, 3, target)  # 24 sums, 8 rows, a column
    assert not is_wide_room(9, 2, target)  # FMLA takes z0 to z7
    assert not is_wide_room(4, 3, target)


@pytest.mark.drawn
@pytest.mark.parametrize("rows", [5, 96])
@pytest.mark.parametrize("name", ["armv9-sve2", "neoverse-v1"])
def test_every_lane_multiplies_as_often(rows: int, name: str) -> None:
    """And no number is loaded alone, no register is spilled."""
    loop = largest_loop(rows, name)
    products = [line for line in loop if line.startswith("fmla")]
    lanes = [re.search(r"\.s\[(\d)\]$", line) for line in products]
    found = [int(lane[1]) for lane in lanes if lane]
    assert len(found) == len(products) > 0
    assert {found.count(lane) for lane in range(4)} == {len(found) // 4}
    assert not any(line.startswith(("ld1rw", "str", "st1")) for line in loop)
    # NEON's has 128 instructions for 96 products of the same tile.
    assert rows < 96 or len(loop) <= 133


def test_doubles_are_loaded_one_by_one() -> None:
    loop = largest_loop(96, "armv9-sve2", "float64")
    assert any(line.startswith("ld1rd") for line in loop)
