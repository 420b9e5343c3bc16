"""Neighbouring axes of all operands are one: in products, copies and folded rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.fusion.coalesce_loops import coalesce_loops
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.kernels.program import Kernel
from nanoloom.kernels.stage import partition
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Map
from nanoloom.target import by_name
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check
from tests.vector.kernel_harness import Make, build, program_of, run

W, WIDE = sample(1, (5, 19), "float32"), sample(2, (2, 3, 5, 19), "float32")
BIAS = sample(3, (19,), "float32")


def product(b: Any, x: Any) -> Any:
    made = b.einsum("nyxc,cf->nyxf", x, b.constant(W))
    return b.elementwise(lambda s, t: (s + t).maximum(0), made, b.constant(BIAS))


def of_channels_first(b: Any, x: Any) -> Any:
    return b.einsum("ncyx,cf->nyxf", x, b.constant(W))


def batched(b: Any, x: Any) -> Any:
    return b.einsum("nymk,nykf->nymf", x, b.constant(WIDE))


def of_windows(b: Any, x: Any) -> Any:
    """A row's neighbours are another row's pixels."""
    made = b.einsum("nyxc,cf->nyxf", x, b.constant(W))
    return b.elementwise(lambda s, t: s + t, made, b.constant(rows()))


def turned(b: Any, x: Any) -> Any:
    """Of tiles: rows of two results, side by side."""
    return b.transpose(x, (2, 0, 1))


def rows_turned(b: Any, x: Any) -> Any:
    return b.transpose(x, (0, 3, 1, 2))


def normalized(b: Any, x: Any) -> Any:
    """Of each channel its own mean taken away."""
    total = b.reduce(lambda s, t: s + t, x, (2, 3), 0)
    return b.elementwise(lambda s, t: s - t * (1 / 35), x, total)


def last_row(b: Any, x: Any) -> Any:
    """The folded axes are not beside each other."""
    return b.reduce(lambda s, t: s.maximum(t), x, (1, 3), 0)


def diagonals(b: Any, x: Any) -> Any:
    """y[i] = sum x[j, k, i - j + 2]: the folded axes also move what is read."""
    out, free = b.full((5,), 0, x.dtype), Map.get(3, 0, [ir.AffineDimExpr.get(0)])
    i, j, k = map(ir.AffineDimExpr.get, range(3))
    kinds = [PARALLEL, REDUCTION, REDUCTION]
    read = (x, Map.get(3, 0, [j, k, i - j + 2]))
    return b.generic([read], [(out, free)], kinds, lambda s, t: s + t)[0]


def rows() -> np.ndarray:
    """A number a row of an image."""
    return sample(4, (7, 1, 1), "float32")


def kernel_of(make: Make, shape: tuple[int, ...]) -> Kernel:
    (kernel,) = program_of(make, (shape, "float32")).kernels.values()
    return kernel


@pytest.mark.parametrize(
    ("make", "shape", "given", "made"),
    [
        (product, (2, 7, 9, 5), (126, 5), (126, 19)),
        (of_channels_first, (2, 5, 7, 9), (2, 5, 63), (2, 63, 19)),
        (batched, (2, 3, 7, 5), (6, 7, 5), (6, 7, 19)),
        (of_windows, (2, 7, 9, 5), (2, 7, 9, 5), (2, 7, 9, 19)),
        (turned, (21, 2, 5), (42, 5), (5, 42)),
        (rows_turned, (2, 7, 9, 5), (2, 7, 9, 5), (2, 5, 7, 9)),
        (normalized, (2, 3, 7, 5), (6, 35), (6, 35)),
    ],
)
def test_what_is_one(
    make: Make, shape: tuple[int, ...], given: tuple[int, ...], made: tuple[int, ...]
) -> None:
    kernel = kernel_of(make, shape)
    assert kernel.shapes[0] == given
    assert kernel.shapes[-1] == made
    assert kernel.nest.stages[-1].extents[: len(made)] == made


def test_folded_axes_that_are_apart_stay() -> None:
    assert kernel_of(last_row, (2, 3, 7, 5)).shapes == ((2, 3, 7, 5), (2, 7))


def test_folded_axes_that_move_what_is_read_stay() -> None:
    assert kernel_of(diagonals, (3, 4, 7)).shapes == ((3, 4, 7), (5,))
    x = sample(8, (3, 4, 7), "float32")
    exact = np.sum([wide(x)[j, :, 2 - j : 7 - j].sum(0) for j in range(3)], axis=0)
    check(run(diagonals, x), exact, 12, abs(wide(x)).sum())


def test_kernels_that_differ_in_numbers() -> None:
    """They are one kernel, which reads them in front of its loops."""

    def scaled(b: Any, x: Any) -> Any:
        made = [b.einsum("nyxc,cf->nyxf", x, b.constant(w)) for w in (W, 2 * W)]
        return [
            b.elementwise(lambda s, by=by: s * by, y)
            for y, by in zip(made, (0.25, 0.5), strict=True)
        ]

    program = program_of(scaled, ((2, 7, 9, 5), "float32"))
    (kernel,) = program.kernels.values()
    assert kernel.shapes[0] == (126, 5) and kernel.shapes[-1] == (126, 19)
    x = sample(8, (2, 7, 9, 5), "float32")
    exact = wide(x) @ wide(W)
    got = run(scaled, x)
    for result, by in zip(got, (0.25, 1.0), strict=True):
        check(result, by * exact, 8, abs(wide(x)) @ abs(wide(W)))


def test_numbers_are_the_same() -> None:
    x = sample(5, (2, 7, 9, 5), "float32")
    exact, size = wide(x) @ wide(W), abs(wide(x)) @ abs(wide(W)) + abs(wide(BIAS))
    check(run(product, x), np.maximum(exact + wide(BIAS), 0), 7, size)
    turned = x.reshape(2, 7, 3, 15).transpose(0, 2, 1, 3).reshape(2, 5, 7, 9)
    exact = np.einsum("ncyx,cf->nyxf", wide(turned), wide(W))
    size = np.einsum("ncyx,cf->nyxf", abs(wide(turned)), abs(wide(W)))
    check(run(of_channels_first, turned), exact, 7, size)
    x = sample(6, (2, 3, 7, 5), "float32")
    exact = wide(x) - wide(x).mean((2, 3), keepdims=True)
    check(run(normalized, x), exact, 37, abs(wide(x)).sum((2, 3), keepdims=True))
    check(run(batched, x), wide(x) @ wide(WIDE), 7, abs(wide(x)) @ abs(wide(WIDE)))
    x = sample(7, (2, 7, 9, 5), "float32")
    size = abs(wide(x)) @ abs(wide(W)) + abs(wide(rows()))
    check(run(of_windows, x), wide(x) @ wide(W) + wide(rows()), 7, size)


def test_kernels_of_elements_have_one_axis() -> None:
    """Rows shorter than vectors are no rows; what is read in another order stays."""
    kernel = kernel_of(lambda b, x: b.elementwise(lambda s: s * s, x), (2, 3, 5))
    assert kernel.shapes == ((30,), (30,))

    def with_row(b: Any, x: Any) -> Any:
        return b.elementwise(lambda s, r: s * r, x, b.constant(np.ones(5, np.float32)))

    kernel = kernel_of(with_row, (2, 3, 5))
    assert kernel.shapes[0] == kernel.shapes[-1] == (6, 5)

    def with_other(b: Any, x: Any) -> Any:
        return b.elementwise(lambda s, t: s + t, x, b.transpose(x, [0, 2, 1]))

    assert kernel_of(with_other, (2, 5, 5)).shapes[-1] == (2, 5, 5)


@pytest.mark.parametrize(
    ("starts", "sizes", "axis", "made"),
    [
        ([0, 1, 0], (4, 2, 3), 1, {(4, 15), (4, 21)}),
        ([1, 0, 0], (2, 5, 3), 0, {(60,), (90,)}),
        ([0, 0, 1], (4, 5, 2), 2, {(20, 3), (20, 5)}),
        ([0, 1, 1], (4, 5, 3), 1, None),  # steps of two
    ],
)
def test_parts_are_one_where_rows_are_whole(
    starts: list[int], sizes: tuple[int, ...], axis: int, made: set[Any] | None
) -> None:
    """What is sliced, and what is written beside other numbers."""
    x = sample(9, (4, 5, 3) if made else (4, 11, 4), "float32")
    steps = [1, 1 if made else 2, 1]

    def joined(b: Any, x: Any) -> Any:
        part = b.slice(x, starts, sizes, steps)
        wide = x if made else b.slice(x, [0, 0, 0], (4, 11, 3))
        return b.concat([wide, b.elementwise(lambda s: s + 1, part)], axis)

    program = program_of(joined, (x.shape, "float32"))
    if made:
        assert {s for k in program.kernels.values() for s in k.shapes} == made
    ends = zip(starts, sizes, steps, strict=True)
    part = x[tuple(slice(a, a + n * step, step) for a, n, step in ends)] + 1
    whole = x if made else x[..., :3]
    got = run(joined, x)
    np.testing.assert_array_equal(got, np.concatenate([whole, part], axis))


READ_BY_PLACE = """
func.func @f(%x: tensor<2x5x7x12xf32>, %w: tensor<4x3xf32>) -> tensor<2x5x7x3xf32> {
  %part = tensor.extract_slice %x[0, 0, 0, 0] [2, 5, 7, 4] [1, 1, 1, 1]
      : tensor<2x5x7x12xf32> to tensor<2x5x7x4xf32>
  %none = tensor.empty() : tensor<2x5x7x4xf32>
  %read = linalg.generic {indexing_maps = [#same], iterator_types =
      ["parallel", "parallel", "parallel", "parallel"]}
      outs(%none : tensor<2x5x7x4xf32>) {
  ^bb0(%o: f32):
    %n = linalg.index 0 : index
    %y = linalg.index 1 : index
    %x0 = linalg.index 2 : index
    %c = linalg.index 3 : index
    %zero = arith.constant 0 : index
    %first = arith.minsi %y, %zero : index
    %v = tensor.extract %part[%n, %first, %x0, %c] : tensor<2x5x7x4xf32>
    linalg.yield %v : f32
  } -> tensor<2x5x7x4xf32>
  %empty = tensor.empty() : tensor<2x5x7x3xf32>
  %made = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types =
      ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%read, %w : tensor<2x5x7x4xf32>, tensor<4x3xf32>)
      outs(%empty : tensor<2x5x7x3xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %by = arith.mulf %p, %q : f32
    %sum = arith.addf %o, %by : f32
    linalg.yield %sum : f32
  } -> tensor<2x5x7x3xf32>
  return %made : tensor<2x5x7x3xf32>
}
"""
MAPS = """#same = affine_map<(n, y, x, c) -> (n, y, x, c)>
#a = affine_map<(n, y, x, f, c) -> (n, y, x, c)>
#b = affine_map<(n, y, x, f, c) -> (c, f)>
#c = affine_map<(n, y, x, f, c) -> (n, y, x, f)>
"""


def test_a_slice_that_is_read_by_place_keeps_its_axes() -> None:
    """As a border reads what lies beside another tensor: as many numbers as axes."""
    with mlir.context():
        module = mlir.ir.Module.parse(MAPS + READ_BY_PLACE)
        coalesce_loops(module, known_sizes=True)
        assert module.operation.verify()
        assert "[2, 5, 7, 4]" in str(module)


def test_what_is_folded_into_one_number_is_one_row() -> None:
    kernel = kernel_of(
        lambda b, x: b.reduce(lambda a, s: a + s, x, range(3), 0), (2, 3, 5)
    )
    assert kernel.shapes == ((30,), ())
    x = sample(3, (7, 9, 5), "float32")
    got = run(lambda b, x: b.reduce(lambda a, s: a + s, x, range(3), 0), x)
    check(got.reshape(()), wide(x).sum(), x.size, abs(wide(x)).sum())


def test_a_reduction_without_a_product_is_left_alone() -> None:
    """Columns that become one axis are no tasks."""
    kernel = kernel_of(
        lambda b, x: b.reduce(lambda a, s: a + s, x, [0], 0, keepdims=False), (2, 3, 5)
    )
    assert kernel.shapes == ((2, 3, 5), (3, 5))


@pytest.mark.parametrize(("name", "shape"), [("rv64gcv", (35,)), ("x86-64-v4", (5, 7))])
def test_any_kernel_has_one_axis_where_vectors_have_any_length(
    name: str, shape: tuple[int, ...]
) -> None:
    """Sums as well, of which columns become tasks there."""

    def doubled(b: Any, x: Any) -> Any:
        return b.reduce(lambda a, s: a + s, x, [0], 0, keepdims=False)

    with mlir.context():
        program = partition(build(doubled, ((2, 5, 7), "float32")), by_name(name))
    (kernel,) = program.kernels.values()
    assert kernel.shapes == ((2, *shape), shape)
