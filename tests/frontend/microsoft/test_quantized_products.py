"""Products of integers, exact; and of floats with packed weights, in float64."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nanoloom.errors import Unsupported
from tests.frontend.microsoft.single import both, check, check_rounded, floats, run

Array = np.ndarray


def f32(number: float | list[float]) -> Array:
    return np.array(number, np.float32)


def drawn(random: np.random.Generator, kind: type, *shape: int) -> Array:
    limits = np.iinfo(kind)
    return random.integers(limits.min, limits.max, shape, kind, True)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("by_column", [True, False])
@pytest.mark.parametrize("rest", [True, False])
def test_integer_to_float(kind: type, by_column: bool, rest: bool) -> None:
    """Exact sums in a test of its own: a machine may saturate pairs of products."""
    random = np.random.default_rng(by_column + 2 * rest)
    a, b = drawn(random, np.uint8, 2, 3, 9), drawn(random, kind, 9, 5)
    scales = abs(floats(random, 5)) / 50 if by_column else f32(0.02)
    zeros = [np.array(3, np.uint8), drawn(random, kind, 5) if by_column else None]
    bias = floats(random, 5) if rest else None
    given = [a, b, f32(0.03), scales, *(zeros if rest else [None, None]), bias]
    (got,) = run("MatMulIntegerToFloat", given)
    left, right = a.astype(np.int64), b.astype(np.int64)
    if rest:
        left = left - 3
        right = right - (0 if zeros[1] is None else zeros[1].astype(np.int64))
    exact = (left @ right) * (0.03 * scales.astype(np.float64))
    exact = exact + (0 if bias is None else bias)
    check((got, got), exact, 6, abs(exact) + 4)


@pytest.mark.drawn
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("by_column", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_quantized_as_it_runs(kind: type, by_column: bool, biased: bool) -> None:
    random = np.random.default_rng(by_column + 2 * biased)
    a = floats(random, 3, 9)
    b = (drawn(random, kind, 9, 5) // 2).astype(kind)  # no saturation of pairs
    scale = abs(floats(random, 5)) / 50 if by_column else f32([0.02])
    zero = drawn(random, kind, 5) if by_column else np.array([7], kind)
    given = [a, b, scale, zero, floats(random, 5) if biased else None]
    ours, theirs = both("DynamicQuantizeMatMul", given, constants=(1, 2, 3, 4))
    low, high = min(a.min(), 0), max(a.max(), 0)
    step = np.float32((high - low) / np.float32(255))
    start = np.clip(np.rint(-low / step), 0, 255)
    whole = np.clip(np.rint(a / step) + start, 0, 255) - start
    exact = whole @ (b.astype(np.int64) - zero.astype(np.int64))
    exact = exact * (step * scale.astype(np.float64)) + (given[4] if biased else 0)
    check((ours[0], theirs[0]), exact, 6, abs(exact) + 4)


@pytest.mark.drawn
@pytest.mark.parametrize("turned", range(4))
@pytest.mark.parametrize("by_column", [True, False])
@pytest.mark.parametrize("quantizes", [True, False])
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_gemm(turned: int, by_column: bool, quantizes: bool, alpha: float) -> None:
    random = np.random.default_rng(turned)
    a, b = drawn(random, np.uint8, 3, 9), drawn(random, np.int8, 9, 5) // 2
    scale = abs(floats(random, 5)) / 50 + f32(0.001) if by_column else f32(0.02)
    zero = drawn(random, np.int8, 5) if by_column else np.array(7, np.int8)
    c = random.integers(-900, 900, 5).astype(np.int32)
    trans_a, trans_b = turned & 1, turned >> 1
    to = [f32(0.31), np.array(9, np.uint8)] if quantizes else []
    given = [
        a.T.copy() if trans_a else a, f32(0.03), np.array(3, np.uint8),
        b.T.copy() if trans_b else b, scale, zero, c, *to,
    ]  # fmt: skip
    ours, theirs = both(
        "QGemm", given, transA=trans_a, transB=trans_b, alpha=alpha,
        constants=range(1, len(given)),
    )  # fmt: skip
    whole = (a.astype(np.int64) - 3) @ (b.astype(np.int64) - zero.astype(np.int64)) + c
    factor = alpha * float(f32(0.03)) * scale.astype(np.float64)
    size = abs(a.astype(np.int64) - 3) @ abs(b.astype(np.int64) - zero) + abs(c)
    if quantizes:
        # Roundings of the sum, as steps of a result that may be smaller.
        for got in (ours[0], theirs[0]):
            quotient = whole * factor / float(to[0])
            near = np.maximum(abs(quotient), 1)
            steps = float((20 * size * factor / float(to[0]) / near).max())
            check_rounded(got, quotient, 9, steps)
    else:
        check((ours[0], theirs[0]), whole * factor, 20, size * factor)


def unpacked(packed: Array, bits: int) -> Array:
    """Written another way: as strings of bits, the lowest first."""
    ones = np.unpackbits(packed, axis=-1, bitorder="little")
    digits = ones.reshape(*packed.shape[:-1], -1, bits)
    return (digits * (1 << np.arange(bits))).sum(-1)


@pytest.mark.drawn
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("depth", "block"), [(64, 32), (40, 16), (16, 16)])
@pytest.mark.parametrize("zeros", ["none", "packed", "floats"])
def test_blocks(bits: int, depth: int, block: int, zeros: str) -> None:
    random = np.random.default_rng(depth + bits)
    columns, blocks = 5, -(-depth // block)
    packed = drawn(random, np.uint8, columns, blocks, block * bits // 8)
    scales, bias = floats(random, columns, blocks), floats(random, columns)
    middle = np.full((columns, blocks), 1 << (bits - 1))
    given = None
    if zeros == "packed":
        given = drawn(random, np.uint8, columns, -(-blocks * bits // 8))
        middle = unpacked(given, bits)[:, :blocks]
    elif zeros == "floats":
        given = floats(random, columns, blocks)
        middle = given.astype(np.float64)
    x = floats(random, 2, 3, depth)
    numbers = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    inputs = [x, packed, scales.reshape(-1), given, None, bias]
    if zeros == "floats" and bits != 4:  # ONNX Runtime has code for 4 bits only
        found = (run("MatMulNBits", inputs, constants=(1, 2, 3, 5), **numbers)[0],) * 2
    else:
        both_of = both("MatMulNBits", inputs, constants=(1, 2, 3, 5), **numbers)
        found = (both_of[0][0], both_of[1][0])
    weight = unpacked(packed, bits) - middle[:, :, None]
    weight = (weight * scales[:, :, None]).reshape(columns, -1)[:, :depth]
    exact = x.astype(np.float64) @ weight.T + bias
    check(found, exact, depth + 6, abs(x) @ abs(weight.T) + abs(bias))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [True, False])
def test_rows_of_a_table(bits: int, zeros: bool) -> None:
    random = np.random.default_rng(bits)
    data = drawn(random, np.uint8, 11, 64 * bits // 8)
    scales, rows = floats(random, 11, 2), random.integers(0, 11, (2, 3))
    given = drawn(random, np.uint8, 11, 2 * bits // 8) if zeros else None
    ours, theirs = both(
        "GatherBlockQuantized", [data, rows, scales, given], constants=(0, 2, 3),
        bits=bits, block_size=32, quantize_axis=1, gather_axis=0,
    )  # fmt: skip
    middle = np.full((11, 2), 1 << (bits - 1))
    middle = middle if given is None else unpacked(given, bits)
    whole = unpacked(data, bits).reshape(11, 2, 32) - middle[:, :, None]
    exact = (whole * scales[:, :, None].astype(np.float64)).reshape(11, 64)[rows]
    check((ours[0], theirs[0]), exact, 2, abs(exact))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"bits": 3}, "its attribute bits = 3 is not supported"),
        ({"K": 96}, "its packed weight has 80 numbers of UINT8, 240 of UINT8 are"),
        ({"weight_prepacked": 1}, "its attribute weight_prepacked = 1"),
        ({"constants": (2,)}, "its input x1 is computed, not a constant"),
    ],
)
def test_refusals(change: dict[str, object], reason: str) -> None:
    x, packed = np.zeros((3, 32), np.float32), np.zeros((5, 1, 16), np.uint8)
    given = {"K": 32, "N": 5, "bits": 4, "block_size": 32, "constants": (1, 2)}
    with pytest.raises(Unsupported, match=reason):
        run("MatMulNBits", [x, packed, x[:1, :5].reshape(-1)], **{**given, **change})


@pytest.mark.parametrize("kind", ["int4", "uint4"])
@pytest.mark.parametrize("zeros", [True, False])
def test_rows_of_a_table_of_four_bits(kind: str, zeros: bool) -> None:
    random, dtype = np.random.default_rng(4), np.dtype(getattr(ml_dtypes, kind))
    low = -8 if kind == "int4" else 0
    data = random.integers(low, low + 16, (11, 32)).astype(dtype)
    scales, rows = floats(random, 11, 2), random.integers(0, 11, (2, 3))
    middle = random.integers(low, low + 16, (11, 2)).astype(dtype) if zeros else None
    ours, theirs = both(
        "GatherBlockQuantized", [data, rows, scales, middle], constants=(0, 2, 3),
        block_size=16, quantize_axis=1, gather_axis=0, opset=21,
    )  # fmt: skip
    whole = data.astype(np.int64).reshape(11, 2, 16)
    whole = whole - (0 if middle is None else middle.astype(np.int64)[:, :, None])
    exact = (whole * scales[:, :, None].astype(np.float64)).reshape(11, 32)[rows]
    check((ours[0], theirs[0]), exact, 2, abs(exact))
