"""Remainders of f32 are exact, whatever the quotient."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nanoloom.ir.mlir import context
from nanoloom.vector.math.expand import expand_math
from nanoloom.vector.math.remainder import remf
from tests.linalg.single import run_node
from tests.vector.math_harness import Compiled, lanes_module
from tests.vector.test_math_power import PAIRS

Array = npt.NDArray[Any]


def drawn() -> tuple[Array, Array]:
    """Quotients of every size, those next to integers and of denormals among them."""
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**32, (2, 2**16), dtype=np.uint64).astype(np.uint32)
    near = rng.normal(size=2**16).astype(np.float32)
    factor = rng.integers(1, 2**24, 2**16) * np.float32(0.5)
    products = (near.astype(np.float64) * factor).astype(np.float32)
    moved = np.nextafter(products, np.float32(np.inf))
    rows = [bits.view(np.float32), [products, near], [moved, near], PAIRS.T]
    x, y = (np.concatenate([np.asarray(r[i]) for r in rows]) for i in range(2))
    room = -len(x) % 16
    return np.pad(x, (0, room)), np.pad(y, (0, room))


def same(got: Array, wanted: Array) -> bool:
    """Bit by bit, but for the kind of NaN."""
    nan = np.isnan(wanted)
    bits = got.view(np.uint32) == wanted.view(np.uint32)
    return bool((np.isnan(got) == nan).all() and bits[~nan].all())


@pytest.mark.parametrize("kind", ["16xf32", "f32"])
def test_any_quotient(kind: str) -> None:
    x, y = drawn()
    with np.errstate(all="ignore"):
        wanted = np.fmod(x, y)
    assert same(Compiled.build(kind, 2, remf)(x, y), wanted)
    assert not same(x, wanted)


def test_short_floats_are_rounded_once() -> None:
    """Every f16 over a few of them."""
    bits = np.arange(2**16, dtype=np.uint16).view(np.float16)
    x = np.where(np.isnan(bits), np.float16(1), bits)
    with context():
        module = lanes_module("16xf16", 2, "arith.remf")
        expand_math(module)
        compiled = Compiled(module)
    for divisor in (0.1, 6e-8, 3, -255.5):
        y = np.full_like(x, divisor)
        with np.errstate(invalid="ignore"):
            wanted = np.fmod(x.astype(np.float32), y.astype(np.float32))
        got = compiled(x, y).astype(np.float32)
        np.testing.assert_array_equal(got, wanted.astype(np.float16))


@pytest.mark.parametrize("extent", [5, 37])
def test_what_is_behind_a_row_decides_nothing(extent: int) -> None:
    x = np.linspace(-1e30, 1e30, 3 * extent, dtype=np.float32).reshape(3, extent)
    y = np.linspace(1e-30, 9, extent, dtype=np.float32)
    (got,) = run_node("Mod", [x, y], version=13, fmod=1)
    assert same(got, np.fmod(x, y))
