"""Computations as linalg and as kernels: the text, and the loop nests."""

from __future__ import annotations

from nanoloom.ir import mlir
from nanoloom.notation import Buffer, axes, computation, minimum
from tests.filecheck import check_text
from tests.notation.programs import convolution, kernels, stencil


def test_the_convolution_is_one_kernel() -> None:
    (kernel,) = kernels(convolution()).kernels.values()
    loops = str(kernel.nest).splitlines()
    begin = loops.index("            for rx in 0..20 (sum):") - 6
    assert loops[begin : begin + 8] == [
        "for n in 0..2:",
        "  for y in 0..7:",
        "    for x in 0..11:",
        "      for c in 0..24:",
        "        for rz in 0..3 (sum):",
        "          for ry in 0..3 (sum):",
        "            for rx in 0..20 (sum):",
        "              conv: conv[n, y, x, c] <- arg0[rx, rz, ry, c], "
        "arg1[n, y + rz, x + ry, rx]",
    ]
    assert [stage.name for stage in kernel.nest.stages] == [
        "fill",
        "conv",
        "conv_2",
        "relu",
    ]


def test_a_stencil_reads_where_its_points_are() -> None:
    (kernel,) = kernels(stencil()).kernels.values()
    (stage,) = kernel.nest.stages
    assert {str(read) for read in stage.reads} == {
        "arg0[i + 1, j + 1, k + 1]",
        "arg0[i, j + 1, k + 1]",
        "arg0[i + 2, j + 1, k + 1]",
        "arg0[i + 1, j, k + 1]",
        "arg0[i + 1, j + 2, k + 1]",
        "arg0[i + 1, j + 1, k]",
        "arg0[i + 1, j + 1, k + 2]",
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
