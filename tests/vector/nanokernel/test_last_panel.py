"""A weight's last panel has only as many vectors as there are columns for."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nanoloom.schedule.register_tile import cost, ranked
from nanoloom.target import by_name
from tests.linalg.bounds import sample
from tests.vector.checks import check, contracted, passes
from tests.vector.kernel_harness import (
    Array,
    backwards,
    executable,
    program_of,
    stage_text,
    targets,
)

LAYER = "hwgc,gcf->hwgf"


def layer(columns: int) -> tuple[Any, Array, Array]:
    """Groups of 1x1 filters for 2 x 7 pixels."""
    x, w = sample(0, (2, 7, 3, 37), "float32"), sample(1, (3, 37, columns), "float32")
    return lambda b, image: b.einsum(LAYER, image, b.constant(w)), x, w


@pytest.mark.drawn
@pytest.mark.parametrize("columns", [112, 97, 80, 176])
@pytest.mark.parametrize("target", targets(), ids=str)
def test_numbers(columns: int, target: Any) -> None:
    make, x, w = layer(columns)
    (got,) = executable(program_of(make, x), target)(x, order=backwards)
    exact, magnitude, count = contracted(LAYER, x, w)
    check(got, exact, count, magnitude)
    assert not passes(got, np.roll(exact, 1), count, magnitude)


def test_a_branch_has_fewer_products() -> None:
    """112 columns are 7 vectors, which no panel divides."""
    make, x, _ = layer(112)
    text = stage_text(program_of(make, x), "vector", by_name("x86-64-v4"))
    either = text.index("scf.if")
    whole, rest = text[either:].split("} else {")[:2]
    products = [len(re.findall("vector.fma", part)) for part in (whole, rest)]
    assert products[0] > products[1] > 0


def test_whole_panels_have_one_way() -> None:
    make, x, _ = layer(128)
    assert "scf.if" not in stage_text(
        program_of(make, x), "vector", by_name("x86-64-v4")
    )


def test_what_a_tile_costs() -> None:
    """A single panel has all of its vectors."""
    unit = by_name("sapphirerapids").vector

    def saved(columns: int) -> float:
        whole = cost(7, 3, 7, columns, 16, unit)
        return cost(7, 3, 7, columns, 16, unit, ends=True) / whole

    assert saved(112) < 0.9
    assert saved(96) == saved(32) == 1
    best = ranked(7, 112, 32, unit, ends=True)[0]
    assert (best.rows, best.vectors) == (7, 3)
