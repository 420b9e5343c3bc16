"""Computations as linalg and as kernels: the text, and the loop nests."""

from __future__ import annotations

from nanoloom import mlir
from nanoloom.notation import Buffer, axes, computation, minimum
from tests.filecheck import check_text
from tests.notation.programs import convolution, kernels, stencil


def test_the_convolution_is_one_kernel() -> None:
    (kernel,) = kernels(convolution()).kernels.values()
    loops = str(kernel.nest).splitlines()
    begin = loops.index("            for d6 in 0..20 (sum):") - 6
    assert loops[begin : begin + 8] == [
        "for d0 in 0..2:",
        "  for d1 in 0..7:",
        "    for d2 in 0..11:",
        "      for d3 in 0..24:",
        "        for d4 in 0..3 (sum):",
        "          for d5 in 0..3 (sum):",
        "            for d6 in 0..20 (sum):",
        "              product: product[d0, d1, d2, d3] <- arg0[d6, d4, d5, d3], "
        "arg1[d0, d1 + d4, d2 + d5, d6]",
    ]
    assert [stage.name for stage in kernel.nest.stages] == [
        "fill",
        "product",
        "point",
        "point_2",
    ]


def test_a_stencil_reads_where_its_points_are() -> None:
    (kernel,) = kernels(stencil()).kernels.values()
    (stage,) = kernel.nest.stages
    assert {str(read) for read in stage.reads} == {
        "arg0[d0 + 1, d1 + 1, d2 + 1]",
        "arg0[d0, d1 + 1, d2 + 1]",
        "arg0[d0 + 2, d1 + 1, d2 + 1]",
        "arg0[d0 + 1, d1, d2 + 1]",
        "arg0[d0 + 1, d1 + 2, d2 + 1]",
        "arg0[d0 + 1, d1 + 1, d2]",
        "arg0[d0 + 1, d1 + 1, d2 + 2]",
    }


def test_a_number_is_what_a_reduction_begins_with() -> None:
    i, j = axes("i j")
    a, b = Buffer("a", (6, 8)), Buffer("b", (6,))
    b[i] = 7
    b[i] = minimum(b[i], a[i, j])
    with mlir.context():
        text = str(computation(b).lower().module)
    check_text(
        text,
        """
        CHECK: func.func @main(%[[A:.*]]: tensor<6x8xf32> {{.*}}nanoloom.input = "a"
        CHECK: arith.constant 7.0
        CHECK: linalg.generic
        CHECK-SAME: iterator_types = ["parallel", "reduction"]
        CHECK-SAME: ins(%[[A]] : tensor<6x8xf32>)
        CHECK: arith.minimumf
        CHECK-NOT: linalg.generic
        """,
    )
