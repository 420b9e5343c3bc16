"""Nodes whose sizes are names in the model, and half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontend.microsoft.single import floats, model_of, of, run

Array = np.ndarray
R = np.random.default_rng(2)
X, Q = floats(R, 2, 5, 12), [floats(R, 2, 5, 12) for _ in range(3)]
W, BIAS = floats(R, 12, 36) / 4, floats(R, 36)
ENDS, PAIR = np.array([3, 5], np.int32), np.array([3, 5, 1, 0], np.int32)
GROUPED = [floats(R, 2, 5, 64), floats(R, 2, 5, 32), floats(R, 2, 5, 32)]
SIZES = [np.array([4, 2], np.int32), np.array(5, np.int32)]
CASES: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("SkipLayerNormalization", [X, Q[0], BIAS[:12]], {}),
    ("FusedMatMul", [X, Q[0]], {"transB": 1}),
    ("Attention", [X, W, BIAS, ENDS], {"num_heads": 3, "unidirectional": 1}),
    ("Attention", [X, W, BIAS, PAIR], {"num_heads": 3, "mask_filter_value": -1.5}),
    ("MultiHeadAttention", Q, {"num_heads": 3, "unidirectional": 1}),
    ("MultiHeadAttention", [*Q, BIAS, ENDS], {"num_heads": 3}),
    ("GroupQueryAttention", [*GROUPED, None, None, *SIZES],
     {"num_heads": 4, "kv_num_heads": 2}),
    ("RotaryEmbedding", [X, np.array([3]), *(floats(R, 20, 2) for _ in range(2))],
     {"num_heads": 3, "rotary_embedding_dim": 4}),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_names_for_sizes(case: int) -> None:
    name, inputs, attributes = CASES[case]
    several = (True,) * 3 if name == "GroupQueryAttention" else (True,)
    model, feeds = model_of(
        name, inputs, attributes, named=range(len(inputs)), outputs=several
    )
    ours, theirs = of(model, feeds)
    # Rows behind the end of a text are nobody's.
    rows = slice(None, 3) if name == "GroupQueryAttention" else slice(None)
    one, other = ours[0][:, rows], theirs[0][:, rows]
    assert one.shape == other.shape
    assert abs(one - other).max() <= 1e-5 * abs(other).max()
    assert abs(np.roll(one, 1, -1) - other).max() > 1e-2


@pytest.mark.parametrize("case", range(len(CASES)))
def test_half_precision(case: int) -> None:
    """Within roundings of 2^-11 of what the same numbers give in float32."""
    name, inputs, attributes = CASES[case]
    several = (True,) * 3 if name == "GroupQueryAttention" else (True,)
    halves = [x.astype(np.float16) if is_float(x) else x for x in inputs]
    floats32 = [x.astype(np.float32) if is_float(x) else x for x in halves]
    (got, *_) = run(name, halves, outputs=several, **attributes)
    (exact, *_) = run(name, floats32, outputs=several, **attributes)
    assert got.dtype == np.float16
    bound = 40 * 2.0**-11 * abs(exact).max()
    assert abs(got - exact).max() <= bound
    assert abs(np.roll(got, 1, -1) - exact).max() > bound


def is_float(x: Array | None) -> bool:
    return x is not None and x.dtype == np.float32
