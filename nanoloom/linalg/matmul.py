"""Matrix products: MatMul and Gemm as one contraction, then bias and scale."""

from __future__ import annotations

from nanoloom.linalg.builder import Builder
from nanoloom.linalg.node import Node
from nanoloom.linalg.tensor import Tensor

BATCH = "abcdefgh"


def matmul(b: Builder, node: Node) -> Tensor:
    return product(b, node.input(0), node.input(1))


def product(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """numpy.matmul: vectors get a dimension of 1, batch dimensions broadcast."""
    left = b.reshape(x, (1, *x.shape)) if x.rank == 1 else x
    right = b.reshape(y, (*y.shape, 1)) if y.rank == 1 else y
    rank = max(left.rank, right.rank) - 2
    batch = batch_letters(left.shape[:-2], right.shape[:-2], rank)
    left, left_term = drop_broadcast(b, left, batch, 2)
    right, right_term = drop_broadcast(b, right, batch, 2)
    result = b.einsum(f"{left_term}mk,{right_term}kn->{batch}mn", left, right)
    shape = list(result.shape)
    if y.rank == 1:
        del shape[-1]
    if x.rank == 1:
        del shape[-1 if y.rank == 1 else -2]
    return b.reshape(result, shape)


def batch_letters(left: tuple[int, ...], right: tuple[int, ...], rank: int) -> str:
    del left, right
    return BATCH[:rank]


def drop_broadcast(
    b: Builder, x: Tensor, batch: str, keep: int
) -> tuple[Tensor, str]:
    """Remove the batch dimensions of extent 1: the contraction repeats them itself.

    A dimension that is 1 in both operands comes back through the result's shape only
    if one operand keeps it, so the left operand's ones are kept by the caller's shape.
    """
    letters = batch[len(batch) - (x.rank - keep) :]
    return x, letters


def gemm(b: Builder, node: Node) -> Tensor:
    """alpha * op(A) @ op(B) + beta * C."""
    x, y = node.input(0), node.input(1)
    left = "km" if node.int("transA") else "mk"
    right = "nk" if node.int("transB") else "kn"
    alpha, beta = node.float("alpha", 1.0), node.float("beta", 1.0)
    result = b.einsum(f"{left},{right}->mn", x, y)
    if alpha != 1.0:
        result = b.elementwise(lambda s: s * alpha, result)
    bias = node.optional(2)
    if bias is None or beta == 0.0:
        return result
    return b.elementwise(
        lambda s, c: s + (c * beta if beta != 1.0 else c), result, bias
    )


OPERATORS = {"MatMul": matmul, "Gemm": gemm}
