"""Words that are said of what a nanokernel makes itself, or of panels, are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.language import (
    CopyOperand,
    Directive,
    Hoist,
    Nanokernel,
    Pack,
    Pad,
    Prefetch,
    Reorder,
    Schedule,
    Tile,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from tests.nest.nests import matmul

LANES = Lanes(16)
KERNEL = Nanokernel(6, 2, LANES, False)
PACKED = Pack(1, (), 1, (0,), 32)
OWN = "product is a nanokernel, with vectors and copies of its own"
TILE = "a nanokernel has a register tile of its own"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((KERNEL, Vectorize("product", "j", LANES)), OWN),
        (
            (replace(KERNEL, pin_order=False, unfused_mul_add=True),),
            "pin_order=True is missing",
        ),
        ((KERNEL, UnrollAndJam("product", "i", 2)), OWN),
        ((KERNEL, Unroll("product", "k", 2)), OWN),
        ((KERNEL, CopyOperand("product", 1)), OWN),
        ((KERNEL, Hoist("product", 1, "i")), OWN),
        ((Vectorize("product", "j", LANES), KERNEL), TILE),
        ((UnrollAndJam("product", "i", 2), KERNEL), TILE),
        ((Unroll("product", "k", 2), KERNEL), TILE),
        ((KERNEL, Reorder("product", ("j", "i"))), OWN),
        ((Reorder("product", ("j", "i")), KERNEL), "an order of its own"),
        ((CopyOperand("product", 1), KERNEL), "reads a copy of its operand 1"),
        ((Pad("product", "j", 16), KERNEL), "reads a copy of its operand 1"),
        (
            (PACKED, CopyOperand("product", 1)),
            "w comes in panels, made while compiling",
        ),
        ((PACKED, Hoist("product", 1, "i")), "w comes in panels, made while compiling"),
        ((PACKED, Prefetch(1, 0, 8, level=4)), "level is 4: caches 1 to 3 are known"),
        ((CopyOperand("product", 1), PACKED), "product reads a copy of w"),
    ],
)
def test_what_is_refused(words: tuple[Directive, ...], said: str) -> None:
    """By the word that is too much."""
    with pytest.raises(Error) as found:
        Schedule(words).to_transform(matmul())
    assert str(found.value).startswith(str(words[-1]))
    assert said in str(found.value)


def test_loops_around_a_nanokernel_are_anyones() -> None:
    words = Tile("product", (6, 32, 0)), Unroll("product", "io"), KERNEL
    assert "loop.unroll" in Schedule(words).to_transform(matmul())
    words = Tile("product", (6, 32, 0)), KERNEL, Unroll("product", "io")
    assert "loop.unroll" in Schedule(words).to_transform(matmul())
