"""CumSum and CumProd along any axis, forwards and backwards."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nanoloom
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.reductions.cumulative import accumulate
from nanoloom.memory.calls import Storage
from tests.drawn_cases import few_examples
from tests.guarded import Side, run_guarded
from tests.linalg.bounds import FLOATS, sample, wide, within
from tests.linalg.single import run_node
from tests.vector.kernel_harness import program_of

OPS = {"CumSum": (np.cumsum, 14, 0), "CumProd": (np.cumprod, 26, 1)}
SHAPES = [(7,), (1, 5), (3, 1, 7), (2, 3, 5, 3), (0, 3), (2, 3, 35), (3, 16)]


def accumulated(
    op: str, x: np.ndarray, axis: int, exclusive: bool, reverse: bool
) -> np.ndarray:
    run, _, start = OPS[op]
    y = np.flip(x, axis) if reverse else x
    if exclusive:
        first = np.full_like(y.take([0], axis), start) if y.size else y
        y = np.concatenate([first, y], axis).take(range(y.shape[axis]), axis)
    y = run(y, axis=axis, dtype=x.dtype)
    return np.flip(y, axis) if reverse else y


@few_examples(30)
@given(
    st.sampled_from(list(OPS)), st.sampled_from(SHAPES), st.integers(-4, 3),
    st.sampled_from([*FLOATS, "int32", "int64"]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_every_direction(
    op: str, shape: tuple[int, ...], place: int, name: str, exclusive: bool,
    reverse: bool,
) -> None:  # fmt: skip
    axis = max(-len(shape), min(place, len(shape) - 1))
    low, high = (1, 3) if name.startswith("int") else (0.5, 1.5)  # 3^35 is no f16
    x = sample(1, shape, name, low, high)
    (got,) = run_node(
        op, [x, np.array(axis, np.int64)], constants=[1], version=OPS[op][1],
        exclusive=int(exclusive), reverse=int(reverse),
    )  # fmt: skip
    assert got.dtype == x.dtype
    if name.startswith("int"):
        exact = accumulated(op, x, axis, exclusive, reverse)
        np.testing.assert_array_equal(got, exact)
        return
    exact = accumulated(op, wide(x), axis, exclusive, reverse)
    assert within(got, exact, shape[axis] + 1)
    if x.size:
        assert not within(got + 1, exact, shape[axis] + 1)


@pytest.mark.parametrize("name", ["int32", "int64"])
def test_an_axis_given_with_the_call(name: str) -> None:
    x = sample(2, (3, 5), "float32")
    (got,) = run_node("CumSum", [x, np.array(1, name)])
    assert within(got, np.cumsum(wide(x), 1), 6, 20)


@pytest.mark.parametrize("axis", [0, 1])
def test_one_program_for_all_sizes_reads_and_writes_nothing_else(axis: int) -> None:
    """Totals stay in registers: one kernel, whose result lies where the caller says."""
    text = f"""running (float[rows, columns] x) => (float[rows, columns] y)
        {{ a = Constant<value_int = {axis}>() y = CumSum(x, a) }}"""
    header = '<ir_version: 10, opset_import: ["": 21]>'
    program = nanoloom.compile(onnx.parser.parse_model(f"{header} {text}"))
    for shape, side in (((5, 37), Side.END), ((3, 16), Side.START), ((1, 1), Side.END)):
        x = sample(4, shape, "float32", -9, 9).round()
        (got,) = run_guarded(program, {"x": x}, side).values()
        np.testing.assert_array_equal(got, np.cumsum(x, axis))
    assert not program.open.reason


def test_its_result_is_not_copied() -> None:
    def make(b: Builder, x: Tensor) -> Tensor:
        return accumulate(b, x, 0, lambda total, s: total + s, 0)

    program = program_of(make, ((5, 37), "float32"))
    (call,) = program.calls
    assert [p.storage for p in call.arguments] == [Storage.INPUT, Storage.OUTPUT]
    assert '"copy"' not in program.kernels[call.kernel].text
