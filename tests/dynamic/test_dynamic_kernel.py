"""Kernels for samples become one whose extents are read from its sizes."""

from __future__ import annotations

import pytest

from nanoloom.dynamic.dynamic_kernel import DynamicKernel, make_dynamic
from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from tests.filecheck import check_text

SAMPLES = ({"n": 131}, {"n": 137}, {"n": 139})
KERNEL = """
func.func @kernel(%x: tensor<{n}x4xf32>, %y: tensor<{n}x{m}xf32>) -> tensor<{n}x{m}xf32>
    attributes {{arg_attrs = [{{}}, {{}}]}} {{
  %c = arith.constant {c} : {kind}
  %e = tensor.empty() : tensor<{n}x{m}xf32>
  %part = tensor.extract_slice %x[0, 0] [{n}, {m}] [1, 1]
    : tensor<{n}x4xf32> to tensor<{n}x{m}xf32>
  return %part : tensor<{n}x{m}xf32>
}}
"""


def lifted(c: str = "{n}", kind: str = "index", m: str = "2") -> DynamicKernel:
    with mlir.context():
        texts = [
            KERNEL.format(
                n=dims["n"],
                m=m.format(**dims),
                c=c.format(
                    **dims,
                    odd=dims["n"] // 2,
                    last=dims["n"] * (dims["n"] + 3) - 1,
                ),
                kind=kind,
            )
            for dims in SAMPLES
        ]
        return make_dynamic([ir.Module.parse(text) for text in texts], SAMPLES)


def test_extents_and_constants() -> None:
    made = lifted()
    assert [str(size) for size in made.sizes] == ["n"]
    check_text(
        made.text,
        """
        CHECK: func.func @kernel(%[[X:.*]]: tensor<?x4xf32>, %[[S:.*]]: tensor<1xi64>
        CHECK-SAME: %[[Y:.*]]: tensor<?x2xf32>
        CHECK: %[[W:.*]] = tensor.extract %[[S]]
        CHECK: %[[N:.*]] = arith.index_cast %[[W]] : i64 to index
        CHECK: tensor.extract_slice %[[X]][0, 0] [%[[N]], 2] [1, 1]
        CHECK-NOT: 131
        """,
    )


def test_the_last_of_some_elements() -> None:
    """One less than two products of dimensions is no size; all of them are one."""
    made = lifted("{last}")
    assert [str(size) for size in made.sizes] == ["n", "3 * n + n * n"]
    check_text(
        made.text,
        """
        CHECK: arith.index_cast
        CHECK: %[[ALL:.*]] = arith.index_cast
        CHECK: %[[ONE:.*]] = arith.constant 1 : index
        CHECK: arith.subi %[[ALL]], %[[ONE]] : index
        """,
    )


def test_nothing_to_lift() -> None:
    with mlir.context():
        text = KERNEL.format(n=9, m=2, c=1, kind="index")
        made = make_dynamic([ir.Module.parse(text) for _ in range(3)], SAMPLES)
    assert not made.sizes and "?" not in made.text


@pytest.mark.parametrize(
    ("c", "kind", "reason"),
    [
        ("{odd}", "index", "a constant is no known function of n; give one a number"),
        ("{n}.25", "f32", "a constant is no known function of n; .*--dim n=N"),
    ],
)
def test_what_differs_otherwise(c: str, kind: str, reason: str) -> None:
    with pytest.raises(NotDynamic, match=reason):
        lifted(c, kind)
