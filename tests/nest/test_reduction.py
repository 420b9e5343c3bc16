"""What combines, and what changes no result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.nest.reduction import (
    KINDS,
    NUMBERS,
    OF_BITS,
    OF_PRODUCTS,
    SUMS_OF_PRODUCTS,
)
from nanoloom.vector.combiner import Combiner, number_of

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]
BY_NAME: dict[str, Combine] = {
    "add": np.add,
    "mul": np.multiply,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": np.maximum,
    "minui": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def dtype_of(operation: str) -> np.dtype:
    if operation.endswith("f"):
        return np.dtype(np.float32)
    return np.dtype(np.uint16 if operation.endswith("ui") else np.int16)


def sample(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "f":
        return np.array([-np.inf, -1.5, -0.0, 0, 2, np.inf, np.nan], dtype)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([least, least + 1, 0, 1, 7, most], dtype)


def as_array(value: ir.Value, dtype: np.dtype) -> np.ndarray:
    """The number that a constant holds."""
    owner = value.owner
    assert not isinstance(owner, ir.Block)
    number = owner.attributes["value"].value  # type: ignore[attr-defined]
    if dtype.kind == "f":
        return np.array(number, dtype)
    return np.array(number % (1 << 16), np.uint16).view(dtype)


@pytest.mark.parametrize("operation", KINDS)
def test_the_neutral_number_changes_nothing(operation: str) -> None:
    """Bit by bit: the sign of a zero, too."""
    kind, dtype = KINDS[operation], dtype_of(operation)
    with mlir.context(), ir.Location.unknown():
        element = ir.F32Type.get() if dtype.kind == "f" else ir.Type.parse("i16")
        block = ir.Module.create().body
        with ir.InsertionPoint(block):
            neutral = as_array(Combiner(operation, element).neutral(), dtype)
            filled = as_array(number_of(kind.neutral, element), dtype)
    numbers = sample(dtype)
    made = BY_NAME[kind.word](numbers, neutral).astype(dtype)
    if kind.word in ("maxnumf", "minnumf"):  # NaN is left out
        numbers = np.where(np.isnan(numbers), neutral, numbers)
    assert made.tobytes() == numbers.tobytes()
    assert (BY_NAME[kind.word](neutral, filled) == filled).all()
    assert kind.neutral in NUMBERS


@pytest.mark.parametrize(("pair", "word"), OF_PRODUCTS.items())
def test_a_product_that_changes_nothing(pair: tuple[str, str], word: str) -> None:
    combine = KINDS[pair[0]]
    number = {"zero": 0.0, "highest": np.inf, "lowest": -np.inf}[word]
    if pair == OF_BITS:
        made = np.bitwise_count(np.uint8(number) ^ np.uint8(number))
    else:
        made = BY_NAME[KINDS[pair[1]].word](np.float32(number), np.float32(number))
    assert combine.neutral == word and made == number


def test_sums_of_products_are_of_one_type() -> None:
    assert OF_BITS in SUMS_OF_PRODUCTS and KINDS[OF_BITS[0]].word == "add"
    for pair in set(SUMS_OF_PRODUCTS) - {OF_BITS}:
        assert pair[0][-1] == pair[1][-1]
        assert KINDS[pair[0]].word == "add" and KINDS[pair[1]].word == "mul"


def test_no_number_of_all_bits_among_floats() -> None:
    with mlir.context(), ir.Location.unknown(), pytest.raises(Error) as found:
        number_of("ones", ir.F32Type.get())
    assert str(found.value) == "ones is no number of type f32"
