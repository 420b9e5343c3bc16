"""PowerPC: what docs/add-a-target.md added, in instructions.

tests/runtime/test_emulated_kinds.py has the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.target import by_name
from tests.vector.assembly import count, loop_with
from tests.vector.kernel_harness import program_of, stage_text

M, K, N = 127, 333, 517


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        # Halves of a register are loaded in the other order, and turned around.
        ("powerpc64le", {"lxvd2x", "xxswapd", "lfiwzx", "xxspltw"}),
        ("power9", {"lxv", "lxvwsx"}),
        ("power10", {"lxv", "lxvwsx"}),
    ],
)
def test_a_product_is_loads_and_multiply_adds(name: str, allowed: set[str]) -> None:
    weight = np.zeros((K, N), np.float32)

    def make(b: Any, x: Any) -> Any:
        return b.einsum("mk,kn->mn", x, b.constant(weight), dtype=np.dtype("f4"))

    product = program_of(make, ((M, K), "float32"))
    loop = loop_with(stage_text(product, "asm", by_name(name)), "xvmaddasp")
    found = {line.split()[0] for line in loop}
    addresses = {"add", "addi", "sldi", "li", "cmpldi", "isellt", "bdnz", "dcbt"}
    assert found <= {"xvmaddasp", *allowed, *addresses}
    products = count(loop, "xvmaddasp")
    assert products >= 40 and products >= 0.5 * len(loop)
    assert not [x for x in loop if "(1)" in x or x.split(", ")[1:2] == ["1"]]
