"""RNN, GRU and LSTM against ONNX's equations, one time step and one row at a time."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import Unsupported
from tests.drawn_cases import few_examples
from tests.linalg.recurrences import FORMULAS
from tests.linalg.recurrent_cases import compare
from tests.linalg.single import run_node


@given(
    st.sampled_from(["RNN", "GRU", "LSTM"]),
    st.sampled_from(["forward", "reverse", "bidirectional"]),
    st.tuples(
        st.integers(1, 5), st.sampled_from([1, 3]), st.integers(1, 4), st.integers(1, 5)
    ),
    st.sets(st.sampled_from(["b", "lengths", "h", "c", "p"])),
    st.integers(0, 1),
    st.sampled_from([None, 0.25]),
    st.booleans(),
    st.booleans(),
)
@few_examples(20)
def test_every_option(
    op: str,
    direction: str,
    shape: tuple[int, int, int, int],
    given_inputs: set[str],
    layout: int,
    clip: float | None,
    flag: bool,
    constant: bool,
) -> None:
    option = {"GRU": "linear_before_reset", "LSTM": "input_forget"}.get(op)
    compare(
        op,
        direction,
        shape,
        np.dtype(np.float64),
        given=sorted(given_inputs),
        layout=layout,
        clip=clip,
        constants=[1, 2] if constant else [],
        **({option: int(flag)} if option else {}),
    )


@pytest.mark.drawn
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_types(op: str, name: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, name, name))
    compare(op, "bidirectional", (3, 2, 5, 7), kind)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_activation_functions(name: str) -> None:
    compare(
        "RNN",
        "bidirectional",
        (3, 2, 3, 5),
        np.dtype(np.float64),
        names=[name, "Tanh" if name != "Tanh" else "Affine"],
    )


def test_activations_of_both_directions_take_their_own_parameters() -> None:
    names = ["HardSigmoid", "Affine", "Elu", "LeakyRelu", "ScaledTanh", "Tanh"]
    compare("LSTM", "bidirectional", (2, 2, 3, 2), np.dtype(np.float64), names=names)


def test_no_time_steps_and_no_rows() -> None:
    compare("LSTM", "forward", (0, 2, 3, 4), np.dtype(np.float32))
    compare("GRU", "reverse", (2, 0, 3, 4), np.dtype(np.float32))


def test_refusals() -> None:
    x, w, r = (np.ones(s, np.float32) for s in ((2, 1, 3), (1, 4, 3), (1, 4, 4)))
    with pytest.raises(Unsupported, match="activation Cosine is not known"):
        run_node("RNN", [x, w, r], hidden_size=4, activations=["Cosine"])
    with pytest.raises(Unsupported, match="needs 1 activations and has 2"):
        run_node("RNN", [x, w, r], hidden_size=4, activations=["Tanh", "Tanh"])
