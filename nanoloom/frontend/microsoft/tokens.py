"""Numbers of tokens: hashes of them, and those that would repeat themselves."""

from __future__ import annotations

from functools import reduce

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.replacement import Refused, Replacement

UINT32, UINT64 = ir.DataType.UINT32, ir.DataType.UINT64
HASHED = {
    ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64,
    UINT32, UINT64,
}  # fmt: skip
BIT_CAST = 26  # the opset that it came with
END = 2**62


def block_repeated_ngrams(b: Replacement) -> ir.Value:
    """Scores [batch, words], minus infinity for a word that would repeat an n-gram.

    It would if the n - 1 last tokens of ids [batch, length] stand in front of it there.
    """
    ids, scores, size = b.input(0), b.input(1), b.positive("ngram_size")
    axis = b.numbers(1)
    follows = b.op("Slice", ids, b.numbers(size - 1), b.numbers(END), axis)
    same: list[ir.Value] = []
    for place in range(size - 1):
        back = size - 1 - place
        earlier = b.op("Slice", ids, b.numbers(place), b.numbers(-back), axis)
        end = b.numbers(1 - back if back > 1 else END)
        same.append(
            b.op("Equal", earlier, b.op("Slice", ids, b.numbers(-back), end, axis))
        )
    low, high = b.scalar(-np.inf, scores), b.scalar(np.inf, scores)
    most = b.op("Expand", low, b.op("Shape", follows))
    if same:
        every = reduce(lambda x, y: b.op("And", x, y), same)
        most = b.op("Where", every, low, high)
    return b.op("ScatterElements", scores, follows, most, axis=1, reduction="min")


def murmur_hash(b: Replacement) -> ir.Value:
    """MurmurHash3_x86_32 of the bytes of each number."""
    x, seed = b.input(0), b.int("seed", 0) % 2**32
    kind = b.dtype(x)
    if kind not in HASHED:
        raise Refused(f"its input {x.name} is of {kind.name}")
    state = b.op("Expand", word(b, seed), b.op("Shape", x))
    for part in words_of(b, x, kind):
        part = b.op(
            "Mul",
            rotated(b, b.op("Mul", part, word(b, 0xCC9E2D51)), 15),
            word(b, 0x1B873593),
        )
        state = rotated(b, b.op("BitwiseXor", state, part), 13)
        state = b.op("Add", b.op("Mul", state, word(b, 5)), word(b, 0xE6546B64))
    state = b.op("BitwiseXor", state, word(b, kind.bitwidth // 8))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        state = b.op("BitwiseXor", state, shifted(b, state, shift, "RIGHT"))
        state = state if factor == 1 else b.op("Mul", state, word(b, factor))
    if b.int("positive", 1):
        return state
    return b.op("BitCast", state, to=int(ir.DataType.INT32), version=BIT_CAST)


def words_of(b: Replacement, x: ir.Value, kind: ir.DataType) -> list[ir.Value]:
    """Its 32-bit words, the lowest first."""
    if kind.bitwidth == 32:
        return [bits(b, x, kind, UINT32)]
    wide = bits(b, x, kind, UINT64)
    high = b.op(
        "BitShift", wide, b.constant(np.array(32, np.uint64)), direction="RIGHT"
    )
    low = b.op("BitwiseAnd", wide, b.constant(np.array(2**32 - 1, np.uint64)))
    return [b.op("Cast", half, to=int(UINT32)) for half in (low, high)]


def bits(b: Replacement, x: ir.Value, kind: ir.DataType, to: ir.DataType) -> ir.Value:
    return x if kind == to else b.op("BitCast", x, to=int(to), version=BIT_CAST)


def word(b: Replacement, number: int) -> ir.Value:
    return b.constant(np.array(number, np.uint32))


def shifted(b: Replacement, x: ir.Value, by: int, way: str) -> ir.Value:
    return b.op("BitShift", x, word(b, by), direction=way)


def rotated(b: Replacement, x: ir.Value, by: int) -> ir.Value:
    left, right = shifted(b, x, by, "LEFT"), shifted(b, x, 32 - by, "RIGHT")
    return b.op("BitwiseOr", left, right)


OPERATORS = {
    "MurmurHash3": murmur_hash,
    "NGramRepeatBlock": block_repeated_ngrams,
}
