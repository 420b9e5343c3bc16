"""Numbers of a row that are loaded at once: by lanes, where there are registers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nanoloom.schedule.lane_factors import is_room, lane_factors, swaps_for_room
from nanoloom.schedule.register_tile import RegisterTile
from nanoloom.target import by_name
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.kernel_harness import program_of, stage_text


def assembly(equation: str, shape: tuple[int, int], target: str, kind: str) -> str:
    """Of a product with a weight of 64 x 48, and its schedule behind it."""
    right = np.zeros((64, 48), kind)
    program = program_of(
        lambda b, x: b.einsum(equation, x, b.constant(right)), (shape, kind)
    )
    stages = (stage_text(program, x, by_name(target)) for x in ("asm", "schedule"))
    return "".join(stages)


def test_registers_whose_lanes_multiply() -> None:
    for name, lanes in (("aarch64", 4), ("neoverse-v2", 4), ("apple-m1", 4)):
        assert lane_factors(by_name(name), 32) == lanes
    assert lane_factors(by_name("aarch64"), 64) == 2
    for name in ("neoverse-v1", "aarch64+sve", "riscv64+v", "sapphirerapids"):
        assert lane_factors(by_name(name), 32) == 0


def test_room_for_a_register_of_each_row() -> None:
    """Six rows by four: 24 sums, six rows and one column are 31 registers."""
    assert not is_room(6, 4, 32, swapped=False)
    assert is_room(6, 4, 32, swapped=True) and is_room(4, 4, 32, swapped=False)
    assert swaps_for_room(RegisterTile(6, 4, 1.0), by_name("aarch64"))
    assert not swaps_for_room(RegisterTile(4, 4, 1.0), by_name("aarch64"))
    assert not swaps_for_room(RegisterTile(7, 4, 1.0), by_name("aarch64"))


@pytest.mark.drawn
@pytest.mark.parametrize("rows", [1, 4, 6, 96])
@pytest.mark.parametrize("target", ["aarch64", "neoverse-v2"])
@pytest.mark.parametrize(("kind", "lanes"), [("float32", 4), ("float64", 2)])
def test_a_load_for_all_steps_of_a_register(
    rows: int, target: str, kind: str, lanes: int
) -> None:
    """Every lane multiplies as often as the others, and no number is loaded alone."""
    text = assembly("mk,kn->mn", (rows, 64), target, kind)
    loop = loop_with(text, "fmla")
    used = [re.search(r"v\d+\.[sd]\[(\d)\]$", x) for x in loop if x.startswith("fmla")]
    numbers = [int(x[1]) for x in used if x]
    assert len(numbers) == len(used)
    assert {numbers.count(n) for n in range(lanes)} == {len(numbers) // lanes}
    assert not count(loop, "ld1r") and not [x for x in loop if re.match(r"ldu?r\ts", x)]
    assert touches_stack(loop) == []


def test_numbers_that_lie_apart_are_loaded_one_by_one() -> None:
    loop = loop_with(assembly("km,kn->mn", (64, 96), "aarch64", "float32"), "fmla")
    assert count(loop, "fmla") and not [x for x in loop if x.endswith("s[3]")]
