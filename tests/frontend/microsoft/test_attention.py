"""Attention in float64, beside ONNX Runtime and nanoloom."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.errors import Unsupported
from tests.frontend.microsoft.single import both, check, floats, run

Array = np.ndarray
BATCH, LENGTH, HEADS, SIZE, PAST = 2, 5, 3, 4, 6
WIDTH = HEADS * SIZE
MASKED = -1.5  # so small that a mask at the wrong place or added twice is seen
STEPS = 600  # of sums of a dozen numbers, exponentials of up to 8 and their quotients


def split(x: Array) -> Array:
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3).astype(np.float64)


def exact(
    q: Array, k: Array, v: Array, added: Array | float = 0, scale: float | None = None
) -> Array:
    """Of [batch, heads, length, size], with what is added to the scores."""
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    scores = scale * (q @ k.swapaxes(-1, -2)) + added
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    made = weights / weights.sum(-1, keepdims=True) @ v
    return made.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1)


def causal(queries: int, keys: int) -> Array:
    own = np.arange(queries)[:, None] + keys - queries
    return np.where(np.arange(keys) <= own, 0, -np.inf)


def masked(taken: Array) -> Array:
    return np.where(taken, 0, MASKED)


def drawn(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def mask_of(form: str, keys: int, seed: int = 0) -> tuple[Array | None, Array]:
    """A mask as a model gives it, and what it adds to the scores."""
    place = np.arange(keys)
    ends, starts = np.array([3, keys]), np.array([1, 2])
    shapes = {"keys": (BATCH, keys), "pairs": (BATCH, LENGTH, keys)}
    if form in shapes:
        mask = drawn(seed).integers(-1, 3, shapes[form])
        axes = (1, 2) if form == "keys" else 1
        return mask.astype(np.int32), masked(np.expand_dims(mask, axes) > 0)
    inside = place < ends[:, None]
    if form == "ends":
        return ends.astype(np.int32), masked(inside)[:, None, None]
    if form == "both":
        inside = inside & (place >= starts[:, None])
        given = np.concatenate([ends, starts]).astype(np.int32)
        return given, masked(inside)[:, None, None]
    return None, np.zeros(1)


@pytest.mark.drawn
@pytest.mark.parametrize("form", ["", "keys", "pairs", "ends", "both"])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("one_way", [0, 1])
@pytest.mark.parametrize("quantized", [False, True])
def test_of_one_input(form: str, past: bool, one_way: int, quantized: bool) -> None:
    random = drawn(7)
    keys = LENGTH + PAST * past
    mask, added = mask_of(form, keys)
    kept = floats(random, 2, BATCH, HEADS, PAST, SIZE) if past else None
    bias = floats(random, 3 * WIDTH)
    numbers = {
        "num_heads": HEADS,
        "unidirectional": one_way,
        "mask_filter_value": MASKED,
    }
    if quantized:
        x = random.integers(0, 256, (BATCH, LENGTH, WIDTH)).astype(np.uint8)
        # Of 7 bits: without VNNI, ONNX Runtime's sums of two products saturate.
        w = random.integers(-64, 64, (WIDTH, 3 * WIDTH)).astype(np.int8)
        zero, scales = np.array(128, np.uint8), [np.float32(0.01), np.float32(0.005)]
        given = [x, w, bias, *map(np.array, scales), mask, zero, None, kept]
        projected = (x.astype(np.float64) - 128) @ w * 0.01 * 0.005 + bias
        found = both("QAttention", given, outputs=(True, past), **numbers)
    else:
        x, w = (
            floats(random, BATCH, LENGTH, WIDTH),
            floats(random, WIDTH, 3 * WIDTH) / 4,
        )
        projected = x.astype(np.float64) @ w + bias
        given = [x, w, bias, mask, kept]
        found = both("Attention", given, outputs=(True, past), **numbers)
    q, k, v = map(split, np.split(projected, 3, -1))
    if kept is not None:
        k, v = np.concatenate([kept[0], k], 2), np.concatenate([kept[1], v], 2)
    if one_way:
        added = added + causal(LENGTH, keys)
    check((found[0][0], found[1][0]), exact(q, k, v, added), STEPS, 8)
    if past:
        check((found[0][1], found[1][1]), np.stack([k, v]), 60, 8)


def test_a_bias_of_scores_and_values_of_another_size() -> None:
    random = drawn(8)
    x, w = floats(random, BATCH, LENGTH, 7), floats(random, 7, 2 * WIDTH + 9) / 4
    bias, added = (
        floats(random, 2 * WIDTH + 9),
        floats(random, 1, HEADS, LENGTH, LENGTH),
    )
    ours, theirs = both(
        "Attention", [x, w, bias, None, None, added], num_heads=HEADS,
        qkv_hidden_sizes=[WIDTH, WIDTH, 9], scale=0.25,
    )  # fmt: skip
    projected = x.astype(np.float64) @ w + bias
    q, k, v = map(split, np.split(projected, [WIDTH, 2 * WIDTH], -1))
    check((ours[0], theirs[0]), exact(q, k, v, added, 0.25), STEPS, 8)


@pytest.mark.drawn
@pytest.mark.parametrize("form", ["", "keys", "pairs", "ends"])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("one_way", [0, 1])
def test_of_three_inputs(form: str, past: bool, biased: bool, one_way: int) -> None:
    random = drawn(9)
    q, k, v = (floats(random, BATCH, LENGTH, WIDTH) for _ in range(3))
    bias = floats(random, 3 * WIDTH) if biased else None
    kept = [floats(random, BATCH, HEADS, PAST, SIZE) for _ in range(2)] if past else []
    keys = LENGTH + PAST * past
    mask, added = mask_of(form, keys)
    found = both(
        "MultiHeadAttention", [q, k, v, bias, mask, None, *kept], num_heads=HEADS,
        unidirectional=one_way, mask_filter_value=MASKED, outputs=(True, past, past),
    )  # fmt: skip
    parts = np.split(np.zeros(3 * WIDTH) if bias is None else bias, 3)
    q, k, v = (split(x + part) for x, part in zip((q, k, v), parts, strict=True))
    if kept:
        k, v = np.concatenate([kept[0], k], 2), np.concatenate([kept[1], v], 2)
    added = added + (causal(LENGTH, keys) if one_way else 0)
    check((found[0][0], found[1][0]), exact(q, k, v, added), STEPS, 8)
    for index, x in enumerate((k, v)[: 2 * past]):
        check((found[0][1 + index], found[1][1 + index]), x, 4, 8)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    ("name", "queries"),
    [("MultiHeadAttention", 5), ("DecoderMaskedMultiHeadAttention", 1)],
)
def test_keys_that_are_split_already(name: str, queries: int, biased: bool) -> None:
    random = drawn(10)
    q = floats(random, BATCH, queries, WIDTH)
    k, v = (floats(random, BATCH, HEADS, 7, SIZE) for _ in range(2))
    mask, added = mask_of("keys", 7)
    bias = floats(random, 3 * WIDTH) if biased else None
    given = [q, k, v, bias, mask]
    if queries == 1:
        given = [q, k, v, mask, *[None] * 6, bias]
    ours, theirs = both(name, given, num_heads=HEADS, mask_filter_value=MASKED)
    total = q + (0 if bias is None else bias[:WIDTH])
    check((ours[0], theirs[0]), exact(split(total), k, v, added), STEPS, 8)


@pytest.mark.parametrize("count", [2, 3])
def test_packed(count: int) -> None:
    """ONNX Runtime has no code for it on CPUs."""
    random = drawn(11)
    packed = floats(random, BATCH, LENGTH, HEADS, count, SIZE)
    q = floats(random, BATCH, LENGTH, WIDTH)
    given = [packed] if count == 3 else [q, packed]
    (got,) = run("MultiHeadAttention", given, num_heads=HEADS)
    parts = [packed[:, :, :, i].transpose(0, 2, 1, 3) for i in range(count)]
    wanted = exact(*(parts if count == 3 else [split(q), *parts]))
    check((got, got), wanted, STEPS, 8)


def test_scores_are_an_output() -> None:
    random = drawn(12)
    q, k, v = (floats(random, BATCH, LENGTH, WIDTH) for _ in range(3))
    given = [q, k, v]
    _, got = run(
        "MultiHeadAttention", given, num_heads=HEADS, outputs=(True, False, False, True)
    )
    wanted = split(q) @ split(k).swapaxes(-1, -2) / np.sqrt(SIZE)
    check((got, got), wanted, 20, 8)


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "reason"),
    [
        ("Attention", {"do_rotary": 1}, 3, "its attribute do_rotary = 1 is not"),
        ("Attention", {"past_present_share_buffer": 1}, 3,
         "its attribute past_present_share_buffer = 1 is not supported"),
        ("MultiHeadAttention", {}, 1, "its input 1, the keys, is missing"),
        ("MultiHeadAttention", {}, 7, "it has only one of the past keys and values"),
    ],
)  # fmt: skip
def test_refusals(
    name: str, attributes: dict[str, int], inputs: int, reason: str
) -> None:
    x = np.zeros((BATCH, LENGTH, WIDTH), np.float32)
    w, past = np.zeros((WIDTH, 3 * WIDTH), np.float32), x.reshape(2, 3, 5, 4)
    given: list[Array | None] = [x, w, w[0]]
    if name != "Attention":
        given = [x, x, x, None, None, None, past]
    with pytest.raises(Unsupported, match=reason):
        run(name, given[:inputs], num_heads=HEADS, **attributes)
