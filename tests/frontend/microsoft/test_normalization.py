"""Normalized sums against float64, and against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.microsoft.single import both, check, floats, run
from tests.linalg.bounds import within

Array = np.ndarray
SKIPS = [(2, 5, 7), (1, 5, 7), (5, 7)]


def normal(x: Array, epsilon: float, *, centered: bool = True) -> Array:
    middle = x.mean(-1, keepdims=True) if centered else 0
    return (x - middle) / np.sqrt(((x - middle) ** 2).mean(-1, keepdims=True) + epsilon)


def steps_of(count: int) -> float:
    """Sums of so many numbers up to 4, over a deviation not below 0.1."""
    return 80 * count + 24


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("centered", [True, False])
def test_skip(seed: int, centered: bool) -> None:
    random = np.random.default_rng(seed)
    x, skip = floats(random, 2, 5, 7), floats(random, *SKIPS[seed % 3])
    if not centered:
        skip = floats(random, 2, 5, 7)
    gamma = floats(random, 7)
    beta = floats(random, 7) if seed % 2 and centered else None
    bias = floats(random, 7) if seed > 2 else None
    name = "SkipLayerNormalization" if centered else "SkipSimplifiedLayerNormalization"
    inputs = [x, skip, gamma, beta, bias] if centered else [x, skip, gamma, bias]
    wanted = (True, False, False, True) if seed % 2 else (True,)
    epsilon = 1e-3 if seed < 4 else None
    ours, theirs = both(name, inputs, outputs=wanted, opset=11 + seed, epsilon=epsilon)
    total = x.astype(np.float64) + skip + (0 if bias is None else bias)
    exact = normal(total, epsilon or 1e-12, centered=centered) * gamma
    exact = exact + (0 if beta is None else beta)
    check((ours[0], theirs[0]), exact, steps_of(7), abs(exact) + 4)
    if len(ours) > 1:
        check((ours[1], theirs[1]), total, 2, abs(x) + abs(skip) + 4)


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
@pytest.mark.parametrize("axis", [-1, 1])
def test_simplified(domain: str, axis: int) -> None:
    random = np.random.default_rng(axis + 1)
    x, scale = floats(random, 3, 35), floats(random, 35)
    if not domain:
        ours, theirs = both(
            "SimplifiedLayerNormalization", [x, scale], domain="", axis=axis
        )
    else:  # ONNX Runtime has it in ONNX's domain only
        ours = run("SimplifiedLayerNormalization", [x, scale], axis=axis)
        theirs = ours
    exact = normal(x.astype(np.float64), 1e-5, centered=False) * scale
    check((ours[0], theirs[0]), exact, steps_of(35), abs(exact) + 4)


@pytest.mark.parametrize("opset", [9, 11, 16])
def test_a_layer_normalization_in_a_model_older_than_itself(opset: int) -> None:
    random = np.random.default_rng(opset)
    x, gamma, beta = floats(random, 3, 7), floats(random, 7), floats(random, 7)
    ours, theirs = both("LayerNormalization", [x, gamma, beta], domain="", opset=opset)
    exact = normal(x.astype(np.float64), 1e-5) * gamma + beta
    check((ours[0], theirs[0]), exact, steps_of(7), abs(exact) + 4)


@pytest.mark.drawn
@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("places", [None, (2, 5), (1, 5)])
@pytest.mark.parametrize("masked", [True, False])
def test_embedding(
    segments: bool, places: tuple[int, int] | None, masked: bool
) -> None:
    random = np.random.default_rng(len(places or ()) + 2 * segments + masked)

    def indices(limit: int, *shape: int) -> Array:
        return random.integers(0, limit, shape).astype(np.int32)

    ids, kinds = indices(11, 2, 5), indices(2, 2, 5) if segments else None
    tables = [floats(random, count, 6) for count in (11, 9, 2)]
    gamma, beta = floats(random, 6), floats(random, 6)
    mask = indices(3, 2, 5) if masked else None
    rows = None if places is None else indices(9, *places)
    ours, theirs = both(
        "EmbedLayerNormalization",
        [ids, kinds, *tables[:2], tables[2] if segments else None, gamma, beta, mask,
         rows],
        outputs=(True, True, True), epsilon=1e-3,
    )  # fmt: skip
    total = tables[0].astype(np.float64)[ids]
    total = total + tables[1][np.arange(5) if rows is None else rows]
    total = total + (tables[2][kinds] if kinds is not None else 0)
    exact = normal(total, 1e-3) * gamma + beta
    check((ours[0], theirs[0]), exact, steps_of(6), abs(exact) + 4)
    lengths = np.zeros(2, np.int32) if mask is None else (mask == 1).sum(1)
    assert (ours[1] == lengths).all() and (theirs[1] == lengths).all()
    check((ours[2], theirs[2]), total, 2, abs(total) + 8)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("skips", [True, False])
def test_groups(last: int, skips: bool) -> None:
    """ONNX Runtime has no code for them on CPUs."""
    random = np.random.default_rng(last)
    x, gamma, beta = floats(random, 2, 3, 5, 6), floats(random, 6), floats(random, 6)
    skip, bias = floats(random, 2, 6), floats(random, 6)
    images = x if last else x.transpose(0, 3, 1, 2)
    inputs = [images, gamma, beta, *([skip, bias] if skips else [])]
    name = "SkipGroupNorm" if skips else "GroupNorm"
    made = run(name, inputs, groups=3, activation=1, channels_last=last)
    (got,) = made if last else [made[0].transpose(0, 2, 3, 1)]
    total = x.astype(np.float64)
    total = total + (skip[:, None, None] + bias if skips else 0)
    rows = total.reshape(2, 15, 3, 2).transpose(0, 2, 1, 3).reshape(2, 3, 30)
    back = normal(rows, 1e-5).reshape(2, 3, 15, 2).transpose(0, 2, 1, 3)
    exact = back.reshape(x.shape) * gamma + beta
    exact = exact / (1 + np.exp(-exact))
    assert within(got, exact, steps_of(30), abs(exact) + 4)
    assert not within(got + 1, exact, steps_of(30), abs(exact) + 4)


def test_embedding_of_quantized_tables() -> None:
    random = np.random.default_rng(8)
    ids = random.integers(0, 9, (2, 5)).astype(np.int32)
    kinds, mask = (ids % 2).astype(np.int32), (ids > 3).astype(np.int32)
    shapes = [(9, 6), (7, 6), (2, 6), (6,), (6,)]
    tables = [random.integers(0, 256, shape).astype(np.uint8) for shape in shapes]
    scales = [np.array(0.01 + 0.01 * i, np.float32) for i in range(5)]
    zeros = [np.array(100 + 9 * i, np.uint8) for i in range(5)]
    given = [ids, kinds, *tables, mask, *scales, *zeros]
    ours, theirs = both(
        "QEmbedLayerNormalization", given, outputs=(True, True), epsilon=1e-3,
        constants=range(2, 7),
    )  # fmt: skip
    words, places, segments, gamma, beta = (
        (x.astype(np.float64) - int(z)) * float(s)
        for x, s, z in zip(tables, scales, zeros, strict=True)
    )
    total = words[ids] + places[:5] + segments[kinds]
    exact = normal(total, 1e-3) * gamma + beta
    check((ours[0], theirs[0]), exact, steps_of(6), abs(exact) + 16)
    assert (ours[1] == mask.sum(1)).all() and (theirs[1] == mask.sum(1)).all()
