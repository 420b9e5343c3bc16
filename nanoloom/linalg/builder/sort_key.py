"""Unsigned numbers that are in the order of the elements that they stand for."""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.scalar import (
    Scalar,
    constant,
    is_float,
    is_unsigned,
    select,
)

UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)


def key_type(dtype: np.dtype) -> np.dtype:
    """Of the keys that stand for elements of this type."""
    return UINT64 if dtype.itemsize == 8 else UINT32


def key(x: Scalar, largest: bool, kind: np.dtype) -> Scalar:
    """A number that is smaller where x comes earlier; NaN is above every number.

    The bits of a float, with those of negative ones turned around, order like it.
    """
    signed = np.dtype(f"i{kind.itemsize}")
    if is_float(x.dtype):
        number = select(x.is_nan(), constant(np.nan, x.dtype), x + 0.0)  # -0 to +0
        bits = number.bitcast(signed)
        bits = select(bits < 0, bits ^ int(np.iinfo(signed).max), bits)
    else:
        bits = x.cast(kind if is_unsigned(x.dtype) else signed)
    if not is_unsigned(bits.dtype):
        bits = bits.cast(kind) ^ (1 << (8 * kind.itemsize - 1))
    return ~bits if largest else bits
