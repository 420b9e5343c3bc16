"""Gates, norms of branches, and attention with a state, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontend.microsoft.single import both, floats

Array = np.ndarray
R = np.random.default_rng(8)
C, H, T = (int(n) for n in R.integers(3, 8, 3))
X, FLAT, ROW = floats(R, 2, T, C, H), floats(R, 2, T, C * H), floats(R, 2, T, H)
CASES: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("GatedRMSNorm", [FLAT, floats(R, H), floats(R, 2, T, C * H)], {"epsilon": 0.1}),
    ("GatedRMSNorm", [ROW, floats(R, H), ROW], {"activation": "sigmoid"}),
    ("GatedAdd", [ROW, floats(R, 2, T, H), floats(R, 2, T, 1)], {}),
    ("ScaledSiLU", [ROW], {"alpha": 1.5}),
    ("ScaledSiLU", [ROW, np.array(0.3, np.float32)], {"alpha": 1.5}),
    ("BranchwiseRMSNorm", [X], {}),
    ("BranchwiseRMSNorm", [FLAT, floats(R, C * H)], {"num_branches": C}),
    ("BranchwiseRMSNorm", [X, floats(R, C, H)], {"epsilon": 0.1}),
    ("BranchwiseRMSNorm", [X, floats(R, H)], {}),
    ("HyperConnectionPreMix", [X, floats(R, 2, T, C)], {"reduction_scale": 0.5}),
    ("HyperConnectionPreMix", [X, floats(R, 2, T, C, H)], {}),
    ("HyperConnectionPreMix", [FLAT, floats(R, 2, T, C * H)], {"num_branches": C}),
    ("HyperConnectionPostMix", [X, ROW, floats(R, 2, T, C), floats(R, 2, T, C, C)], {}),
    ("HyperConnectionPostMix", [FLAT, ROW, floats(R, 2, T, C, 1)], {"num_branches": C}),
    ("LinearAttentionGate", [ROW, *(floats(R, H) for _ in range(2)), ROW], {}),
    ("CausalConvWithState", [floats(R, 2, C, T), floats(R, C, 1, 4), floats(R, C)],
     {"activation": "silu"}),
    ("CausalConvWithState",
     [floats(R, 2, C, T), floats(R, C, 1, 3), None, floats(R, 2, C, 4)],
     {"dilation": 2}),
    ("CausalConvWithState", [floats(R, 2, C, T), floats(R, C, 1, 1)], {}),
]  # fmt: skip
RULES = ["linear", "gated", "delta", "gated_delta"]


def compare(name: str, inputs: list[Array | None], attributes: dict[str, Any]) -> None:
    """Within 40 roundings of the largest element, as few terms are added up."""
    pair = name.endswith("State") or name.startswith("LinearAttention")
    found = both(name, inputs, outputs=(True,) * (2 if pair else 1), **attributes)
    for ours, theirs in zip(*found, strict=True):
        assert ours.shape == theirs.shape
        if not ours.size:
            continue
        assert abs(ours - theirs).max() <= 40 * 2.0**-24 * abs(theirs).max()
        assert abs(np.roll(ours, 1, -1) - theirs).max() > 1e-2 * abs(theirs).max()


@pytest.mark.parametrize("case", range(len(CASES)))
def test_against_runtime(case: int) -> None:
    compare(*CASES[case])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("by_key", [False, True])
def test_linear_attention(rule: str, by_key: bool) -> None:
    """by_key: the state decays by the element of a key, and one is given."""
    batch, tokens, group, depth, width = (int(n) for n in R.integers(2, 6, 5))
    heads = group * int(R.integers(1, 3))
    past = floats(R, batch, group, depth, width) if by_key else None
    decay = -abs(floats(R, batch, tokens, group * (depth if by_key else 1)))
    given = [
        floats(R, batch, tokens, heads * depth),
        floats(R, batch, tokens, group * depth) / 4,
        floats(R, batch, tokens, group * width),
        past,
        decay if rule.startswith("gated") else None,
        abs(floats(R, batch, tokens, group)) / 4 if rule.endswith("delta") else None,
    ]
    compare(
        "LinearAttention", given,
        {"q_num_heads": heads, "kv_num_heads": group, "update_rule": rule},
    )  # fmt: skip
