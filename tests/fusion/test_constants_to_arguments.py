"""Kernels that differ in numbers are one, and each call has its own numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nanoloom.fusion.constants_to_arguments import Arguments
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.kernels.program import Program
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.memory.calls import Storage
from tests.filecheck import check_text
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import (
    backwards,
    executable,
    program_of,
    run,
    stage_text,
    targets,
)

X = sample(1, (5, 17), "float32")
LARGE = sample(2, (129, 131), "float32")
INT32, FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)
SCALES = [np.float32(0.03), np.float32(0.07), np.float32(-0.0), np.float32(1e-42)]
ZEROS = [3, -7, 2**31 - 2, 1 - 2**31]


def given(program: Program, call: int) -> list[np.ndarray]:
    """The parameters of a call."""
    return [
        np.asarray(program.parameters[p.index].array())
        for p in program.calls[call].arguments
        if p.storage is Storage.PARAMETER
    ]


def scaled(b: Any, x: Any, scales: Sequence[Any]) -> list[Any]:
    return [b.elementwise(lambda s, n=n: s * float(n), x) for n in scales]


def test_numbers_are_arguments_between_inputs_and_results() -> None:
    program = program_of(lambda b, x: scaled(b, x, SCALES), X)
    (kernel,) = program.kernels.values()
    check_text(
        kernel.text,
        """
    CHECK: func.func @kernel(%arg0: tensor<85xf32>
    CHECK-SAME: %arg1: tensor<1xf32> {{{.*}}nanoloom.constant}
    CHECK-SAME: %arg2: tensor<85xf32> {bufferization.writable = true})
    CHECK: [[N:%.*]] = tensor.extract %arg1[%c0
    CHECK: arith.mulf %in, [[N]] : f32
    """,
    )
    assert kernel.constants == (False, True)
    assert kernel.shapes == ((85,), (1,), (85,))
    assert len(program.calls) == len(SCALES)
    for number, (call, scale) in enumerate(zip(program.calls, SCALES, strict=True)):
        spaces = [p.storage for p in call.arguments]
        assert spaces == [Storage.INPUT, Storage.PARAMETER, Storage.OUTPUT]
        (array,) = given(program, number)
        assert array.dtype == FLOAT32
        assert array.tobytes() == scale.tobytes()


@pytest.mark.parametrize("target", targets(), ids=str)
def test_every_call_computes_with_its_own(target: Any) -> None:
    """To the bit: one operation on the same numbers, wherever they come from."""
    made = run(lambda b, x: scaled(b, x, SCALES), LARGE, target=target, order=backwards)
    for got, scale in zip(made, SCALES, strict=True):
        assert got.tobytes() == (LARGE * scale).tobytes()
    assert made[0].tobytes() != made[1].tobytes()


def test_types_are_apart_and_equal_columns_are_one() -> None:
    def make(b: Any, x: Any) -> list[Any]:
        def body(s: Scalar, scale: float, zero: int) -> Scalar:
            whole = (s * scale + scale).cast(INT32) + zero
            return whole.maximum(zero) - (2 - zero % 3)

        rows = [(0.5, 3), (0.25, 4), (-0.5, 3)]
        return [
            b.elementwise(lambda s, row=row: body(s, *row), x, dtype=INT32)
            for row in rows
        ]

    program = program_of(make, X)
    assert len(program.kernels) == 1
    wanted = [([0.5], [3, 2]), ([0.25], [4, 1]), ([-0.5], [3, 2])]
    for number, (floats, wholes) in enumerate(wanted):
        one, other = given(program, number)
        assert (one.dtype, other.dtype) == (FLOAT32, INT32)
        assert one.tolist() == floats
        assert other.tolist() == wholes
    for got, (floats, (zero, less)) in zip(run(make, X), wanted, strict=True):
        scale = np.float32(floats[0])
        whole = (X * scale + scale).astype(np.int32) + zero
        exact = np.maximum(whole, zero) - less
        assert (got == exact).all()
        assert not (got == exact + 1).any()


def test_a_number_that_all_share_stays_in_the_text() -> None:
    def make(b: Any, x: Any) -> list[Any]:
        return [b.elementwise(lambda s, n=n: (s + 9) * n, x) for n in (2, 3)]

    program = program_of(make, X)
    (kernel,) = program.kernels.values()
    check_text(kernel.text, "CHECK: arith.constant 9.0{{.*}} : f32")
    assert [given(program, i)[0].tolist() for i in range(2)] == [[2], [3]]


def test_a_lone_kernel_keeps_its_numbers() -> None:
    (kernel,) = program_of(lambda b, x: scaled(b, x, [2]), X).kernels.values()
    assert kernel.constants == (False,)
    assert "2.0" in kernel.text


def test_extremes_of_integers() -> None:
    def make(b: Any, x: Any) -> list[Any]:
        def body(s: Scalar, zero: int) -> Scalar:
            return s.cast(INT32).minimum(zero)

        return [b.elementwise(lambda s, z=z: body(s, z), x, dtype=INT32) for z in ZEROS]

    assert len(program_of(make, X).kernels) == 1
    for got, zero in zip(run(make, X), ZEROS, strict=True):
        assert (got == np.minimum(X.astype(np.int32), zero)).all()


def power(b: Any, x: Any, n: int) -> Any:
    return b.elementwise(lambda s: s.math("powf", float(n)), x)


def quotient(b: Any, x: Any, n: int) -> Any:
    return b.elementwise(lambda s: s.cast(INT32) / n, x, dtype=INT32)


def filled(b: Any, x: Any, n: int) -> Any:
    return b.pad(x, [n % 2 * 2, 0], [2 - n % 2 * 2, 0], n)


def reduced(b: Any, x: Any, n: int) -> Any:
    return b.reduce(lambda a, s: a + s * float(n), x, [1], 0)


def gathered(b: Any, x: Any, n: int) -> Any:
    source, shape = b.value(x), (3, 17)
    return b.generate(shape, FLOAT32, lambda i, j: b.load(source, FLOAT32, [i + n, j]))


@pytest.mark.parametrize("make", [power, quotient, filled, reduced, gathered])
def test_numbers_that_decide_about_the_code_stay(make: Any) -> None:
    program = program_of(lambda b, x: [make(b, x, 2), make(b, x, 1)], X)
    for kernel in program.kernels.values():
        assert "tensor<1x" not in kernel.text
    assert len(program.kernels) >= 2


def products(b: Any, x: Any) -> list[Any]:
    """Layers of a product and two elementwise operations with numbers."""
    made: list[Any] = []
    for number in range(3):
        weight = b.constant(sample(number, (131, 259), "float32"))
        sums = b.einsum("mk,kn->mn", x, weight)
        scaled = b.elementwise(lambda s, n=number: s * (n + 2.0) - (n + 1), sums)
        made.append(scaled)
    return made


def test_tasks_stay_many() -> None:
    """Numbers that are read in front of the tasks do not make them one."""
    program = program_of(products, LARGE)
    assert len(program.kernels) == 1
    made = executable(program, targets()[0])
    assert all(step.tasks > 1 for step in made.made.table.steps)
    check_text(
        stage_text(program, "vector", targets()[0]),
        """
    CHECK: func.func @kernel_0
    CHECK: memref.load
    CHECK: scf.for
    """,
    )


def test_behind_products() -> None:
    got = run(products, LARGE, order=backwards)
    for number, one in enumerate(got):
        weight = sample(number, (131, 259), "float32").astype(np.float64)
        exact = LARGE @ weight * (number + 2) - (number + 1)
        size = abs(LARGE.astype(np.float64)) @ abs(weight) * (number + 2) + number + 1
        bound = (131 + 3) * np.finfo(np.float32).eps * size
        assert (abs(one - exact) <= bound).all()
        assert not (abs(got[0 if number else 1] - exact) <= bound).all()


def test_arguments_of_rows() -> None:
    with mlir.context():
        half, one = (ir.FloatAttr.get(ir.F32Type.get(), x) for x in (0.5, 1.0))
        wide = ir.FloatAttr.get(ir.F64Type.get(), 0.1)
        other = ir.FloatAttr.get(ir.F64Type.get(), 0.2)
        rows = [(half, wide, one, half, one), (one, other, one, one, half)]
        made = Arguments.of(rows)
        assert made.places == ((0, 0), (1, 0), None, (0, 0), (0, 1))
        assert made.columns == ((0, 4), (1,))
        arrays = made.arrays(rows[1])
        kinds = [str(kind) for kind in made.kinds()]
    assert kinds == ["tensor<2xf32>", "tensor<1xf64>"]
    assert [(x.tolist(), x.dtype.name) for x in arrays] == [
        ([1.0, 0.5], "float32"),
        ([0.2], "float64"),
    ]
