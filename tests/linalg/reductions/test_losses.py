"""Losses over classes against float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import Unsupported
from tests.drawn_cases import few_examples
from tests.linalg.bounds import sample, wide, within
from tests.linalg.single import run_node

STEPS = 200.0  # sums of up to 60 terms of size 8, over weights of at least 0.5


def expected(
    logs: np.ndarray, t: np.ndarray, w: np.ndarray | None, ignored: int | None,
    form: str,
) -> np.ndarray:  # fmt: skip
    place = np.clip(np.where(t < 0, t + logs.shape[1], t), 0, logs.shape[1] - 1)
    weight = np.ones(t.shape) if w is None else wide(w)[place]
    if ignored is not None:
        weight = np.where(t == ignored, 0, weight)
    picked = np.take_along_axis(logs, place[:, None], 1)[:, 0]
    each = -picked * weight
    if form == "none":
        return each
    return each.sum() if form == "sum" else each.sum() / weight.sum()


def log_softmax(x: np.ndarray) -> np.ndarray:
    return x - np.log(np.exp(x).sum(1, keepdims=True))


@few_examples(30)
@given(
    st.sampled_from(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]),
    st.sampled_from([(), (5,), (3, 2)]), st.sampled_from(["none", "sum", "mean"]),
    st.booleans(), st.sampled_from([None, 1, -1]),
    st.sampled_from(["float32", "float64", "float16"]),
)  # fmt: skip
def test_losses(
    op: str, inner: tuple[int, ...], form: str, weighted: bool, ignored: int | None,
    name: str,
) -> None:  # fmt: skip
    x = sample(1, (3, 5, *inner), name)
    t = sample(2, (3, *inner), "int64", 0, 4)
    if ignored is not None:
        t.reshape(-1)[0] = ignored
    w = sample(3, (5,), name, 0.5, 2) if weighted else None
    inputs = [x, t, w]
    (got,) = run_node(op, inputs, reduction=form, ignore_index=ignored, version=13)
    logs = wide(x) if op.startswith("Neg") else log_softmax(wide(x))
    exact = np.asarray(expected(logs, t, w, ignored, form))
    assert got.dtype == x.dtype
    assert within(got, exact, STEPS, abs(exact) + 1)
    assert not within(got + 1, exact, STEPS, abs(exact) + 1)


def test_logarithms_beside_the_loss() -> None:
    x, t = sample(4, (3, 5, 2), "float32"), sample(5, (3, 2), "int32", 0, 4)
    loss, logs = run_node("SoftmaxCrossEntropyLoss", [x, t], outputs=2, version=13)
    exact = log_softmax(wide(x))
    assert loss.shape == () and within(logs, exact, 40, 9)
    assert not within(logs + 1, exact, 40, 9)


def test_an_unknown_reduction_is_refused() -> None:
    x, t = sample(6, (3, 5), "float32"), sample(7, (3,), "int64", 0, 4)
    with pytest.raises(Unsupported, match="reduction = 'median'"):
        run_node("NegativeLogLikelihoodLoss", [x, t], reduction="median", version=13)
