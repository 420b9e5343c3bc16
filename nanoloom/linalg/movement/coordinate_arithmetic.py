"""Functions of coordinates: arrays that are known now, or scalars inside a body.

What Resize reads has one formula for both (sampling.py).  Both are in float64 and
rounded alike, so a table that a program computes is the one that would be a constant.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from nanoloom.linalg.builder.scalar import Scalar, constant, select

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
# An array or a number, or a Scalar: no type says that operators take two of a kind.
Coordinate: TypeAlias = Any


def floor(x: Coordinate) -> Coordinate:
    return x.math("floor") if isinstance(x, Scalar) else np.floor(x)


def ceil(x: Coordinate) -> Coordinate:
    return x.math("ceil") if isinstance(x, Scalar) else np.ceil(x)


def absolute(x: Coordinate) -> Coordinate:
    return x.absolute() if isinstance(x, Scalar) else abs(x)


def equal(x: Coordinate, number: float) -> Coordinate:
    return x.equal(number) if isinstance(x, Scalar) else x == number


def where(condition: Coordinate, yes: Coordinate, no: Coordinate) -> Coordinate:
    """yes where the condition holds, else no; both are computed."""
    if isinstance(condition, Scalar):
        return select(condition, scalar(yes), scalar(no))
    if isinstance(yes, Scalar) or isinstance(no, Scalar):
        return scalar(yes if condition else no)
    return np.where(condition, yes, no)


def scalar(x: Coordinate) -> Scalar:
    """In a body."""
    return x if isinstance(x, Scalar) else constant(float(x), FLOAT64)


def in_f32(x: Coordinate) -> Coordinate:
    """Rounded to float32, as a float64."""
    if isinstance(x, Scalar):
        return x.cast(FLOAT32).cast(FLOAT64)
    return x.astype(np.float32).astype(np.float64)


def outside(x: Coordinate, last: Coordinate) -> Coordinate:
    """Where a coordinate lies in front of the first element or behind the last one."""
    return (x < 0.0) | (x > last)
