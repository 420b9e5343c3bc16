"""A group as a function of its own: its arguments, its result, what it makes again."""

from __future__ import annotations

from typing import Any

import numpy as np

from nanoloom.kernels.program import Program
from nanoloom.memory.calls import Storage
from tests.filecheck import check_text
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import program_of, run

W = sample(1, (17, 19), "float32")


def only(program: Program) -> str:
    (kernel,) = program.kernels.values()
    return kernel.text


def test_arguments_come_in_order_and_the_result_last() -> None:
    def make(b: Any, x: Any, y: Any) -> Any:
        product = b.einsum("mk,kn->mn", x, b.constant(W))
        return b.elementwise(lambda s, t: s + t, product, y)

    program = program_of(make, ((5, 17), "float32"), ((5, 19), "float32"))
    (call,) = program.calls
    spaces = [p.storage for p in call.arguments]
    assert spaces == [Storage.INPUT, Storage.PARAMETER, Storage.INPUT, Storage.OUTPUT]
    (kernel,) = program.kernels.values()
    assert kernel.constants == (False, True, False)
    assert kernel.shapes == ((5, 17), (17, 19), (5, 19), (5, 19))
    check_text(
        kernel.text,
        """
    CHECK: func.func @kernel(%arg0: tensor<5x17xf32> {bufferization.writable = false},
    CHECK-SAME: %arg1: tensor<17x19xf32> {{{.*}}nanoloom.constant}
    CHECK-SAME: %arg3: tensor<5x19xf32> {bufferization.writable = true})
    CHECK: linalg.generic {{.*}} outs(%arg3 : tensor<5x19xf32>)
    """,
    )


def test_a_tensor_that_is_read_twice_is_one_argument() -> None:
    program = program_of(
        lambda b, x: b.elementwise(lambda s, t: s * t, x, b.transpose(x, [1, 0])),
        ((7, 7), "float32"),
    )
    assert len(program.calls[0].arguments) == 2


def test_fills_and_constants_are_made_again_inside() -> None:
    program = program_of(
        lambda b, x: b.reduce(lambda a, s: a + s, x, [1], 0, keepdims=False),
        ((7, 5), "float32"),
    )
    check_text(
        only(program),
        """
    CHECK: arith.constant 0.0
    CHECK: linalg.generic {{.*}}outs(%arg1 : tensor<7xf32>)
    """,
    )


def test_names_carry_root_element_and_extents() -> None:
    program = program_of(
        lambda b, x: b.einsum("mk,kn->mn", x, b.constant(W)), ((5, 17), "float32")
    )
    (name,) = program.kernels
    assert name.startswith("contraction_f32_5x19x17_")
    assert name.isidentifier()


def test_the_layer_of_a_call_is_the_models_node() -> None:
    from nanoloom.ir.mlir import ir

    def make(b: Any, x: Any) -> Any:
        with ir.Location.name("encoder/dense"):
            return b.einsum("mk,kn->mn", x, b.constant(W))

    (call,) = program_of(make, ((5, 17), "float32")).calls
    assert call.layer == "encoder/dense"


def test_an_argument_that_is_returned_is_copied() -> None:
    x = sample(2, (5, 17), "float32")
    first, second = run(lambda b, x: [x, x], x)
    assert (first == x).all()
    assert (second == x).all()


def test_a_constant_that_is_returned_is_copied() -> None:
    x = sample(3, (5,), "float32")
    got = run(lambda b, x: [b.constant(W), b.elementwise(lambda s: s, x)], x)
    assert (got[0] == W).all()


def test_a_value_that_is_returned_twice_has_two_places() -> None:
    x = sample(4, (5, 7), "float32")

    def make(b: Any, x: Any) -> Any:
        made = b.elementwise(lambda s: s + s, x)
        return [made, made, b.reshape(made, (35,))]

    one, other, flat = run(make, x)
    assert (one == 2 * x).all()
    assert (other == one).all()
    assert (flat == one.reshape(-1)).all()


def test_a_fill_that_is_returned() -> None:
    x = sample(5, (5,), "float32")
    got = run(lambda b, x: [b.full((3, 2), 7, np.dtype(np.float32)), x], x)
    assert (got[0] == 7).all()
