"""Conditions that become the bits of bytes: the numbers, one instruction for them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.products.binary_products import COMPARISONS, pack
from nanoloom.target import by_name
from tests.linalg.bounds import sample
from tests.vector.assembly import count
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, program_of, run, stage_text, targets

HOLDS = {
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}


def packing(compare: str, than: float, axis: int, early: int = 0) -> Any:
    """A Pack node's lowering."""
    words = [
        ir.AttrInt64("axis", axis),
        ir.AttrString("compare", compare),
        ir.AttrFloat32("than", than),
        ir.AttrInt64("early", early),
    ]

    def make(b: Any, x: Any) -> Any:
        given = {word.name: word for word in words}
        dtypes = (np.dtype(np.uint8),)
        nothing: Any = None
        node = Node(
            "Pack", "p", 1, (x,), ((),), dtypes, (True,), given, nothing, nothing
        )
        return pack(b, node)

    return make


# Every comparison of whole groups, and of a row with a rest; one of each other shape.
CASES = [
    *product([(3, 5, 64), (7, 13)], COMPARISONS),
    *zip([(2, 1, 8), (1, 3), (40, 100)], COMPARISONS, strict=False),
]


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize(("shape", "compare"), CASES, ids=str)
@pytest.mark.parametrize("early", [0, 1])
def test_bits(compare: str, shape: tuple[int, ...], target: Any, early: int) -> None:
    x = sample(3, shape, "float32", -1, 1)
    x.reshape(-1)[::3] = 0.25
    x.reshape(-1)[::7] = np.nan
    holds = HOLDS[compare](x, np.float32(0.25))
    made = packing(compare, 0.25, -1, early)
    got = run(made, x, target=target, order=backwards)
    check(got, np.packbits(holds, axis=-1, bitorder="little"), 0)
    assert holds.any() and not holds.all()


def test_bits_along_another_axis() -> None:
    x = sample(4, (2, 11, 5), "float32", -1, 1)
    got = run(packing("Greater", 0, 1), x, target=targets()[0], order=backwards)
    check(got, np.packbits(x > 0, axis=1, bitorder="little"), 0)


@pytest.mark.parametrize(
    ("name", "word", "least"),
    [("x86-64-v3", "vpmovmskb", 1), ("znver5", "kmov", 1), ("aarch64", "addv", 1)],
)
def test_eight_conditions_are_a_byte_at_once(name: str, word: str, least: int) -> None:
    made = packing("GreaterOrEqual", 0, -1)
    program = program_of(made, ((16, 64), "float32"))
    text = stage_text(program, "binary", by_name(name))
    assert count(text.splitlines(), word) >= least
    shifts = sum(count(text.splitlines(), x) for x in ("vpsllv", "ushl", "vpsllw"))
    assert not shifts
