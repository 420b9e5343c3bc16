"""Error bounds from arithmetic, and inputs that divide nothing."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

EPS = {
    np.dtype(np.float16): 2.0**-11,
    np.dtype(ml_dtypes.bfloat16): 2.0**-8,
    np.dtype(np.float32): 2.0**-24,
    np.dtype(np.float64): 2.0**-53,
}  # half a unit in the last place of 1
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
SHAPES: Sequence[tuple[int, ...]] = (
    (), (7,), (1, 5), (3, 1, 7), (2, 3, 5, 3), (1, 2, 3, 1, 5), (0, 3),
)  # fmt: skip
shapes = st.sampled_from(SHAPES)


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def rounding(dtype: np.dtype) -> float:
    """The relative error of one rounding to this type."""
    return EPS[dtype]


def inner_rounding(dtype: np.dtype) -> float:
    """The same for the type that a body computes in."""
    return EPS[np.dtype(np.float64 if dtype == np.float64 else np.float32)]


def within(
    got: np.ndarray,
    exact: np.ndarray,
    steps: float,
    magnitude: np.ndarray | float | None = None,
) -> bool:
    """|got - exact| <= one rounding of the result + `steps` roundings of the body.

    magnitude: what the body's roundings are relative to (default: the result).  Equal
    infinities and NaN in the same places pass; the smallest normal number is a floor.
    """
    one, other = got.astype(np.float64), np.asarray(exact, np.float64)
    size = abs(other) if magnitude is None else magnitude
    with np.errstate(all="ignore"):
        bound = rounding(got.dtype) * abs(other) + steps * inner_rounding(
            got.dtype
        ) * np.asarray(size, np.float64)
        bound = bound + float(ml_dtypes.finfo(got.dtype).tiny)
        good = abs(one - other) <= bound
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return got.shape == np.shape(exact) and bool((good | same).all())


def sample(
    seed: int, shape: tuple[int, ...], name: str, low: float = -4, high: float = 4
) -> np.ndarray:
    """Seeded numbers of one type, between two limits."""
    r = np.random.default_rng(seed)
    dtype = dtype_of(name)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return r.integers(
            max(int(low), limits.min), min(int(high), limits.max), shape, dtype, True
        )
    if dtype == np.bool_:
        return r.integers(0, 2, shape).astype(dtype)
    return np.asarray(r.uniform(low, high, shape)).astype(dtype)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)
