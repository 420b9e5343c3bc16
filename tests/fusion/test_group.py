"""Which operations become one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.fusion.group import LIMIT, form_groups
from nanoloom.ir import mlir
from nanoloom.kernels.program import Program
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.reductions.softmax import normalized
from tests.kernels.random_programs import grown, inputs_of
from tests.linalg.bounds import sample
from tests.vector.checks import check
from tests.vector.kernel_harness import Make, build, program_of, run

W = sample(1, (17, 19), "float32")
X = sample(2, (5, 17), "float32")


def relu(s: Scalar) -> Scalar:
    return s.maximum(0)


def roots(make: Make, *inputs: Any) -> list[str]:
    """The root of each call, in order."""
    program: Program = program_of(make, *(inputs or (X,)))
    return [program.kernels[call.kernel].root for call in program.calls]


def product(b: Any, x: Any, weight: np.ndarray = W) -> Any:
    return b.einsum("mk,kn->mn", x, b.constant(weight))


def summed(b: Any, x: Any, axis: int = -1) -> Any:
    return b.reduce(lambda a, s: a + s, x, [axis], 0)


def test_an_epilogue_joins_its_contraction() -> None:
    def make(b: Any, x: Any) -> Any:
        biased = b.elementwise(lambda s, t: s + t, product(b, x), b.constant(W[0]))
        return b.elementwise(relu, biased)

    assert roots(make) == ["contraction"]


def test_two_contractions_are_two_kernels() -> None:
    def make(b: Any, x: Any) -> Any:
        return b.elementwise(lambda s, t: s + t, product(b, x), product(b, x, -W))

    assert roots(make) == ["contraction", "contraction"]


def test_a_result_that_is_needed_elsewhere_ends_its_kernel() -> None:
    """relu(x @ w) is returned and squared: it must be written."""

    def make(b: Any, x: Any) -> Any:
        made = b.elementwise(relu, product(b, x))
        return [made, b.elementwise(lambda s: s * s, made)]

    assert roots(make) == ["contraction", "elementwise"]
    first, second = run(make, X)
    assert (first**2 == second).all()


def test_a_reduction_behind_a_contraction_is_another_kernel() -> None:
    assert roots(lambda b, x: summed(b, product(b, x))) == ["contraction", "reduction"]


def test_a_softmax_behind_a_product_is_one_kernel_more() -> None:
    """exp(x - max(x)) reads the product, but waits for the maximum of its rows."""

    def make(b: Any, x: Any) -> Any:
        return normalized(b, product(b, x), [1], x.dtype)

    assert roots(make) == ["contraction", "reduction"]
    grown = np.exp(X.astype(np.float64) @ W)
    exact = grown / grown.sum(1, keepdims=True)
    size = (abs(X.astype(np.float64)) @ abs(W)).max()
    check(run(make, X), exact, 4 * 17 * size + 2 * 19 + 8)


def test_a_normalization_behind_a_product_is_one_kernel_more() -> None:
    """Its scale and shift stay with it, a bias with the product."""

    def make(b: Any, x: Any) -> Any:
        made = b.elementwise(lambda s, t: s + t, product(b, x), b.constant(W[0]))
        mean = b.elementwise(lambda s: s * (1 / 19), summed(b, made))
        centred = b.elementwise(lambda s, t: s - t, made, mean)
        squares = summed(b, b.elementwise(lambda s: s * s, centred))
        scaled = b.elementwise(
            lambda s, t: s / (t * (1 / 19) + 1e-5).math("sqrt"), centred, squares
        )
        return b.elementwise(lambda s, t: s * t, scaled, b.constant(W[1]))

    assert roots(make) == ["contraction", "reduction"]
    wide = X.astype(np.float64) @ W + W[0]
    centred = wide - wide.mean(1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    exact = centred / deviation * W[1]
    size = (abs(X.astype(np.float64)) @ abs(W) + abs(W[0])).max() / deviation.min()
    check(run(make, X), exact, 4 * (17 + 19 + 8), size * abs(W[1]).max())


def test_what_waits_for_nothing_joins_its_product() -> None:
    """Two readers of a product that meet within its own tiles."""

    def make(b: Any, x: Any) -> Any:
        made = product(b, x)
        grown = b.elementwise(lambda s: s.math("tanh"), made)
        return b.elementwise(lambda s, t: s * t, made, grown)

    assert roots(make) == ["contraction"]


def test_rows_are_fused_through_reductions() -> None:
    def make(b: Any, x: Any) -> Any:
        square = b.elementwise(lambda s: s * s, x)
        return b.elementwise(lambda s, t: s / t, square, summed(b, square))

    assert roots(make) == ["reduction"]


def test_columns_are_not() -> None:
    """Every row needs all the sums first."""

    def make(b: Any, x: Any) -> Any:
        return b.elementwise(lambda s, t: s / t, x, summed(b, x, 0))

    assert roots(make) == ["reduction", "elementwise"]


def test_two_independent_chains_that_meet() -> None:
    def make(b: Any, x: Any) -> Any:
        one = b.elementwise(lambda s: s.math("exp"), x)
        other = b.elementwise(relu, x)
        return b.elementwise(lambda s, t: s + t, one, other)

    assert roots(make) == ["elementwise"]


def test_a_transposed_reader_folds_the_transpose() -> None:
    def make(b: Any, x: Any) -> Any:
        return b.elementwise(relu, b.transpose(x, [1, 0]))

    assert roots(make) == ["elementwise"]


def test_a_chain_of_slices_is_one_kernel() -> None:
    def make(b: Any, x: Any) -> Any:
        return b.concat([x, x, x], 0)

    assert len(roots(make)) == 1


def differences(b: Any, x: Any) -> Any:
    """Of neighbours: two slices are read."""
    shape = [x.shape[0], x.shape[1] - 1]
    left, right = b.slice(x, [0, 0], shape), b.slice(x, [0, 1], shape)
    return b.elementwise(lambda s, t: t - s, left, right)


def test_slices_are_read_where_they_are() -> None:
    (kernel,) = program_of(differences, X).kernels.values()
    (stage,) = kernel.nest.stages
    assert [str(read) for read in stage.reads] == ["arg0[d0, d1]", "arg0[d0, d1 + 1]"]
    assert (run(differences, X) == X[:, 1:] - X[:, :-1]).all()


def test_slices_of_what_a_kernel_makes_are_read_by_the_next() -> None:
    def make(b: Any, x: Any) -> Any:
        return differences(b, b.elementwise(relu, product(b, x)))

    assert roots(make) == ["contraction", "elementwise"]


def test_slices_of_a_product_are_laid_out_for_it() -> None:
    """Those that it is given are read where they are."""

    def given(b: Any, x: Any) -> Any:
        return product(b, b.slice(x, [0, 0], [5, 15]), W[:15])

    def made(b: Any, x: Any) -> Any:
        return given(b, b.elementwise(lambda s: s + s, product(b, x)))

    assert roots(given) == ["contraction"]
    assert roots(made) == ["contraction", "opaque", "contraction"]


def test_a_group_has_a_limit() -> None:
    def make(b: Any, x: Any) -> Any:
        for number in range(LIMIT + 6):
            total = summed(b, x)
            x = b.elementwise(lambda s, t, n=number: s * 0.5 - t * n, x, total)
        return x

    program = program_of(make, X)
    assert len(program.kernels) > 1
    for kernel in program.kernels.values():
        assert kernel.text.count("linalg.generic") <= 2 * LIMIT


@pytest.mark.parametrize("seed", range(8))
def test_groups_come_in_an_order_in_which_they_can_run(seed: int) -> None:
    """Every operation is in one group, behind all that it reads."""
    arrays = inputs_of(seed)
    make, _ = grown(seed, arrays, 20)
    with mlir.context():
        lowered = build(make, *arrays)
        main = lowered.module.body.operations[0]
        groups = form_groups(main.operation.regions[0].blocks[0])
        place = {op.operation: i for i, g in enumerate(groups) for op in g.ops}
        assert len(place) == sum(len(g.ops) for g in groups)
        for number, group in enumerate(groups):
            inside = {op.operation for op in group.ops}
            for op in group.ops:
                for operand in op.operation.operands:
                    assert place.get(operand.owner, number) <= number
            for op in group.ops[:-1]:  # one result: that of the last operation
                for use in op.operation.results[0].uses:
                    assert use.owner.operation in inside
