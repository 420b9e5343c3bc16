"""What the error of an operation is relative to, where that is not its result.

A difference of numbers is as exact as these are, however little is left of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.fuzz.asked import Array, Asked

Magnitude = Callable[[Asked, Array], Array]  # of the node and its result's size


def wide(asked: Asked, index: int) -> Array:
    """An input in 64 bits."""
    array = asked.input(index)
    assert array is not None
    return array.astype(np.float64)


def as_large_as_one(asked: Asked, size: Array) -> Array:
    return np.maximum(size, 1.0)


def sigmoid(asked: Asked, size: Array) -> Array:
    """In 64 bits ONNX Runtime takes what is near 0 from 1."""
    x = asked.input(0)
    is_wide = x is not None and x.dtype == np.float64
    return np.maximum(size, 1.0) if is_wide else size


# ---- logarithms of sums: log (s (1 + e)) = log s + e


def log_softmax(asked: Asked, size: Array) -> Array:
    """(x - max) - log sum exp (x - max), the sum at least 1."""
    return np.maximum(size, 1.0)


def cross_entropy(asked: Asked, size: Array) -> Array:
    """The same for each label, and perhaps the sum over all, with weights."""
    weights = asked.input(2)
    largest = 1.0 if weights is None else float(np.abs(weights).max(initial=0))
    labels = asked.input(1)
    assert labels is not None
    count = labels.size if asked.word("reduction", "mean") == "sum" else 1
    return np.maximum(size, count * max(largest, 1.0))


def log_sum(asked: Asked, size: Array) -> Array:
    """The sum's own error is relative to the sum of absolute values."""
    x = wide(asked, 0)
    axes = asked.input(1)
    chosen = asked.numbers("axes") if axes is None else axes.tolist()
    along = tuple(int(a) for a in chosen) or None
    keeps = bool(asked.number("keepdims", 1))
    if along is None and asked.number("noop_with_empty_axes"):
        return np.maximum(size, 1.0)
    with np.errstate(all="ignore"):
        one = np.abs(x).sum(axis=along, keepdims=keeps)
        ratio = one / np.abs(x.sum(axis=along, keepdims=keeps))
    return np.maximum(size, np.where(np.isfinite(ratio), ratio, 1.0))


def log_sum_exp(asked: Asked, size: Array) -> Array:
    """max + log sum exp (x - max)"""
    largest = np.abs(wide(asked, 0)).max(initial=1.0)
    return np.maximum(size, largest)


# ---- normalizing: x * a + (b - mean * a), in whatever order


def normalized(x: Array, mean: Array, variance: Array, asked: Asked) -> Array:
    """(|x| + |mean|) / deviation"""
    epsilon = asked.real("epsilon", 1e-5)
    with np.errstate(all="ignore"):
        return (np.abs(x) + np.abs(mean)) / np.sqrt(variance + epsilon)


def along(asked: Asked, x: Array, axes: tuple[int, ...]) -> Array:
    mean = x.mean(axis=axes, keepdims=True)
    return normalized(x, mean, x.var(axis=axes, keepdims=True), asked)


def of_channels(array: Array, rank: int) -> Array:
    """[c] -> [c, 1, ...], to go with [n, c, ...]; [c, ...] of opset 7 as it is."""
    return array if array.ndim > 1 else array.reshape(-1, *[1] * (rank - 2))


def instance(asked: Asked, size: Array) -> Array:
    x = wide(asked, 0)
    found = along(asked, x, tuple(range(2, x.ndim)))
    return np.maximum(size, found * np.abs(of_channels(wide(asked, 1), x.ndim)))


def group(asked: Asked, size: Array) -> Array:
    """Scales of channels; those of groups, before set 21, count by the largest."""
    x, scale = wide(asked, 0), np.abs(wide(asked, 1))
    parts = x.reshape(x.shape[0], asked.number("num_groups"), -1)
    found = along(asked, parts, (2,)).reshape(x.shape)
    if scale.size != x.shape[1]:
        return np.maximum(size, found * scale.max(initial=0))
    return np.maximum(size, found * of_channels(scale, x.ndim))


def layer(asked: Asked, size: Array) -> Array:
    x = wide(asked, 0)
    if size.shape != x.shape:  # of the mean, or of the deviation
        return size
    axis = asked.number("axis", -1)
    found = along(asked, x, tuple(range(axis % x.ndim, x.ndim)))
    return np.maximum(size, found * np.abs(wide(asked, 1)))


def batch(asked: Asked, size: Array) -> Array:
    x = wide(asked, 0)
    if size.shape != x.shape:
        return size
    scale, mean, variance = (of_channels(wide(asked, i), x.ndim) for i in (1, 3, 4))
    return np.maximum(size, np.abs(scale) * normalized(x, mean, variance, asked))


def mean_variance(asked: Asked, size: Array) -> Array:
    """By ONNX's definition the variance is E x^2 - (E x)^2, a difference, too."""
    x = wide(asked, 0)
    axes = tuple(asked.numbers("axes") or (0, 2, 3))
    mean, variance = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    deviation = np.sqrt(variance) + 1e-9
    with np.errstate(all="ignore"):
        squares = size * np.mean(x * x, axis=axes, keepdims=True) / variance
    direct = (np.abs(x) + np.abs(mean)) / deviation
    return np.maximum(size, direct + np.nan_to_num(squares, nan=0.0))


MAGNITUDES: dict[str, Magnitude] = {
    "BatchNormalization": batch,
    "BlackmanWindow": as_large_as_one,  # sums of cosines
    "GroupNormalization": group,
    "HammingWindow": as_large_as_one,  # sums of cosines
    "HannWindow": as_large_as_one,  # the square of a sine near 0
    "InstanceNormalization": instance,
    "LayerNormalization": layer,
    "LogSoftmax": log_softmax,
    "MeanVarianceNormalization": mean_variance,
    "ReduceLogSum": log_sum,
    "ReduceLogSumExp": log_sum_exp,
    "Sigmoid": sigmoid,
    "SoftmaxCrossEntropyLoss": cross_entropy,
}
