"""Inverses and products with tables of four bits, against ONNX Runtime and float64."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.frontend.microsoft.codebooks import TABLES
from tests.frontend.microsoft.single import both, check, floats

R = np.random.default_rng(9)


@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (3, 5, 5), (2, 2, 13, 13)])
def test_inverse(shape: tuple[int, ...]) -> None:
    """Large elements lie off the diagonal, so that rows change places."""
    x = floats(R, *shape)
    x += 4 * shape[-1] ** 0.5 * np.eye(shape[-1], dtype=np.float32)[::-1]
    (ours,), (theirs,) = both("Inverse", [x])
    exact = np.linalg.inv(x.astype(np.float64))
    norm = np.linalg.cond(x.astype(np.float64)).max()
    check((ours, theirs), exact, 8 * shape[-1] * norm, abs(exact).max())


@pytest.mark.parametrize("kind", [0, 1])
def test_tables_of_four_bits(kind: int) -> None:
    depth, rows = (int(n) for n in R.integers(5, 40, 2))
    count, block = depth * rows, 16
    packed = R.integers(0, 256, (count + 1) // 2).astype(np.uint8)
    largest = R.random(-(-count // block)).astype(np.float32)
    x = floats(R, 2, 3, depth)
    (ours,), (theirs,) = both(
        "MatMulBnb4", [x, packed, largest], constants=(1, 2), K=depth, N=rows,
        quant_type=kind, block_size=block,
    )  # fmt: skip
    places = np.stack([packed >> 4, packed & 15], -1).reshape(-1)[:count]
    flat = TABLES[kind][places].astype(np.float64) * np.repeat(largest, block)[:count]
    weight = flat.reshape(rows, depth)
    exact = x @ weight.T
    size = abs(x).astype(np.float64) @ abs(weight.T)
    check((ours, theirs), exact, depth + 4, size)


def test_integers_of_16_bits() -> None:
    a, w = (R.integers(-30000, 30000, s).astype(np.int16) for s in ((3, 5), (5, 4)))
    (ours,), (theirs,) = both("MatMulInteger16", [a, w // 8])
    assert ours.dtype == theirs.dtype
    assert (ours == theirs).all()
    assert (ours == a.astype(np.int64) @ (w // 8)).all()
