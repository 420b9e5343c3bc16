"""RNN, GRU and LSTM as programs: each option against ONNX's equations."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.repeats.whole import run_compiled
from tests.linalg.recurrent_cases import compare

F32 = np.dtype(np.float32)
WEIGHTS = (1, 2, 3)


@pytest.mark.drawn
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_directions(op: str, direction: str, steps: int) -> None:
    """Odd and even numbers of trips leave their states in different places."""
    given = ("b", "h", "c")
    compare(
        op, direction, (steps, 3, 5, 21), F32,
        given=given, constants=WEIGHTS, run=run_compiled,
    )  # fmt: skip


@pytest.mark.drawn
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_everything_given(op: str, direction: str) -> None:
    """Lengths, initial states, peepholes and clips, with batches in front."""
    compare(
        op, direction, (5, 3, 4, 19), F32,
        layout=1, clip=0.25, constants=WEIGHTS, run=run_compiled,
    )  # fmt: skip


@pytest.mark.parametrize("weights", [WEIGHTS, ()])
def test_nothing_given(weights: tuple[int, ...]) -> None:
    """Weights may be inputs, too."""
    for op in ("RNN", "GRU", "LSTM"):
        constants = tuple(w for w in weights if w < 3)
        compare(
            op, "reverse", (4, 1, 3, 18), F32,
            given=(), constants=constants, run=run_compiled,
        )  # fmt: skip


@pytest.mark.parametrize("op", ["GRU", "LSTM"])
def test_variants_of_cells(op: str) -> None:
    option = {"GRU": "linear_before_reset", "LSTM": "input_forget"}[op]
    for given in ((), ("b", "lengths", "h")):
        compare(
            op, "bidirectional", (6, 2, 4, 17), F32,
            given=given, run=run_compiled, **{option: 1},
        )  # fmt: skip


def test_activations_of_both_directions() -> None:
    names = ["HardSigmoid", "Affine", "Elu", "LeakyRelu", "ScaledTanh", "Tanh"]
    compare("LSTM", "bidirectional", (3, 2, 3, 9), F32, names=names, run=run_compiled)


@pytest.mark.parametrize("kind", [np.float64, np.float16])
def test_types(kind: type) -> None:
    compare("LSTM", "bidirectional", (4, 2, 5, 7), np.dtype(kind), run=run_compiled)
    compare("GRU", "reverse", (3, 2, 5, 7), np.dtype(kind), run=run_compiled)
