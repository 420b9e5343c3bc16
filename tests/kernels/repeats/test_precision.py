"""`--precision bf16` reaches into bodies: products of each step, and nothing else."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nanoloom.compiler import Report, partition_model
from nanoloom.model.source import source_of
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.kernels.repeats.whole import compiled
from tests.linalg.recurrences import DEFAULTS, FORMULAS, reference
from tests.linalg.recurrent_cases import arrays_of
from tests.linalg.single import model_of
from tests.vector.kernel_harness import shared_cache

F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
U, EPS = 2.0**-8, float(np.finfo(np.float32).eps)  # of bf16, whose last place is 2 U
STEPS, INPUTS, SIZE = 4, 24, 40


def drawn(op: str, batch: int) -> dict[str, np.ndarray]:
    made = arrays_of(op, 2, (STEPS, batch, INPUTS, SIZE), F32, lengths=False)
    return made | {name: np.zeros_like(made[name]) for name in ("b", "h", "c", "p")}


def right(op: str, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    functions = [
        [lambda x, n=name: FORMULAS[n](x, 0, 0) for name in DEFAULTS[op]]
        for _ in range(2)
    ]
    return reference(op, functions, [False, True], arrays, {}, np.inf)


@pytest.mark.drawn
@pytest.mark.parametrize("batch", [1, 3, 20])
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_numbers(op: str, batch: int) -> None:
    """Operands are rounded, sums are f32.

    Of the operands x, W and R are rounded in the reference, too; a state is not, which
    is off by U of it, and sums of |R| are 1/4.  GRU rounds a second product's operand.
    Errors of earlier steps do not grow (recurrent_cases.check).
    """
    arrays = drawn(op, batch)
    outputs = 3 if op == "LSTM" else 2
    given = {"direction": "bidirectional", "hidden_size": SIZE}
    inputs = [arrays[name] for name in "xwr"]
    model, feeds = model_of(op, inputs, given, constants=(1, 2), outputs=outputs)
    got = compiled(model, feeds, precision="bf16")
    exact = right(op, arrays)[:outputs]
    near = {name: arrays[name].astype(BF16).astype(F32) for name in "xwr"}
    bound = 2 * STEPS * ((INPUTS + SIZE + 16) * EPS + (2 if op == "GRU" else 1) * U / 4)
    for made, y, other in zip(got, right(op, arrays | near), exact, strict=False):
        assert np.abs(made - y).max() <= bound
        assert np.abs(made - y).max() < np.abs(made - other).max()  # not in f32
        assert np.abs(y).max() > 10 * bound


def test_states_stay_in_f32() -> None:
    """The product of a step, on a target that multiplies bf16; its gates are f32."""
    inputs = [drawn("LSTM", 3)[name] for name in "xwr"]
    given = {"direction": "bidirectional", "hidden_size": SIZE}
    model, feeds = model_of("LSTM", inputs, given, constants=(1, 2), outputs=3)
    source = source_of(model, shared_cache())
    bound = source.bound({name: x.shape for name, x in feeds.items()}, {})
    options = CompileOptions(by_name("sapphirerapids"), "bf16")
    program = partition_model(bound, options, Report())
    texts = {
        call.kernel: program.kernels[call.kernel].text
        for number, call in enumerate(program.calls)
        if program.trips(number) == STEPS
    }
    products = [text for name, text in texts.items() if name.startswith("contraction")]
    assert len(products) == 1
    assert f"tensor<{4 * SIZE}x{SIZE}xbf16>" in products[0].replace("4x40x40", "160x40")
    gates = [text for text in texts.values() if "math.tanh" in text]
    assert gates and not any("bf16" in text for text in gates)
