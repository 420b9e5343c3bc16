"""Loops of control flow: components and innermost loops against plain reachability."""

from __future__ import annotations

import random

import pytest

from nanoloom.explain.assembly import (
    LINES,
    inner_loops,
    longest_loop,
    strong_components,
)

TEXT = """
f:
    xorl %eax, %eax
.L1:
    addq $1, %rax
.L2:
    vaddps\t%zmm0, %zmm1, %zmm2
    jb .L2
    vmulps %zmm0, %zmm1, %zmm2
    jb .L1
    retq
"""


def reached(flow: dict[int, set[int]], first: int) -> set[int]:
    found, waiting = {first}, [first]
    while waiting:
        new = flow[waiting.pop()] - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("seed", range(20))
def test_components_are_what_reaches_each_other(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randrange(1, 40)
    flow = {
        block: {draw.randrange(count) for _ in range(draw.randrange(3))}
        for block in range(count)
    }
    found = strong_components(flow)
    assert sorted(block for each in found for block in each) == [*range(count)]
    for component in found:
        first = min(component)
        there = reached(flow, first)
        assert component == {b for b in there if first in reached(flow, b)}


def test_the_innermost_loop_is_found() -> None:
    (loop,) = inner_loops(TEXT)
    assert [line.split()[0] for line in loop] == ["vaddps", "jb"]
    text, count = longest_loop(TEXT)
    assert count == 1 and text.startswith("vaddps  %zmm0"), "tabs are spaces"


def test_code_without_a_loop_is_shown_in_part() -> None:
    text, count = longest_loop("f:\n" + "  nop\n" * (LINES + 5) + "  retq\n")
    assert (count, len(text.splitlines())) == (0, LINES)
