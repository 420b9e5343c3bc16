"""Two results of one model: how far apart they are, and whether that is rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nanoloom.inspect.rounding import FACTOR

Array = np.ndarray[Any, np.dtype[Any]]
TEXTS = "OUST"  # kinds of arrays of strings
SIGNED = {2: np.int16, 4: np.int32, 8: np.int64}


@dataclass(frozen=True)
class Difference:
    """One value compared.

    absolute, relative, ulp: the largest, over finite elements.  differing: how many
    elements are not equal.  bound: what rounding explains, of `absolute` for floats,
    of `differing` for integers.  reason: why it failed, "" if it passed.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    absolute: float
    relative: float
    ulp: int
    differing: int
    bound: float
    reason: str = ""
    proves: bool = True  # False: zeros would have passed, too

    @property
    def passed(self) -> bool:
        return not self.reason


def compare(
    name: str, got: Array, wanted: Array, disturbed: Sequence[Array]
) -> Difference:
    """got: ours.  wanted: the reference's.  disturbed: the same with errors added."""
    if got.dtype.kind in TEXTS and wanted.dtype.kind in TEXTS:
        return compare_texts(name, got, wanted, disturbed)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        there = f"{wanted.dtype.name} {list(wanted.shape)}"
        reason = f"is {got.dtype.name} {list(got.shape)} and should be {there}"
        return Difference(name, got.dtype.name, got.shape, 0, 0, 0, 0, 0, reason)
    if got.dtype.kind in "iub":
        return compare_integers(name, got, wanted, disturbed)
    return compare_floats(name, got, wanted, disturbed)


def compare_texts(
    name: str, got: Array, wanted: Array, disturbed: Sequence[Array]
) -> Difference:
    """Each string is the other's, but where rounding changes the reference's, too."""
    ours, theirs = got.astype(object), wanted.astype(object)
    if got.shape != wanted.shape:
        reason = f"is string {list(got.shape)} and should be {list(wanted.shape)}"
        return Difference(name, "string", got.shape, 0, 0, 0, 0, 0, reason)
    counts = [int((other.astype(object) != theirs).sum()) for other in disturbed]
    bound = FACTOR * max(counts, default=0)
    differing = int((ours != theirs).sum())
    reason = f"{differing} of {got.size} strings differ" if differing > bound else ""
    proves = bound < max(1, got.size)
    return Difference(
        name, "string", got.shape, 0, 0, 0, differing, bound, reason, proves
    )


def compare_integers(
    name: str, got: Array, wanted: Array, disturbed: Sequence[Array]
) -> Difference:
    """Exact, except where rounding errors before them change the reference's, too."""
    counts = [int((other != wanted).sum()) for other in disturbed]
    bound = FACTOR * max(counts, default=0)
    differing = int((got != wanted).sum())
    gap = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
    reason = ""
    if differing > bound:
        reason = f"{differing} of {got.size} integers differ"
    largest = float(gap.max(initial=0))
    size = np.abs(wanted.astype(np.float64))
    relative = float((gap / np.where(size > 0, size, 1)).max(initial=0))
    proves = bound < max(1, np.count_nonzero(wanted))
    found = (largest, relative, int(largest), differing, bound, reason, bool(proves))
    return Difference(name, got.dtype.name, got.shape, *found)


def compare_floats(
    name: str, got: Array, wanted: Array, disturbed: Sequence[Array]
) -> Difference:
    ours, theirs = got.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(ours) & np.isfinite(theirs)
    with np.errstate(invalid="ignore"):  # infinity less infinity, not looked at
        gap = np.where(finite, np.abs(ours - theirs), 0.0)
    size = np.where(finite, np.abs(theirs), 0.0)
    bound = FACTOR * max((spread(theirs, other) for other in disturbed), default=0.0)
    absolute = float(gap.max(initial=0))
    relative = float((gap / np.where(size > 0, size, 1)).max(initial=0))
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    odd = int((~finite & ~same).sum())
    reason = ""
    if odd:
        reason = f"{odd} of {got.size} elements are infinite or NaN in one of the two"
    elif not np.isfinite(bound):
        reason = (
            "" if same.all() else "rounding errors alone make the reference overflow"
        )
    elif absolute > bound:
        reason = f"{int((gap > bound).sum())} of {got.size} elements differ by more"
    distance = int(ulps(got, wanted)[finite].max(initial=0))
    proves = bool(bound < size.max(initial=0)) or not size.any()
    found = (absolute, relative, distance, int((~same).sum()), bound, reason, proves)
    return Difference(name, got.dtype.name, got.shape, *found)


def spread(exact: Array, disturbed: Array) -> float:
    """The largest change, over elements that are finite in the first."""
    finite = np.isfinite(exact)
    change = np.abs(disturbed.astype(np.float64)[finite] - exact[finite])
    return float(np.nan_to_num(change, nan=np.inf).max(initial=0))


def ulps(one: Array, other: Array) -> Array:
    """How many floats lie between two, element by element (NaN: meaningless)."""
    kind = SIGNED[one.dtype.itemsize]  # in a row: NumPy makes other things of a scalar
    rows = (ordered(each.reshape(-1).view(kind)) for each in (one, other))
    return np.abs(np.subtract(*rows)).reshape(one.shape)


def ordered(bits: Array) -> Array:
    """Sign and magnitude as a number that counts floats from minus infinity on."""
    wide = bits.astype(object if bits.dtype.itemsize == 8 else np.int64)
    lowest = -(1 << (8 * bits.dtype.itemsize - 1))
    return np.where(bits < 0, lowest - wide, wide)
