"""Matrix products: MatMul and Gemm as one contraction, then bias and scale."""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.builder import Builder, computed_as
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, is_float
from nanoloom.linalg.builder.tensor import Tensor

BATCH = "abcdefgh"


def matmul(b: Builder, node: Node) -> Tensor:
    return product(b, node.input(0), node.input(1))


def product(b: Builder, x: Tensor, y: Tensor, dtype: np.dtype | None = None) -> Tensor:
    """numpy.matmul: vectors get a dimension of 1, batch dimensions broadcast.

    A batch dimension of extent 1 does not index its operand: the contraction reads the
    same elements again, and nothing is copied.
    """
    left = b.reshape(x, (1, *x.shape)) if x.rank == 1 else x
    right = b.reshape(y, (*y.shape, 1)) if y.rank == 1 else y
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    letters = "".join(c for c, size in zip(BATCH, batch, strict=False) if size != 1)
    left, first = indexed(b, left, len(batch))
    right, second = indexed(b, right, len(batch))
    made = b.einsum(f"{first}mk,{second}kn->{letters}mn", left, right, dtype=dtype)
    rows = () if x.rank == 1 else (x.shape[-2],)
    columns = () if y.rank == 1 else (y.shape[-1],)
    return b.reshape(made, (*batch, *rows, *columns))


def indexed(b: Builder, x: Tensor, batch_rank: int) -> tuple[Tensor, str]:
    """An operand without batch dimensions of extent 1, and the names of the others."""
    outer = x.shape[:-2]
    letters = BATCH[batch_rank - len(outer) : batch_rank]
    named = [(c, size) for c, size in zip(letters, outer, strict=True) if size != 1]
    shape = (*[size for _, size in named], *x.shape[-2:])
    return b.reshape(x, shape), "".join(c for c, _ in named)


def gemm(b: Builder, node: Node) -> Tensor:
    """alpha * op(A) @ op(B) + beta * C, rounded once."""
    x, y, bias = node.input(0), node.input(1), node.optional(2)
    left = "km" if node.int("transA") else "mk"
    right = "nk" if node.int("transB") else "kn"
    alpha, beta = factor(node, "alpha", x.dtype), factor(node, "beta", x.dtype)
    wide = computed_as(x.dtype)
    result = b.einsum(f"{left},{right}->mn", x, y, dtype=wide)
    if bias is not None and beta != 0:
        return b.elementwise(
            lambda s, c: scaled(s, alpha) + scaled(c, beta), result, bias, dtype=x.dtype
        )
    if alpha == 1:
        return b.cast(result, x.dtype)
    return b.elementwise(lambda s: scaled(s, alpha), result, dtype=x.dtype)


def scaled(x: Scalar, by: float) -> Scalar:
    return x if by == 1 else x * by


def factor(node: Node, name: str, dtype: np.dtype) -> float:
    """alpha or beta, which must be whole numbers where matrices are of integers."""
    given = node.float(name, 1.0)
    if not is_float(dtype) and given != int(given):
        raise node.unsupported(
            f"{name} is {given}, but its matrices hold integers",
            "use a whole number, or convert to float before",
        )
    return given


OPERATORS = {"Gemm": gemm, "MatMul": matmul}
