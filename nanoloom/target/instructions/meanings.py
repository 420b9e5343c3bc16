"""What instructions do, as reference loops on arrays of the operands' numbers.

Only operators and a few functions of numpy are used, so that the tests can read them as
vector code, too: slices with a step, astype, view, where, repeat, arithmetic and bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # numpy's, or what the tests put in its place
QUAD = 4  # numbers of 32 bits in 128
PIECE = 16  # bytes in 128 bits


# ---- sums of products


def dot(sums: Array, left: Array, right: Array) -> Array:
    """A group of neighbours multiplied and added to each lane."""
    group = left.size // sums.size
    for g in range(group):
        pair = (x[g::group].astype(sums.dtype) for x in (left, right))
        one, other = pair
        sums = sums + one * other
    return sums


def pair_products(left: Array, right: Array) -> Array:
    """Two neighbouring products of 16-bit numbers, added."""
    one, other = (
        left[g::2].astype(np.int32) * right[g::2].astype(np.int32) for g in (0, 1)
    )
    return one + other


def matrix(sums: Array, left: Array, right: Array) -> Array:
    """In every four sums two rows of the left by two rows of the right operand."""
    made, depth = sums.copy(), 2 * left.size // sums.size
    for block in range(0, sums.size, QUAD):
        for m in range(2):
            for n in range(2):
                for k in range(depth):
                    one = left[block // 2 * depth + m * depth + k]
                    other = right[block // 2 * depth + n * depth + k]
                    made[block + 2 * m + n] += made.dtype.type(one) * other
    return made


def tile(sums: Array, left: Array, right: Array) -> Array:
    """16 x 16 sums; a row of the right operand has a group of every column."""
    side = 16
    group = left.size // side**2
    rows = left.reshape(side, side, group).astype(sums.dtype)
    columns = right.reshape(side, side, group).astype(sums.dtype)
    return sums + np.einsum("mkg,kng->mn", rows, columns).ravel()


def outer(sums: Array, left: Array, right: Array) -> Array:
    """Each number of one by each of the other."""
    return sums + np.outer(left, right).ravel()


def lane_product(sums: Array, vector: Array, numbers: Array, lane: int) -> Array:
    """A vector by one of the four numbers in its 128 bits."""
    return sums + vector * np.repeat(numbers[lane::QUAD], QUAD)


def widening_product(sums: Array, number: Array, vector: Array) -> Array:
    """A vector by a number, in the sums' type."""
    return sums + number.astype(sums.dtype) * vector.astype(sums.dtype)


# ---- moves


def repeated_quad(vector: Array, first: int) -> Array:
    """One 128 bits of a register in all of them."""
    quad = vector[first * QUAD : first * QUAD + QUAD]
    return np.tile(quad, vector.size // QUAD)


def even_exchange(one: Array, other: Array) -> Array:
    """The even numbers of two vectors, in turns."""
    return np.stack((one[0::2], other[0::2]), axis=1).ravel()


def odd_exchange(one: Array, other: Array) -> Array:
    """The odd numbers of two vectors, in turns."""
    return np.stack((one[1::2], other[1::2]), axis=1).ravel()


def even_numbers(memory: Array) -> Array:
    return memory[0::2].astype(np.float32)


def odd_numbers(memory: Array) -> Array:
    return memory[1::2].astype(np.float32)


def one_number(memory: Array) -> Array:
    """In all lanes of 256 bits."""
    return np.repeat(memory, 8).astype(np.float32)


# ---- bytes and bits


def shuffle(table: Array, places: Array) -> Array:
    """Of each 16 bytes those at the places' low bits; 0 where the sign bit is set."""
    pieces = table.reshape(-1, PIECE)
    found = np.take_along_axis(pieces, places.reshape(-1, PIECE) & 15, 1)
    return np.where(places < 0, places & 0, found.reshape(-1))


def lookup64(*operands: Array) -> Array:
    """Bytes of a table of four registers; 0 outside of it."""
    *tables, places = operands
    table, at = np.concatenate(tables), places.view(np.uint8).astype(np.int64)
    return np.where(at < table.size, table[at % table.size], 0).astype(table.dtype)


def ternary(a: Array, b: Array, c: Array, table: int) -> Array:
    """Bit by bit, what a table of eight bits has for three bits."""
    made = a & 0
    for row in range(8):
        if table >> row & 1:
            here = ~made | made  # ones
            for place, bits in ((2, a), (1, b), (0, c)):
                here = here & (bits if row >> place & 1 else ~bits)
            made = made | here
    return made


def popcount(numbers: Array) -> Array:
    bits = numbers.view(f"u{numbers.dtype.itemsize}")  # of signed ones numpy counts |x|
    return np.bitwise_count(bits).astype(numbers.dtype)


def differing(sums: Array, left: Array, right: Array) -> Array:
    """Ones of an xor, counted in as many bits as a sum has."""
    return sums + popcount(left.view(sums.dtype) ^ right.view(sums.dtype))


# ---- the larger and the smaller


def larger(one: Array, other: Array) -> Array:
    """The second one where one is NaN, and of zeros."""
    return np.where(one > other, one, other)


def smaller(one: Array, other: Array) -> Array:
    """The second one where one is NaN, and of zeros."""
    return np.where(one < other, one, other)


def larger_number(one: Array, other: Array) -> Array:
    """Of a NaN the other one; of zeros the positive one."""
    return ranged(one, other, 1)


def smaller_number(one: Array, other: Array) -> Array:
    """Of a NaN the other one; of zeros the negative one."""
    return ranged(one, other, 0)


def ranged(one: Array, other: Array, choice: int) -> Array:
    """The larger (of an odd choice) or smaller one, of zeros by their signs; of a NaN
    the other one.

    Equal numbers differ in nothing but a zero's sign: the bits of both, or of either.
    """
    whole = np.int32 if one.dtype == np.float32 else np.int64
    bits = one.view(whole), other.view(whole)
    if choice & 1:
        made, equal = larger(one, other), bits[0] & bits[1]
    else:
        made, equal = smaller(one, other), bits[0] | bits[1]
    made = np.where(one == other, equal.view(one.dtype), made)
    made = np.where(one != one, other, made)
    return np.where(other != other, one, made)


# ---- powers of two


def scaled(one: Array, power: Array, *rest: Array | int) -> Array:
    """one * 2^power, rounded once, for whole powers from -256 to 255."""
    del rest  # what lanes keep that a mask leaves out, the mask, the rounding
    made, left = one.astype(np.float64), power
    for step in (-256, 128, 64, 32, 16, 8, 4, 2, 1):
        taken = left < 0.0 if step < 0 else left > step - 0.5
        made = np.where(taken, made * 2.0**step, made)
        left = np.where(taken, left + float(-step), left)
    return made.astype(one.dtype)
