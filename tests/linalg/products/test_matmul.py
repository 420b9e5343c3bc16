"""MatMul and Gemm against float64, with forward error bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import Unsupported
from nanoloom.ir import mlir
from nanoloom.ir.mlir import func, ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.products.matmul import product
from tests.drawn_cases import few_examples
from tests.linalg.single import run_node

SHAPES = [
    ((3,), (3,)),
    ((5,), (5, 7)),
    ((7, 5), (5,)),
    ((2, 3, 5), (5,)),
    ((5,), (2, 5, 3)),
    ((1, 3, 5), (4, 5, 2)),
    ((2, 1, 3, 5), (3, 5, 7)),
    ((1, 1, 3, 5), (1, 5, 2)),
    ((2, 3, 0), (0, 2)),
    ((0, 3, 4), (4, 2)),
    ((1, 2, 1, 3, 2), (3, 1, 2, 2, 3)),
]


def within(got: np.ndarray, x: np.ndarray, y: np.ndarray, extra: int = 2) -> bool:
    """Forward error of a dot product of length k: (k + extra) * eps * |x| @ |y|."""
    eps = float(np.finfo(got.dtype).eps)
    one, other = x.astype(np.float64), y.astype(np.float64)
    bound = (x.shape[-1] + extra) * eps * np.matmul(abs(one), abs(other))
    return bool((abs(got.astype(np.float64) - one @ other) <= bound).all())


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_shapes_follow_numpy(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    r = np.random.default_rng(0)
    x, y = (r.standard_normal(s).astype(np.float32) for s in (left, right))
    got = run_node("MatMul", [x, y])[0]
    assert got.shape == np.matmul(x, y).shape
    assert within(got, x, y)
    if got.size and x.shape[-1]:
        assert not within(0 * got, x, y)


@given(
    st.sampled_from(["float64", "float16", "bfloat16", "int32", "uint64"]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 9),
)
@few_examples(10)
def test_types(name: str, m: int, k: int, n: int) -> None:
    r = np.random.default_rng(m + 10 * k + 100 * n)
    if name == "bfloat16":
        import ml_dtypes

        kind = np.dtype(ml_dtypes.bfloat16)
    else:
        kind = np.dtype(name)
    if kind.kind in "iu":
        x, y = (r.integers(0, 2**31, s).astype(kind) for s in ((m, k), (k, n)))
        assert (run_node("MatMul", [x, y])[0] == x @ y).all()
        return
    x, y = (r.standard_normal(s).astype(kind) for s in ((m, k), (k, n)))
    got = run_node("MatMul", [x, y])[0]
    one, other = x.astype(np.float64), y.astype(np.float64)
    work = np.finfo(np.float64 if name == "float64" else np.float32).eps
    bound = (k + 2) * float(work) * (abs(one) @ abs(other))
    if name != "float64":
        import ml_dtypes

        bound = bound + float(ml_dtypes.finfo(kind).eps) * abs(one @ other)
    assert (abs(got.astype(np.float64) - one @ other) <= bound).all()


@given(
    st.booleans(),
    st.booleans(),
    st.sampled_from([1.0, 0.5, -2.0]),
    st.sampled_from([0.0, 1.0, 0.25]),
    st.sampled_from([None, (), (1,), (5,), (3, 1), (1, 5), (3, 5)]),
)
@few_examples(12)
def test_gemm(
    turn_x: bool,
    turn_y: bool,
    alpha: float,
    beta: float,
    bias: tuple[int, ...] | None,
) -> None:
    r = np.random.default_rng(1)
    x, y = (r.standard_normal(s).astype(np.float32) for s in ((3, 7), (7, 5)))
    c = None if bias is None else r.standard_normal(bias).astype(np.float32)
    inputs = [x.T.copy() if turn_x else x, y.T.copy() if turn_y else y, c]
    got = run_node(
        "Gemm",
        inputs if c is not None else inputs[:2],
        transA=int(turn_x),
        transB=int(turn_y),
        alpha=alpha,
        beta=beta,
    )[0]
    wide = [v.astype(np.float64) for v in (x, y)]
    added = 0.0 if c is None else beta * c.astype(np.float64)
    right = alpha * wide[0] @ wide[1] + added
    size = abs(alpha) * abs(wide[0]) @ abs(wide[1]) + abs(added)
    bound = (7 + 4) * np.finfo(np.float32).eps * size
    assert (abs(got - right) <= bound).all()
    assert not (abs(0 * got - right) <= bound).all()


def test_a_broadcast_operand_is_not_copied() -> None:
    """The contraction reads [1, 3, 5] for each of 4 batch rows: no other generic."""
    with mlir.context():
        module = ir.Module.create()
        kinds = [
            ir.RankedTensorType.get(s, ir.F32Type.get()) for s in ([1, 3, 5], [4, 5, 2])
        ]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("f", ir.FunctionType.get(kinds, []))
            block = main.add_entry_block()
        with ir.InsertionPoint(block):
            x, y = (
                Tensor(tuple(k.shape), np.dtype(np.float32), v)
                for k, v in zip(kinds, block.arguments, strict=True)
            )
            made = product(Builder(lambda t: block.arguments[0]), x, y)
            func.ReturnOp([])
        generics = mlir.named(module, "linalg.generic")
        assert made.shape == (4, 3, 2)
        assert len(generics) == 2  # zeros, and the contraction
        assert "(d0, d1, d2, d3) -> (d1, d3)" in str(generics[1])


def test_integer_gemm_refuses_a_fraction() -> None:
    x = np.ones((2, 2), np.int32)
    assert (run_node("Gemm", [x, x], alpha=3.0)[0] == 6).all()
    with pytest.raises(Unsupported, match="alpha is 0"):
        run_node("Gemm", [x, x], alpha=0.5)
