"""Input arrays that somebody could give by mistake, and some that only look odd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.oracle import Array

Rng = np.random.Generator
# An array made of another; and whether a program takes it (None: it may).
Made = tuple[object, bool | None]


def wrong_type(array: Array, rng: Rng) -> Made:
    names = ["float32", "float64", "int64", "int32", "uint8", "bool", "complex64",
             "object", "str", "datetime64[s]"]  # fmt: skip
    name = names[int(rng.integers(len(names)))]
    with np.errstate(all="ignore"):
        try:
            made = array.astype(name)
        except (TypeError, ValueError):
            return array, True
    return made, made.dtype == array.dtype


def wrong_rank(array: Array, rng: Rng) -> Made:
    return (array[None], False) if rng.random() < 0.5 else (array[..., None], False)


def wrong_size(array: Array, rng: Rng) -> Made:
    if not array.ndim:
        return array[None], False
    axis = int(rng.integers(array.ndim))
    return np.concatenate([array, array.take([0] if array.shape[axis] else [], axis)],
                          axis), None  # fmt: skip


def strided(array: Array, rng: Rng) -> Made:
    """The same numbers, two places apart."""
    made = np.repeat(array[..., None], 2, -1)[..., 0]
    return made, True


def turned(array: Array, rng: Rng) -> Made:
    """The same numbers, in Fortran's order."""
    return np.array(array, order="F"), True


def backwards(array: Array, rng: Rng) -> Made:
    """The same numbers, with steps that go back."""
    return np.flip(np.flip(array).copy()), True


def same_everywhere(array: Array, rng: Rng) -> Made:
    """Steps of 0; the same as the array where it has one element."""
    made = np.broadcast_to(array.reshape(-1)[:1].reshape(()) if array.size else array,
                           array.shape)  # fmt: skip
    return made, True if array.size < 2 else None


def swapped(array: Array, rng: Rng) -> Made:
    """The bytes of each number the other way round."""
    if array.dtype.kind == "V" or array.dtype.itemsize == 1:
        return array, True
    return array.astype(array.dtype.newbyteorder(">")), False


def unaligned(array: Array, rng: Rng) -> Made:
    block = np.zeros(array.nbytes + 1, np.uint8)
    made = np.ndarray(array.shape, array.dtype, block, 1)
    made[...] = array
    return made, True


def read_only(array: Array, rng: Rng) -> Made:
    made = array.copy()
    made.flags.writeable = False
    return made, True


def odd_numbers(array: Array, rng: Rng) -> Made:
    made = array.copy()
    if array.dtype.kind in "iub":
        return made, True
    flat = made.reshape(-1)
    flat[::2] = np.nan
    flat[1::3] = np.inf
    return made, None


def as_list(array: Array, rng: Rng) -> Made:
    return array.tolist(), None


def nothing(array: Array, rng: Rng) -> Made:
    return [None, "abc", 3 + 4j, object(), {}, b"xyz"][int(rng.integers(6))], None


def subclass(array: Array, rng: Rng) -> Made:
    if array.ndim == 2 and array.dtype.kind in "iufb":
        return np.asmatrix(array), None
    return np.ma.masked_array(array), False


WAYS: tuple[Callable[[Array, Rng], Made], ...] = (
    wrong_type, wrong_rank, wrong_size, strided, turned, backwards, same_everywhere,
    swapped, unaligned, read_only, odd_numbers, as_list, nothing, subclass,
)  # fmt: skip


def mangled(feeds: dict[str, Array], rng: Rng) -> tuple[str, Any, bool | None]:
    """A way's name, what it makes of the inputs, and whether they are taken."""
    names = sorted(feeds)
    name = names[int(rng.integers(len(names)))]
    number = int(rng.integers(len(WAYS) + 3))
    if number == len(WAYS):
        return "missing", {k: v for k, v in feeds.items() if k != name}, False
    if number == len(WAYS) + 1:
        return "misnamed", {k + "!" * (k == name): v for k, v in feeds.items()}, False
    if number == len(WAYS) + 2:
        return "no dict", [feeds[k] for k in names], False
    made, fits = WAYS[number](feeds[name], rng)
    return WAYS[number].__name__, {**feeds, name: made}, fits
