"""A report that no model was compiled for."""

from __future__ import annotations

from nanoloom.explain.report import (
    Demand,
    Explanation,
    Fused,
    KernelReport,
    Node,
    NotFused,
    RunnerUp,
)

EVIL = "<script>window.stolen = 1</script><img src='http://192.0.2.1/x.png'>"
PRODUCT = KernelReport(
    "contraction_f32",
    ("MatMul_0",),
    ("MatMul_0", "Relu_1"),
    2,
    "for d0 in 0..37:\n  product: product[d0, d1] <- x[d0, d2], w[d2, d1]",
    "Parallel('product', (5, 64, 0), ('all',))",
    "tiles of 5x4 vectors",
    "vfmadd231ps %zmm0, %zmm1, %zmm2\njb .L2",
    3,
    (
        Demand("arithmetic", 10**8, 2e11),
        Demand("L2", 10**7, 1e11),
        Demand("memory", 0, 2e10),
    ),
    cost=1.1,
    predicted=0.00055,
    limit="arithmetic",
    measured=0.001,
    low=0.0009,
    high=0.0012,
    fused=(Fused("product", "point", "d1", 21016, 0),),
    not_fused=(NotFused(("Exp_4",), 10508, "one step of its reader reads all of it"),),
    candidates=(RunnerUp("tiles of 5x4 vectors", 1.1, True), RunnerUp("other", 1.2)),
)
SLOW = KernelReport(
    "elementwise_f64",
    ("Exp_4",),
    ("Exp_4",),
    1,
    "for d0 in 0..37:\n  point: point[d0] <- product[d0]",
    "Scalarize('point')",
    "rows are independent",
    "callq exp@PLT",
    1,
    (Demand("arithmetic", 10**4, 2e9), Demand("L2", 10**5, 1e11)),
    cost=1.0,
    predicted=0.000005,
    limit="latency",
    measured=0.003,
    low=0.0028,
    high=0.0031,
    fallbacks=("scalar loop: point: math.exp has no form on vectors",),
)
REPORT = Explanation(
    "slow.onnx",
    "host-x",
    "f32",
    "0.1.0",
    2,
    (
        Node("MatMul_0", "MatMul", ("contraction_f32",)),
        Node("Relu_1", "Relu", ("contraction_f32",)),
        Node("Transpose_2", "Transpose"),
        Node("Exp_4", "Exp", ("elementwise_f64",)),
    ),
    (PRODUCT, SLOW),
    0.0041,
    9,
)
