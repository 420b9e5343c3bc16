"""Floats that are made of bytes in memory are made where they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.nest.nest import Role
from tests.linalg.bounds import sample
from tests.vector.checks import check
from tests.vector.kernel_harness import program_of, run

BYTES, FLOATS = np.dtype(np.uint8), np.dtype(np.float32)
SHAPE = (7, 33)
INT32 = np.dtype(np.int32)
W = sample(1, (33, 33), "int8", -128, 127)
ADDED = sample(2, SHAPE[::-1], "float32")


def floats(b: Any, q: Any, scale: float = 0.25) -> Any:
    return b.elementwise(lambda s: s.cast(FLOATS) * scale, q, dtype=FLOATS)


def stored(b: Any, x: Any) -> Any:
    """Bytes that a product reads, too: a kernel's result."""
    return b.elementwise(lambda s: (s * 4).cast(BYTES), x, dtype=BYTES)


def both(b: Any, q: Any) -> Any:
    """The product of some bytes, and the square of what they stand for."""
    x = floats(b, q)
    made = b.einsum("mk,kn->mn", q, b.constant(W), dtype=INT32)
    return b.elementwise(lambda s, t: s.cast(FLOATS) + t * t, made, x, dtype=FLOATS)


def squared(b: Any, q: Any) -> Any:
    """One operation reads the floats twice, another one the bytes."""
    x = floats(b, q)
    first = b.elementwise(lambda s, t: s * t, x, x)
    return first, b.elementwise(lambda s: s ^ 255, q, dtype=BYTES)


def summed(b: Any, q: Any) -> Any:
    """A sum reads each number once as well, but is no elementwise operation."""
    total = b.reduce(lambda s, t: s + t, floats(b, q), [0], 0, keepdims=False)
    return total, b.elementwise(lambda s: s ^ 255, q, dtype=BYTES)


def turned(b: Any, q: Any) -> Any:
    x = b.transpose(floats(b, q), [1, 0])
    added = b.elementwise(lambda s, t: s + t, x, b.constant(ADDED))
    return added, b.elementwise(lambda s: s ^ 255, q, dtype=BYTES)


def test_a_residual_block_reads_bytes() -> None:
    program = program_of(both, (SHAPE, "uint8"))
    (kernel,) = program.kernels.values()
    read = {x.element for x in kernel.nest.buffers if x.role is Role.INPUT}
    assert len(program.calls) == 1 and read == {"i8"}
    q = sample(3, SHAPE, "uint8", 0, 255)
    wide = q.astype(np.float64)
    exact = wide @ W.astype(np.float64) + (wide / 4) ** 2
    assert (run(both, q) == exact).all() and (exact != 0).any()  # below 2^24


@pytest.mark.parametrize("make", [squared, turned, summed])
def test_numbers(make: Any) -> None:
    q = sample(3, SHAPE, "uint8", 0, 255)
    first, other = run(make, q)
    x = q.astype(np.float64) / 4
    added = x.T + ADDED
    exact = {squared: x * x, summed: x.sum(0), turned: added}[make]
    check(first, exact, 9, abs(exact) + 1)
    assert (other == q ^ 255).all()


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [("bool", "float32"), ("int8", "int32"), ("int32", "int64"),
     ("float32", "float64"), ("float16", "float32")],
)  # fmt: skip
def test_numbers_of_any_types_that_widen(narrow: str, wide: str) -> None:
    """The kernels read what is narrow; none makes the wide ones for another."""

    def make(b: Any, q: Any, a: Any) -> Any:
        x = b.cast(q, np.dtype(wide))
        made = b.einsum("mk,kn->mn", a, b.constant(weight))
        return b.elementwise(lambda s, t: s + t, made, x)

    q, a = sample(3, SHAPE, narrow, -9, 9), sample(4, SHAPE, "int8", -9, 9)
    weight, a = W.astype(wide), a.astype(wide)
    exact = a.astype(np.int64) @ W.astype(np.int64) + q.astype(wide)
    assert np.allclose(run(make, q, a), exact, rtol=1e-6) and q.any()
    program = program_of(make, (SHAPE, narrow), (SHAPE, wide))
    assert len(program.calls) == 1, "nothing wide is made for it"


def test_what_nothing_else_reads_stays() -> None:
    """It is in registers as it is: one kernel from bytes to bytes."""

    def make(b: Any, q: Any) -> Any:
        return stored(b, b.elementwise(lambda s, t: s + t, floats(b, q), floats(b, q)))

    assert len(program_of(make, (SHAPE, "uint8")).calls) == 1


def test_two_products_meet_in_bytes() -> None:
    """What only the other product's kernel reads leaves the first one's in bytes."""

    def quantized(b: Any, q: Any) -> Any:
        made = b.einsum("mk,kn->mn", q, b.constant(W), dtype=INT32)
        return b.elementwise(lambda s: (s & 255).cast(BYTES), made, dtype=BYTES)

    def make(b: Any, q: Any, r: Any) -> Any:
        first, other = (floats(b, quantized(b, x)) for x in (q, r))
        return b.elementwise(lambda s, t: s + t, first, other)

    program = program_of(make, (SHAPE, "uint8"), (SHAPE, "uint8"))
    assert len(program.calls) == 2
    assert program.buffers == (SHAPE[0] * SHAPE[1],)
    q, r = (sample(n, SHAPE, "uint8", 0, 255) for n in (3, 4))
    whole = [(x.astype(np.int32) @ W.astype(np.int32)) & 255 for x in (q, r)]
    assert (run(make, q, r) == (whole[0] + whole[1]) / np.float32(4)).all()
