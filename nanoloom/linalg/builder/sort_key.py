"""Unsigned numbers that are in the order of the elements that they stand for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nanoloom.linalg.builder.scalar import (
    Number,
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


def key(
    x: Scalar,
    largest: bool,
    kind: np.dtype,
    number: Callable[[Number, np.dtype], Scalar] = constant,
) -> Scalar:
    """A number that is smaller where x comes earlier; NaN is above every number.

    The bits of a float, with those of negative ones turned around, order like it.
    number: makes a constant; of lanes where x has several, which need no wider type.
    """
    signed = np.dtype(f"i{kind.itemsize}")
    if is_float(x.dtype):
        plain = x + number(0.0, x.dtype)  # -0 to +0
        bits = select(x.is_nan(), number(np.nan, x.dtype), plain).bitcast(signed)
        turned = bits ^ number(int(np.iinfo(signed).max), signed)
        bits = select(bits < number(0, signed), turned, bits)
    else:
        bits = x.cast(kind if is_unsigned(x.dtype) else signed)
    if not is_unsigned(bits.dtype):
        bits = bits.cast(kind) ^ number(1 << (8 * kind.itemsize - 1), kind)
    return bits ^ number(-1, kind) if largest else bits
