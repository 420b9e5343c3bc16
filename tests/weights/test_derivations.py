"""What becomes of weights: the numbers, shapes and names; nothing before its time."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nanoloom.linalg.products.conv_transpose import Phases
from nanoloom.weights import chunked_conversion
from nanoloom.weights.chunked_conversion import Converted
from nanoloom.weights.derivations import (
    Cast,
    Minus,
    Reshaped,
    Sliced,
    Sum,
    Transposed,
    flat,
    places_of,
    reshaped,
)
from nanoloom.weights.panels import Panels
from nanoloom.weights.weight import Derivation, Source, Weight, weight_of

BF16, INT8 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.int8)
W = np.random.default_rng(1).integers(0, 256, (4, 6, 8)).astype(np.uint8)
CHANGES: list[tuple[Derivation, np.ndarray, str]] = [
    (Reshaped((12, 16)), W.reshape(12, 16), "reshaped[12, 16]"),
    (Transposed((2, 0, 1)), W.transpose(2, 0, 1), "transposed[2, 0, 1]"),
    (
        Sliced((1, 5, 0), (2, 3, 8), (2, -2, 1)),
        W[1:4:2, 5:None:-2],
        "slice[1, 5, 0][2, 3, 8][2, -2, 1]",
    ),
    (Cast(BF16), W.astype(BF16), "bfloat16"),
    (Minus((128,), INT8), (W.astype(int) - 128).astype(np.int8), "minus[128]"),
    (
        Minus((0, 3, 255, 7), np.dtype(np.int16)),
        W - np.array([0, 3, 255, 7], np.int16)[:, None, None],
        "minus[0, 3, 255, 7]",
    ),
    (Sum((1, 2), -3), W.sum((1, 2), np.int32) * np.int32(-3), "sums[1, 2]by-3"),
    (Phases((2,), (1,)), W.reshape(4, 6, 4, 2)[:, :, ::-1], "phases[2][1]"),
]


def unread() -> Weight:
    """A weight that must not be loaded."""

    def load() -> np.ndarray:
        raise AssertionError("it was read")

    return Weight(Source(load, "w", W.shape, W.dtype, load))


@pytest.mark.parametrize(
    ("change", "wanted", "word"), CHANGES, ids=[word for *_, word in CHANGES]
)
def test_a_change(change: Derivation, wanted: np.ndarray, word: str) -> None:
    made = weight_of(W).then(change)
    assert made.array().dtype == wanted.dtype == made.dtype
    assert made.shape == wanted.shape and made.nbytes == wanted.nbytes
    assert (made.array() == wanted).all()
    assert b"".join(x.tobytes() for x in made.written()) == wanted.tobytes()
    promised = unread().then(change)  # before anything is loaded
    assert promised.shape == wanted.shape and promised.dtype == wanted.dtype
    assert promised.name == f"w.{word}"


def test_sums_wrap() -> None:
    large = weight_of(np.full((2, 3), 2**31 - 1, np.int32))
    assert large.then(Sum((1,), 2)).array().tolist() == [-6, -6]


def test_changes_follow_each_other() -> None:
    made = weight_of(W, "w")
    for change in (Minus((128,), INT8), Transposed((0, 2, 1)), Cast(BF16)):
        made = made.then(change)
    wanted = (W.astype(int) - 128).transpose(0, 2, 1).astype(BF16)
    assert (made.array() == wanted).all()
    assert made.name == "w.minus[128].transposed[0, 2, 1].bfloat16"
    panels = Panels((0,), 1, (2,), 3)
    assert (made.then(panels).array() == panels.of(wanted)).all()


@pytest.mark.parametrize("change", [Minus((128,), INT8), Cast(BF16)], ids=str)
def test_numbers_are_converted_a_piece_at_a_time(
    change: Derivation, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counting(self: object, array: np.ndarray) -> np.ndarray:
        sizes.append(array.size)
        return made(self, array)

    name = "less" if isinstance(change, Minus) else "converted"
    made = getattr(type(change), name)
    monkeypatch.setattr(type(change), name, counting)
    monkeypatch.setattr(chunked_conversion, "PIECE", 20)
    weight = weight_of(W).then(change).then(Panels((0,), 1, (2,), 3))
    parts = list(weight.written())
    assert len(sizes) == len(parts) > 4 and sum(sizes) == W.size
    assert b"".join(x.tobytes() for x in parts) == weight.array().tobytes()


def test_equal_weights() -> None:
    """One array changed in the same ways, whatever it is called; no other."""
    one, same, copy = weight_of(W, "w"), weight_of(W, "v"), weight_of(W.copy(), "w")
    assert one == same and hash(one) == hash(same) and one != copy
    turned = Transposed((1, 0, 2))
    assert one.then(turned) == same.then(turned) != one.then(Transposed((2, 1, 0)))
    assert one.then(turned).then(Cast(BF16)) != one.then(Cast(BF16)).then(turned)


def test_only_the_last_shape_counts() -> None:
    weight = weight_of(W)
    assert reshaped(reshaped(weight, (192,)), W.shape) == weight
    assert reshaped(reshaped(weight, (192,)), (12, 16)) == reshaped(weight, (12, 16))
    assert flat(reshaped(weight, (192,))) == weight
    cast = weight.then(Cast(BF16))
    assert flat(reshaped(cast, (192,))) == cast


def test_views_of_what_is_converted() -> None:
    array, made = W, Converted(W, BF16, lambda x: x.astype(BF16))
    assert made.nbytes == 2 * array.nbytes
    same = made.transpose((2, 0, 1))[1:, :, ::2].reshape((7 * 4, 3))
    wanted = array.astype(BF16).transpose((2, 0, 1))[1:, :, ::2].reshape((7 * 4, 3))
    assert same.shape == wanted.shape
    assert (np.asarray(same) == wanted).all()
    assert np.asarray(made, np.float32).dtype == np.float32


@pytest.mark.parametrize(
    ("start", "step", "count"),
    [(0, 1, 9), (8, -1, 9), (8, -2, 5), (7, -3, 3), (2, 3, 3), (4, 1, 1), (0, -1, 1)],
)
def test_slices_are_views(start: int, step: int, count: int) -> None:
    array = np.arange(9)
    found = array[places_of(start, step, count)]
    assert found.tolist() == [start + i * step for i in range(count)]
    assert np.shares_memory(found, array)
