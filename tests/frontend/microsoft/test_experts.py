"""Mixtures of experts against ONNX Runtime and float64, with drawn sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Unsupported
from tests.frontend.microsoft.single import both, check, floats, run

Array = np.ndarray
R = np.random.default_rng(5)


def softmax(x: Array) -> Array:
    made = np.exp(x - x.max(-1, keepdims=True))
    return made / made.sum(-1, keepdims=True)


def activated(x: Array, name: str) -> Array:
    match name:
        case "relu":
            return np.maximum(x, 0)
        case "gelu":
            return x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
        case "silu":
            return x / (1 + np.exp(-x))
        case "swiglu":
            gate, line = x[..., 0::2], x[..., 1::2]
            gate, line = np.minimum(gate, 2), np.clip(line, -2, 2)
            return gate / (1 + np.exp(-1.5 * gate)) * (line + 0.5)
        case _:
            return x


def exact(
    x: Array,
    logits: Array,
    weights: list[Array],
    name: str,
    k: int,
    shares: Array | None,
) -> Array:
    """shares: of each expert; by default those of the chosen ones among them."""
    w1, b1, w2, b2 = (w.astype(np.float64) for w in weights)
    hidden = np.einsum("th,eih->eti", x.astype(np.float64), w1) + b1[:, None]
    outputs = np.einsum("eti,ehi->teh", activated(hidden, name), w2) + b2
    made = np.zeros(x.shape)
    for row, (scores, parts) in enumerate(zip(logits, outputs, strict=True)):
        top = np.argsort(-scores)[:k]
        share = softmax(scores[top]) if shares is None else shares[row][top]
        made[row] = share @ parts[top]
    return made


LIMITS = {"swiglu_limit": 2.0, "activation_alpha": 1.5, "activation_beta": 0.5}


@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "identity", "swiglu"])
def test_mixture(name: str) -> None:
    tokens, width, inner, experts = (int(n) for n in R.integers(3, 12, 4))
    k, normalize, is_gated = int(R.integers(1, 3)), int(R.integers(2)), name == "swiglu"
    x, logits = floats(R, tokens, width), floats(R, tokens, experts)
    wide = inner * (2 if is_gated else 1)
    weights = [
        floats(R, experts, wide, width), floats(R, experts, wide),
        floats(R, experts, width, inner), floats(R, experts, width),
    ]  # fmt: skip
    more: dict[str, Any] = {"swiglu_fusion": 1, **LIMITS} if is_gated else {}
    ours, theirs = both(
        "MoE", [x, logits, *weights], k=k, activation_type=name,
        normalize_routing_weights=normalize, **more,
    )  # fmt: skip
    wanted = exact(
        x, logits, weights, name, k, None if normalize else softmax(logits)
    )  # fmt: skip
    check((ours[0], theirs[0]), wanted, 200, abs(wanted).max() + 8)


def test_gate_of_its_own() -> None:
    """ONNX Runtime's kernel for CPUs has none: the formula is Mixtral's."""
    x, logits = floats(R, 2, 3, 6), floats(R, 6, 3)
    w1, w2, w3 = floats(R, 3, 5, 6), floats(R, 3, 6, 5), floats(R, 3, 5, 6)
    (ours,) = run("MoE", [x, logits, w1, None, w2, None, w3], activation_type="silu")
    rows = x.reshape(6, 6).astype(np.float64)
    hidden, gate = (np.einsum("th,eih->tei", rows, w) for w in (w1, w3))
    parts = np.einsum("tei,ehi->teh", activated(hidden, "silu") * gate, w2)
    top, share = logits.argmax(-1), softmax(logits).max(-1)
    wanted = (parts[range(6), top] * share[:, None]).reshape(2, 3, 6)
    check((ours, ours), wanted, 100, abs(wanted).max() + 8)


def packed(x: Array, bits: int) -> Array:
    per = 8 // bits
    parts = x.reshape(*x.shape[:-1], -1, per) << np.arange(0, 8, bits, dtype=np.uint8)
    return parts.sum(-1).astype(np.uint8)


def zeros_of(zeros: Array, bits: int, block: int) -> Array:
    """Packed along rows, or along blocks."""
    return packed(zeros if block else zeros[..., 0], bits)


@pytest.mark.drawn
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("is_shared", [False, True])
def test_quantized_mixture(bits: int, block: int, is_shared: bool) -> None:
    """is_shared: zero points, and shares of experts beside what chooses them."""
    experts, width, inner, tokens = 3, 64, 128, int(R.integers(2, 7))
    x, logits = floats(R, tokens, width), floats(R, tokens, experts)
    steps: list[Array | None] = []
    numbers: list[Array] = []
    zeros: list[Array] = []
    for rows, depth in ((2 * inner, width), (width, inner)):
        whole = R.integers(0, 1 << bits, (experts, rows, depth)).astype(np.uint8)
        blocks = depth // block if block else 1
        scales = (0.02 * R.random((experts, rows, blocks))).astype(np.float32)
        zero = np.full(scales.shape, 1 << (bits - 1), np.uint8)
        if is_shared:
            zero = R.integers(0, 1 << bits, scales.shape).astype(np.uint8)
        repeated = [
            np.repeat(v.astype(np.float64), depth // blocks, -1) for v in (zero, scales)
        ]
        numbers.append((whole - repeated[0]) * repeated[1])
        zeros.append(zeros_of(zero, bits, block))
        steps += [packed(whole, bits), scales if block else scales[..., 0], None]
    shares = softmax(floats(R, tokens, experts)) if is_shared else None
    more = [None, None, None, *zeros, None, shares] if is_shared else []
    given = [x, logits, *steps, *more]
    ours, theirs = both(
        "QMoE", given, k=2, activation_type="swiglu", swiglu_fusion=1, **LIMITS,
        constants=(2, 3, 5, 6, *((11, 12) if is_shared else ())),
        expert_weight_bits=bits, block_size=block or None,
    )  # fmt: skip
    none = [np.zeros((experts, n)) for n in (2 * inner, width)]
    weights = [numbers[0], none[0], numbers[1], none[1]]
    wanted = exact(x, logits, weights, "swiglu", 2, shares)
    size = abs(wanted).max() + 8
    check((ours[0], ours[0]), wanted, 400, size)
    # With blocks of 8 bits it rounds tokens to 8 bits by the way.
    slack = 0.05 if bits == 8 and block else 1e-5
    assert abs(theirs[0] - wanted).max() <= slack * size


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"use_sparse_mixer": 1}, "use_sparse_mixer = 1 is not supported"),
        ({"activation_type": "cube"}, "activation_type = cube is not supported"),
    ],
)
def test_refusals(attributes: dict[str, Any], reason: str) -> None:
    given = [
        floats(R, 2, 4),
        floats(R, 2, 3),
        floats(R, 3, 5, 4),
        None,
        floats(R, 3, 4, 5),
    ]
    with pytest.raises(Unsupported, match=reason):
        run("MoE", given, **attributes)
