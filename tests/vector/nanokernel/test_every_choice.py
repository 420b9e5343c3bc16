"""Every target has a schedule for products of all numbers and sizes, packed or not.

A nanokernel; loops of words where vectors are as wide as the machine's.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from nanoloom.compiler import job_of
from nanoloom.kernels.program import Kernel
from nanoloom.options import CompileOptions
from nanoloom.target import TARGETS
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import program_of

KINDS = {
    "float32": "float32",
    "float64": "float64",
    "float16": "float32",
    "bfloat16": "float32",
    "uint8": "int32",
    "int8": "int32",
}
ROWS = 1, 17, 48, 400  # one; fewer and as many as copies are worth it for
COLUMNS = 3, 17, 100  # less than a vector, than two, and a rest
SUMS = 4  # registers of them that are added to at once, where there are so many
HALVES = "float16", "bfloat16"  # widened between the sums of a single row


@cache
def kernel_of(kind: str, packed: bool, m: int, n: int) -> Kernel:
    """The kernel of x[m, 35] @ w[35, n]; packed: w is a parameter."""
    right = sample(n, (35, n), "int8" if kind == "uint8" else kind)

    def make(b: Any, x: Any, *w: Any) -> Any:
        weight = w[0] if w else b.constant(right)
        return b.einsum("mk,kn->mn", x, weight, dtype=np.dtype(KINDS[kind]))

    given = ((m, 35), kind), *(() if packed else (((35, n), right.dtype.name),))
    (kernel,) = program_of(make, *given).kernels.values()
    return kernel


def registers_of_sums(script: str, lanes: int) -> int:
    """Registers of any width that loops of words keep sums in; 0: of no such width.

    lanes: of a register with the least width that there is.
    """
    words = re.findall(
        r'"nanoloom\.(\w+)"\(%product\w*(?:, %[a-z]+(\d+))?\) {(.*)}', script
    )
    found = 0
    for word, width, text in words:
        fields = {name: int(x) for name, x in re.findall(r"(\w+) = (\d+)", text)}
        if word == "vectorize" and fields["scalable"]:
            found = int(width) // lanes
        if word == "unroll_and_jam":
            found *= fields["count"]
    return found


def wrong_choices(kind: str, packed: bool, any_width: bool) -> list[str]:
    """Of all targets whose vectors are as wide as the machine, or of all others."""
    found: list[str] = []
    for m, n in product(ROWS, COLUMNS):
        kernel = kernel_of(kind, packed, m, n)
        for target in TARGETS:
            floats, unit = kind in ("float32", "float64"), target.vector
            wide = unit.vscale_max > 1 if floats else unit.any_length
            if wide != any_width:
                continue
            text = job_of(kernel, CompileOptions(target)).script
            tile = '"nanoloom.nanokernel"' in text
            right = tile
            if wide:
                bits = 8 * np.dtype(KINDS[kind]).itemsize
                registers = registers_of_sums(text, unit.bits // bits)
                most = m * -(-n * bits // unit.min_bits)
                # As loads of a single row's weights can be what takes longest.
                waits = unit.load_per_cycle < unit.fma_per_cycle
                beside = m == 1 and (kind in HALVES or waits)
                right = not tile and registers >= min(most, SUMS >> beside)
            if not right or (not packed and '"nanoloom.pack"' in text):
                found.append(f"{target.name}: {m} x {n}")
    return found


@pytest.mark.drawn
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_nanokernel(kind: str, packed: bool) -> None:
    assert wrong_choices(kind, packed, any_width=False) == []


@pytest.mark.drawn
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_of_any_width(kind: str, packed: bool) -> None:
    assert wrong_choices(kind, packed, any_width=True) == []


def test_other_scripts_are_not_taken_for_one() -> None:
    fields = "axis = 1 : i64, scalable = 1 : i64, chains = 1 : i64"
    vectors = f'"nanoloom.vectorize"(%product_6, %scalable8) {{{fields}}} : ()'
    jam = '"nanoloom.unroll_and_jam"(%product_9) {axis = 0 : i64, count = 6 : i64}'
    assert registers_of_sums(f"{vectors}\n{jam}", 2) == 24
    assert registers_of_sums(vectors, 2) == 4
    fixed = vectors.replace("scalable = 1", "scalable = 0")
    assert registers_of_sums(f"{fixed}\n{jam}", 2) == 0
    others = f"{vectors}\n{jam}".replace("%product", "%fill")
    assert registers_of_sums(others, 2) == 0
