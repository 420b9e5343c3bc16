"""What compiled computations give, beside numpy in float64; integers are exact.

Sizes divide nothing.  A sum of K products of f32 is within (K + 2) eps of the sum of
their magnitudes, whatever its order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nanoloom.notation import (
    Buffer,
    absolute,
    axes,
    cast,
    computation,
    constant,
    exp,
    maximum,
    minimum,
    popcount,
    position,
    select,
    sqrt,
)
from tests.notation.programs import EPSILON, Array, convolution, normal, run, stencil

i, j, k = axes("i j k")


def windows(x: Array, w: Array) -> Array:
    """Chapter H's sum, in float64."""
    height, width = x.shape[1] - 2, x.shape[2] - 2
    parts = [
        np.einsum("nyxr,rc->nyxc", x[:, z : z + height, y : y + width], w[:, z, y])
        for z in range(3)
        for y in range(3)
    ]
    return np.sum(parts, axis=0)


def test_the_convolution() -> None:
    x, w = normal(2, 9, 13, 20), normal(20, 3, 3, 24, seed=1)
    bias = normal(24, seed=2)
    wide = [v.astype(np.float64) for v in (x, w, bias)]
    made = run(convolution(), input=x, filter=w, bias=bias)["relu"]
    wanted = np.maximum(windows(wide[0], wide[1]) + wide[2], 0)
    room = windows(abs(wide[0]), abs(wide[1])) + abs(wide[2])
    assert (abs(made - wanted) <= (9 * 20 + 3) * EPSILON * room).all()
    assert (wanted > 182 * EPSILON * room).mean() > 0.4  # zeros would fail


def test_the_stencil() -> None:
    x = normal(13, 21, 37)
    wide = x.astype(np.float64)
    around = wide[:-2, 1:-1, 1:-1] + wide[2:, 1:-1, 1:-1] + wide[1:-1, :-2, 1:-1]
    around = around + wide[1:-1, 2:, 1:-1]
    around = around + wide[1:-1, 1:-1, :-2] + wide[1:-1, 1:-1, 2:]
    middle = 6 * wide[1:-1, 1:-1, 1:-1]
    wanted = np.tanh(around - middle)
    room = 8 * 12 * abs(wide).max() + 3  # tanh keeps differences, and has 2 ulp itself
    assert (abs(run(stencil(), a=x)["b"] - wanted) <= EPSILON * room).all()
    assert abs(wanted).mean() > 0.5


def test_the_smallest_of_sums() -> None:
    a, b, d = Buffer("a", (33, 17)), Buffer("b", (17, 50)), Buffer("d")
    d[i, j] = minimum(d[i, j], a[i, k] + b[k, j])
    x, y = normal(33, 17), normal(17, 50, seed=1)
    wanted = (x[:, :, None] + y[None]).min(1)  # rounded once, as the program's
    assert (run(computation(d), a=x, b=y)["d"] == wanted).all()


def test_the_sum_of_equal_bits() -> None:
    a, b = Buffer("a", (13, 9), "uint32"), Buffer("b", (41, 9), "uint32")
    s = Buffer("s", None, "int32")
    s[i, j] += cast(popcount(~(a[i, k] ^ b[j, k])), "int32")
    random = np.random.default_rng(0)
    x, y = (random.integers(0, 1 << 32, (n, 9)).astype(np.uint32) for n in (13, 41))
    wanted = np.bitwise_count(~(x[:, None] ^ y[None])).sum(-1)
    assert (run(computation(s), a=x, b=y)["s"] == wanted).all()


@pytest.mark.parametrize("kinds", [("uint8", "int8"), ("int8", "int8"), ("int16",) * 2])
def test_sums_of_narrow_products(kinds: tuple[str, str]) -> None:
    a, b = Buffer("a", (19, 70), kinds[0]), Buffer("b", (70, 37), kinds[1])
    c = Buffer("c", None, "int32")
    c[i, j] += cast(a[i, k], "int32") * cast(b[k, j], "int32")
    random = np.random.default_rng(0)
    limits = [ml_dtypes.iinfo(kind) for kind in kinds]
    x = random.integers(limits[0].min, limits[0].max, (19, 70)).astype(kinds[0])
    y = random.integers(limits[1].min, limits[1].max, (70, 37)).astype(kinds[1])
    wanted = (x.astype(np.int64) @ y.astype(np.int64)).astype(np.int32)
    assert (run(computation(c), a=x, b=y)["c"] == wanted).all()


def test_a_product_of_halves_is_rounded_once() -> None:
    a, b = Buffer("a", (9, 33), "bfloat16"), Buffer("b", (33, 21), "bfloat16")
    c = Buffer("c", None, "bfloat16")
    c[i, j] += a[i, k] * b[k, j]
    x = normal(9, 33, dtype=ml_dtypes.bfloat16)
    y = normal(33, 21, seed=1, dtype=ml_dtypes.bfloat16)
    wide = x.astype(np.float64) @ y.astype(np.float64)
    made = run(computation(c), a=x, b=y)["c"].astype(np.float64)
    room = 35 * EPSILON * (abs(x.astype(np.float64)) @ abs(y.astype(np.float64)))
    assert (abs(made - wide) <= room + abs(wide) / 256).all()


def test_several_outputs_and_a_chain() -> None:
    """Mean, variance and what is made of both."""
    a, total, mean = Buffer("a", (11, 45)), Buffer("total"), Buffer("mean")
    square, made = Buffer("square"), Buffer("made")
    total[i] += a[i, k]
    mean[i] = total[i] / 45
    square[i] += (a[i, k] - mean[i]) * (a[i, k] - mean[i])
    made[i, j] = (a[i, j] - mean[i]) / sqrt(square[i] / 45 + 1e-5)
    x = normal(11, 45)
    found = run(computation(mean, made), a=x)
    wide = x.astype(np.float64)
    center = wide.mean(1, keepdims=True)
    wanted = (wide - center) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    assert list(found) == ["mean", "made"]
    assert abs(found["mean"] - center[:, 0]).max() < 47 * EPSILON * abs(wide).mean()
    assert abs(found["made"] - wanted).max() < 200 * EPSILON * abs(wanted).max()


def small(shape: tuple[int, ...], low: int = -9, dtype: Any = np.int32) -> Array:
    return np.random.default_rng(3).integers(low, 10, shape).astype(dtype)


def strided(x: Buffer, y: Buffer) -> None:
    u, v = axes("u v", u=3, v=2)
    y[i, j] = maximum(y[i, j], x[2 * i + u, 3 * j + v])


def reversed_rows(x: Buffer, y: Buffer) -> None:
    y[i, j] = x[32 - i, j] - x[i, 16 - j]


def against_each_other(x: Buffer, y: Buffer) -> None:
    (r,) = axes("r", r=5)
    y[i, j] += x[i - r + 4, j] * (cast(position(r), "int32") + 1)


def diagonal(x: Buffer, y: Buffer) -> None:
    (d,) = axes("d", d=17)
    y[d] = x[d, d] * x[4, d]


def masked(x: Buffer, y: Buffer) -> None:
    y[i, j] = select(cast(position(i + 1), "int32") < x[i, j], x[i, j], 0)


def in_steps(x: Buffer, y: Buffer) -> None:
    y[i] = x[i, 3]
    y[i] = absolute(y[i]) + 1
    y[i] -= x[i, k] * x[i, k]
    y[i] = maximum(y[i], x[i, k])


def bits(x: Buffer, y: Buffer) -> None:
    y[j] = y[j] & (x[i, j] | 5)


def whole(x: Buffer, y: Buffer) -> None:
    y[()] += x[i, j]


def turned(x: Buffer, y: Buffer) -> None:
    y[j, i] = x[i, j] + constant("w", np.arange(17, dtype=np.int32))[j]


CASES: list[tuple[Callable[[Buffer, Buffer], None], Callable[[Array], Array]]] = [
    (
        strided,
        lambda x: np.max(
            [x[u : u + 31 : 2, v : v + 16 : 3] for u in range(3) for v in (0, 1)], 0
        ),
    ),
    (reversed_rows, lambda x: x[::-1] - x[:, ::-1]),
    (
        against_each_other,
        lambda x: sum(x[4 - r : 33 - r] * (r + 1) for r in range(5)),
    ),
    (diagonal, lambda x: np.diagonal(x[:17]) * x[4]),
    (masked, lambda x: np.where(np.arange(1, 34)[:, None] < x, x, 0)),
    (
        in_steps,
        lambda x: np.maximum(abs(x[:, 3]) + 1 - (x * x).sum(1), x.max(1)),
    ),
    (bits, lambda x: np.bitwise_and.reduce(x | 5, 0)),
    (whole, lambda x: x.sum()),
    (turned, lambda x: x.T + np.arange(17)[:, None]),
]


@pytest.mark.parametrize(("say", "wanted"), CASES, ids=lambda f: f.__name__)
def test_integers_are_exact(
    say: Callable[[Buffer, Buffer], None], wanted: Callable[[Array], Array]
) -> None:
    x, y = Buffer("x", (33, 17), "int32"), Buffer("y", None, "int32")
    say(x, y)
    values = small((33, 17))
    assert (run(computation(y), x=values)["y"] == wanted(values)).all()


def test_a_bool_is_a_value_like_others() -> None:
    a, t, f = Buffer("a", (23,)), Buffer("t", None, "bool"), Buffer("f")
    t[i] = a[i] > 0
    f[i] = select(t[i] | (a[i] < -1), exp(a[i]), cast(~t[i], "float32"))
    x = normal(23)
    found = run(computation(t, f), a=x)
    wanted = np.where((x > 0) | (x < -1), np.exp(x.astype(np.float64)), x <= 0)
    assert (found["t"] == (x > 0)).all()
    assert (abs(found["f"] - wanted) <= 3 * EPSILON * wanted).all()


def test_a_window_at_a_single_place_of_a_larger_image() -> None:
    """The axis of a single point is no loop, and the rest of the image is not read."""
    x, r, c = axes("x r c")
    image, weights = Buffer("image", (6, 5)), Buffer("weights", (4, 5))
    made = Buffer("made", (1, 5))
    made[x, c] += image[3 * x + r, c] * weights[r, c]
    a, w = normal(6, 5), normal(4, 5, seed=1)
    (got,) = run(computation(made), image=a, weights=w).values()
    products = a[:4].astype(np.float64) * w
    right, bound = products.sum(axis=0), 6 * EPSILON * abs(products).sum(axis=0)
    assert (abs(got[0] - right) <= bound).all() and (abs(right) > bound).any()
