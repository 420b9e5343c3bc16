"""Computations of the tests, and how they run: without files, between guard pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from nanoloom.ir import mlir
from nanoloom.kernels.program import Program
from nanoloom.notation import Buffer, Computation, axes, computation, maximum, tanh
from nanoloom.target.host import host
from tests.vector.kernel_harness import cut, executable

Array = np.ndarray[Any, np.dtype[Any]]
EPSILON = float(np.finfo(np.float32).eps)


def kernels(made: Computation) -> Program:
    with mlir.context():
        return cut(made.lower())


def run(made: Computation, **arrays: Array) -> dict[str, Array]:
    """The outputs by name."""
    given = [arrays[buffer.name] for buffer in made.inputs]
    results = executable(kernels(made), host())(*given)
    return dict(zip([b.name for b in made.outputs], results, strict=True))


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def convolution() -> Computation:
    """Chapter H's, small: bias, a 3 x 3 window over channels, relu."""
    n, y, x, c, rz, ry, rx = axes("n y x c rz ry rx")
    source = Buffer("input", (2, 9, 13, 20))
    weights = Buffer("filter", (20, 3, 3, 24))
    bias = Buffer("bias", (24,))
    conv, relu = Buffer("conv", (2, 7, 11, 24)), Buffer("relu")
    conv[n, y, x, c] = bias[c]
    conv[n, y, x, c] += weights[rx, rz, ry, c] * source[n, y + rz, x + ry, rx]
    relu[n, y, x, c] = maximum(conv[n, y, x, c], 0)
    return computation(relu)


def stencil() -> Computation:
    """Seven points in three dimensions, and a nonlinearity."""
    i, j, k = axes("i j k")
    a, b = Buffer("a", (13, 21, 37)), Buffer("b")
    around = a[i, j + 1, k + 1] + a[i + 2, j + 1, k + 1]
    around = around + a[i + 1, j, k + 1] + a[i + 1, j + 2, k + 1]
    around = around + a[i + 1, j + 1, k] + a[i + 1, j + 1, k + 2]
    b[i, j, k] = tanh(around - 6 * a[i + 1, j + 1, k + 1])
    return computation(b)
