"""What follows a contraction is computed on its accumulators, and C is written once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, Map
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.target import by_name
from tests.filecheck import check_text, problems
from tests.linalg.bounds import sample, wide
from tests.vector.checks import Array, check
from tests.vector.kernel_harness import (
    backwards,
    program_of,
    run,
    stage_text,
    targets,
)
from tests.vector.nanokernel.test_fma import tile_of

erf = np.vectorize(math.erf, otypes=[np.float64])
M, K, N = 31, 33, 70  # no tile divides them
X, W = sample(1, (M, K), "float32"), sample(2, (K, N), "float32", -0.2, 0.2)
BIAS, RESIDUAL = sample(3, (N,), "float32"), sample(4, (M, N), "float32")
COLUMN = sample(5, (M, 1), "float32")
SUM = wide(X) @ wide(W)
SIZE = abs(wide(X)) @ abs(wide(W))


def biased(b: Any, x: Any) -> Any:
    product = b.einsum("mk,kn->mn", x, b.constant(W))
    return b.elementwise(lambda s, t: s + t, product, b.constant(BIAS))


def gelu(b: Any, x: Any) -> Any:
    return b.elementwise(
        lambda s: s * ((s * 0.5**0.5).math("erf") + 1.0) * 0.5, biased(b, x)
    )


def exact_gelu(x: Array) -> Array:
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


@pytest.mark.parametrize("target", targets(), ids=str)
def test_bias_and_gelu(target: Any) -> None:
    exact = exact_gelu(SUM + wide(BIAS))
    # |gelu'| < 1.13; erf has 4 units of error, five operations follow the sum.
    magnitude = 1.13 * (SIZE + abs(BIAS))
    got = run(gelu, X, target=target, order=backwards)
    check(got, exact, K + 1 + 4 + 5, magnitude)


def test_bias_relu_and_residual() -> None:
    def make(b: Any, x: Any, r: Any) -> Any:
        made = b.elementwise(lambda s: s.maximum(0), biased(b, x))
        return b.elementwise(lambda s, t: s + t, made, r)

    exact = np.maximum(SUM + wide(BIAS), 0) + wide(RESIDUAL)
    magnitude = SIZE + abs(BIAS) + abs(RESIDUAL)
    check(run(make, X, RESIDUAL, order=backwards), exact, K + 3, magnitude)


def test_a_number_a_row_and_the_sum_twice() -> None:
    """x * x + column, where column has one element a row."""

    def make(b: Any, x: Any, c: Any) -> Any:
        product = b.einsum("mk,kn->mn", x, b.constant(W))
        square = b.elementwise(lambda s, t: s * t, product, product)
        return b.elementwise(lambda s, t: s + t, square, c)

    exact = SUM**2 + wide(COLUMN)
    magnitude = 2 * SIZE**2 + abs(COLUMN)
    check(run(make, X, COLUMN, order=backwards), exact, K + 2, magnitude)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_of_two_activations(batch: int) -> None:
    left = sample(6, (batch, 7, 17), "float32")
    right = sample(7, (batch, 17, 19), "float32")
    mask = sample(8, (batch, 1, 19), "float32")

    def make(b: Any, x: Any, y: Any, m: Any) -> Any:
        scores = b.einsum("bmk,bkn->bmn", x, y)
        return b.elementwise(lambda s, t: s * 0.25 + t, scores, m)

    exact = wide(left) @ wide(right) * 0.25 + wide(mask)
    magnitude = abs(wide(left)) @ abs(wide(right)) + abs(mask)
    check(run(make, left, right, mask, order=backwards), exact, 19, magnitude)


def test_the_sum_in_a_wider_type() -> None:
    """A cast behind the contraction changes the width of the vectors."""

    def make(b: Any, x: Any) -> Any:
        return b.cast(b.einsum("mk,kn->mn", x, b.constant(W)), np.dtype(np.float64))

    got = run(make, X, order=backwards)
    assert got.dtype == np.float64
    check(got.astype(np.float32), SUM, K + 1, SIZE)


def test_a_comparison_behind_it() -> None:
    def make(b: Any, x: Any) -> Any:
        product = b.einsum("mk,kn->mn", x, b.constant(W))
        return b.elementwise(lambda s: s > 0.0, product, dtype=np.dtype(np.bool_))

    got = run(make, X, order=backwards)
    clear = abs(SUM) > (K + 1) * 2.0**-24 * SIZE
    assert got.dtype == np.bool_
    assert (got == (SUM > 0))[clear].all()
    assert not (got == (SUM <= 0))[clear].any()


@pytest.mark.parametrize("step", [(1, 0), (0, 2)], ids=["transposed", "stepped"])
def test_an_operand_that_does_not_lie_along_the_result(step: tuple[int, int]) -> None:
    """It cannot be read in vectors: it is turned first, by a kernel of its own."""
    across, along = step
    shape = (N, M) if across else (M, 2 * N)
    y = sample(9, shape, "float32")

    def make(b: Any, x: Any, y: Any) -> Any:
        d = ir.AffineDimExpr.get
        place = [d(1), d(0)] if across else [d(0), d(1) * along]
        out = Tensor((M, N), y.dtype, b.empty((M, N), y.dtype))
        identity = Map.get_identity(2)
        (copied,) = b.generic(
            [(y, Map.get(2, 0, place))], [(out, identity)], [PARALLEL] * 2,
            lambda s, _: s,
        )  # fmt: skip
        product = b.einsum("mk,kn->mn", x, b.constant(W))
        return b.elementwise(lambda s, t: s + t, product, copied)

    other = y.T if across else y[:, ::2]
    assert len(program_of(make, X, y).kernels) == 2
    check(run(make, X, y, order=backwards), SUM + wide(other), K + 1, SIZE + abs(other))


# ---- text ----------------------------------------------------------------------------


def test_one_kernel_that_writes_c_once() -> None:
    program = program_of(gelu, ((60, K), "float32"))  # no tile has fewer rows
    target = by_name("sapphirerapids")
    (call,) = program.calls
    script = stage_text(program, "schedule", target)
    rows, vectors, steps = tile_of(script)
    tile = rows * vectors
    text = stage_text(program, "vector", target)
    result = len(call.arguments) - 1
    checks = f"""
    CHECK-LABEL: func.func @kernel_0
    CHECK-NOT: memref.alloc
    CHECK-NOT: memref.copy
    CHECK-NOT: vector.transfer_write
    CHECK: :{tile} = scf.for {{{{.*}}}} to %c{K - 1} {{{{.*}}}} iter_args(
    CHECK-COUNT-{steps * tile}: vector.fma
    CHECK-NOT: vector.fma
    CHECK: scf.yield
    CHECK-COUNT-{tile}: vector.fma
    CHECK-NOT: vector.fma
    CHECK: [[C:%.*]] = memref.subview %arg{result}[
    CHECK: math.erf {{{{.*}}}} : vector<16xf32>
    CHECK-COUNT-{tile}: vector.transfer_write {{{{.*}}}}, [[C]][
    CHECK-NOT: vector.transfer_write
    """
    check_text(text, checks)
    loads = text.count("memref.load")  # of A alone, one a row and step
    assert loads == (steps + 1) * rows
    assert problems(text, checks.replace(f"COUNT-{tile}", f"COUNT-{tile + 1}"))


def test_sums_begin_in_registers() -> None:
    """The fill in front of a contraction is not stored and loaded again."""
    text = stage_text(program_of(gelu, ((M, K), "float32")), "vector", targets()[0])
    check_text(
        text,
        """
    CHECK: iter_args({{.*}} = [[ZERO:%cst_[0-9]*|%cst]],
    CHECK-NOT: linalg.
    """,
    )
