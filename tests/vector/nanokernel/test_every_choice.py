"""Every target has a schedule for products of all numbers and sizes, packed or not."""

from __future__ import annotations

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


def kernel_of(kind: str, packed: bool, m: int, n: int) -> Kernel:
    """The kernel of x[m, 35] @ w[35, n]; packed: w is a parameter."""
    right = sample(n, (35, n), "int8" if kind == "uint8" else kind)

    def make(b: Any, x: Any, *w: Any) -> Any:
        weight = w[0] if w else b.constant(right)
        return b.einsum("mk,kn->mn", x, weight, dtype=np.dtype(KINDS[kind]))

    given = ((m, 35), kind), *(() if packed else (((35, n), right.dtype.name),))
    (kernel,) = program_of(make, *given).kernels.values()
    return kernel


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_schedule(kind: str, packed: bool) -> None:
    for m, n in product(ROWS, COLUMNS):
        kernel = kernel_of(kind, packed, m, n)
        for target in TARGETS:
            text = job_of(kernel, CompileOptions(target)).script
            assert '"nanoloom.nanokernel"' in text, (target.name, m, n)
            assert packed or '"nanoloom.pack"' not in text
