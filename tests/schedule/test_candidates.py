"""What a schedule was chosen from is kept with it, each a schedule of its own."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Schedule
from nanoloom.target import by_name
from tests.linalg.bounds import sample, wide
from tests.nest.nests import matmul
from tests.vector.checks import check
from tests.vector.kernel_harness import program_of, run, targets

TARGET = by_name("x86-64-v3")


def test_the_cheapest_is_the_chosen_one() -> None:
    made = choose(matmul(), TARGET)
    costs = [candidate.cost for candidate in made.candidates]
    assert len(costs) > 2
    assert costs == sorted(costs)
    assert min(costs) >= 1
    assert made.candidates[0].directives == made.directives
    words = [candidate.directives for candidate in made.candidates]
    assert len(set(words)) == len(words)


def test_they_are_no_part_of_the_schedule() -> None:
    made = choose(matmul(), TARGET)
    bare = dataclasses.replace(made, candidates=())
    assert bare == made and hash(bare) == hash(made)
    assert "Candidate" not in repr(made)


def test_a_target_of_more_registers_has_larger_tiles() -> None:
    narrow = choose(matmul(512, 512, 512), TARGET).candidates
    wide_ones = choose(matmul(512, 512, 512), by_name("x86-64-v4")).candidates
    assert narrow[0].directives != wide_ones[0].directives


@pytest.mark.parametrize("number", range(3))
def test_each_is_a_schedule(number: int) -> None:
    """The numbers are those of the first, up to how sums are rounded."""
    target = targets()[-1]
    w = sample(1, (29, 50), "float32")

    def make(b: Any, x: Any) -> Any:
        return b.einsum("mk,kn->mn", x, b.constant(w))

    x = sample(2, (37, 29), "float32")
    (kernel,) = program_of(make, x).kernels.values()
    other = choose(kernel.nest, target).candidates[number]
    got = run(make, x, target=target, script=Schedule(other.directives))
    check(got, wide(x) @ wide(w), 30, np.abs(wide(x)) @ np.abs(wide(w)))
