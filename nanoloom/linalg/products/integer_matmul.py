"""MatMulInteger and QLinearMatMul: 8-bit products with exact 32-bit sums.

The contraction multiplies the stored integers, which is what the processors' dot
product instructions do.  Zero points enter afterwards, by row and by column:

    sum (a - p) * (b - q) == sum a * b - p * (sum b - K * q) - q * sum a
"""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import BroadcastOperand, combine
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor, changed
from nanoloom.linalg.elementwise.quantization import saturated
from nanoloom.linalg.products.matmul import product
from nanoloom.linalg.reductions.reduce import add
from nanoloom.weights.derivations import Sum

INT32, FLOAT64 = np.dtype(np.int32), np.dtype(np.float64)
ROWS, COLUMNS = -2, -1
SMALL = 4096  # elements of a zero point that are looked at while compiling


def matmul_integer(b: Builder, node: Node) -> Tensor:
    """(A - a_zero_point) @ (B - b_zero_point) in int32, which wraps."""
    x, y = node.input(0), node.input(1)
    return sums(b, x, y, parameter(node, 2, x, ROWS), parameter(node, 3, y, COLUMNS))


def parameter(node: Node, index: int, operand: Tensor, axis: int) -> Tensor | None:
    """A scale or zero point: one for all, or one for each row (column)."""
    found = node.optional(index)
    if found is None or found.size == 1:
        return found
    extents = list(operand.shape)
    if operand.rank > 1:
        extents[ROWS + COLUMNS - axis] = 1
        vector = found.shape == (operand.shape[axis],)
        pairs = zip(found.shape, extents, strict=False)
        if vector or (
            found.rank == operand.rank and all(a in (1, e) for a, e in pairs)
        ):
            return found
    raise node.unsupported(
        f"input {index} of shape {list(found.shape)} does not fit an operand of shape "
        f"{list(operand.shape)}",
        "give one value for the tensor, or one for each row of A and column of B",
    )


def sums(
    b: Builder, x: Tensor, y: Tensor, x_zero: Tensor | None, y_zero: Tensor | None
) -> Tensor:
    stored = product(b, x, y, INT32)
    depth = x.shape[-1]
    known = known_correction(x, x_zero, y, y_zero)
    if known is not None:
        places = column_places(x, y, stored.rank)
        less = BroadcastOperand(known, places)
        return combine(b, difference, stored.shape, INT32, stored, less)
    row = None if is_zero(x_zero) else by_row(b, x_zero, x, stored.rank, y)
    column = None if is_zero(y_zero) else by_column(b, y_zero, x, stored.rank)
    terms: list[BroadcastOperand] = []
    if row is not None:
        terms += [
            row,
            BroadcastOperand(column_sums(b, y), column_places(x, y, stored.rank)),
        ]
    if column is not None:
        terms += [
            column,
            BroadcastOperand(row_sums(b, x), row_places(x, y, stored.rank)),
        ]

    def body(total: Scalar, *given: Scalar) -> Scalar:
        values = [v.cast(INT32) for v in given]
        if row is not None and column is not None:
            p, below, q, across = values
            return total - p * (below - q * depth) - q * across
        return total - values[0] * values[1]

    if not terms:
        return stored
    return combine(b, body, stored.shape, INT32, stored, *terms)


def difference(total: Scalar, less: Scalar) -> Scalar:
    return total - less


def known_correction(
    x: Tensor, x_zero: Tensor | None, y: Tensor, y_zero: Tensor | None
) -> Tensor | None:
    """What one zero point of x takes from each column of constants, if q is 0."""
    if x_zero is None or is_zero(x_zero) or not is_zero(y_zero):
        return None
    if not x_zero.is_constant or x_zero.size != 1 or not is_parameter(y):
        return None
    zero, axis = int(x_zero.array().reshape(())), max(y.rank - 2, 0)
    return changed(y, Sum((axis,), zero))


def is_parameter(x: Tensor) -> bool:
    """Whether a tensor is a constant that has not entered the IR."""
    return x.weight is not None and x.value is None


def is_zero(zero: Tensor | None) -> bool:
    """Whether a zero point is absent or known to be 0 everywhere."""
    if zero is None:
        return True
    return zero.is_constant and zero.size <= SMALL and not zero.array().any()


def column_places(x: Tensor, y: Tensor, rank: int) -> tuple[int, ...]:
    """Where the right operand's batch dimensions and columns are in the result."""
    if y.rank == 1:
        return ()
    end = rank - 1 if x.rank == 1 else rank - 2
    return (*range(end - (y.rank - 2), end), rank - 1)


def row_places(x: Tensor, y: Tensor, rank: int) -> tuple[int, ...]:
    """The same for the left operand, whose rows are last if the right is a vector."""
    if x.rank == 1:
        return ()
    end = rank - 1 if y.rank == 1 else rank - 2
    return (*range(end - (x.rank - 2), end), end)


def by_row(
    b: Builder, parameter: Tensor | None, x: Tensor, rank: int, y: Tensor
) -> BroadcastOperand:
    """A scalar, a vector over rows, or [..., rows, 1]."""
    assert parameter is not None
    if parameter.size == 1:
        return BroadcastOperand(b.reshape(parameter, ()), ())
    end = row_places(x, y, rank)[-1]
    shape = parameter.shape if parameter.rank == 1 else parameter.shape[:-1]
    vector = b.reshape(parameter, shape)
    return BroadcastOperand(vector, tuple(range(end - len(shape) + 1, end + 1)))


def by_column(
    b: Builder, parameter: Tensor | None, x: Tensor, rank: int
) -> BroadcastOperand:
    """A scalar, a vector over columns, or [..., 1, columns]."""
    assert parameter is not None
    if parameter.size == 1:
        return BroadcastOperand(b.reshape(parameter, ()), ())
    if parameter.rank == 1:
        return BroadcastOperand(parameter, (rank - 1,))
    vector = b.reshape(parameter, (*parameter.shape[:-2], parameter.shape[-1]))
    return BroadcastOperand(vector, column_places(x, parameter, rank))


def row_sums(b: Builder, x: Tensor) -> Tensor:
    """The sum of each row of a left operand, int32."""
    return b.reduce(
        add,
        x,
        [x.rank - 1],
        0,
        keepdims=False,
        dtype=INT32,
        prepare=lambda s: s.cast(INT32),
    )


def column_sums(b: Builder, y: Tensor) -> Tensor:
    """The sum of each column of a right operand, int32; made now for constants."""
    axis = max(y.rank - 2, 0)
    if is_parameter(y):
        return changed(y, Sum((axis,)))
    return b.reduce(
        add,
        y,
        [axis],
        0,
        keepdims=False,
        dtype=INT32,
        prepare=lambda s: s.cast(INT32),
    )


def qlinear_matmul(b: Builder, node: Node) -> Tensor:
    """saturate(round(sum * (a_scale * b_scale / y_scale)) + y_zero_point).

    The factor is rounded to the scales' type after each step, the product with the sum
    is one of f64: as in ONNX's reference, every rounding is the same.
    """
    x, y, kind = node.input(0), node.input(3), node.input(1).dtype
    x_scale, x_zero = (parameter(node, i, x, ROWS) for i in (1, 2))
    y_scale, y_zero = (parameter(node, i, y, COLUMNS) for i in (4, 5))
    out_scale, out_zero = (parameter(node, i, x, ROWS) for i in (6, 7))
    total = sums(b, x, y, x_zero, y_zero)
    rank, dtype = total.rank, node.output_dtypes[0]

    def body(s: Scalar, zero: Scalar, one: Scalar, *others: Scalar) -> Scalar:
        factor = combined(kind, one, *others) if others else one
        whole = (s.cast(FLOAT64) * factor.cast(FLOAT64)).math("roundeven")
        return saturated(whole + zero.cast(FLOAT64), dtype)

    known = known_factor(b, x_scale, y_scale, out_scale)
    if known is not None:
        factors = [by_column(b, known, x, rank)]
    else:
        factors = [
            by_row(b, x_scale, x, rank, y),
            by_column(b, y_scale, x, rank),
            by_row(b, out_scale, x, rank, y),
        ]
    start = by_row(b, out_zero, x, rank, y)
    return combine(b, body, total.shape, dtype, total, start, *factors)


def combined(kind: np.dtype, one: Scalar, other: Scalar, by: Scalar) -> Scalar:
    """one * other / by, rounded to `kind` twice."""
    wide = one.dtype
    both = (one * other.cast(wide)).cast(kind).cast(wide)
    return (both / by.cast(wide)).cast(kind)


def known_factor(b: Builder, *scales: Tensor | None) -> Tensor | None:
    """a * b / y of constant scales, one for a and y: no division for each result."""
    known = [s.array() for s in scales if s is not None and is_parameter(s)]
    if len(known) < len(scales) or known[0].size > 1 or known[2].size > 1:
        return None
    one, other, by = known
    if by.ndim > 1 or other.ndim > 1 or one.ndim > 1:
        return None
    return b.constant((one.reshape(()) * other / by.reshape(())).astype(FLOAT64))


OPERATORS = {"MatMulInteger": matmul_integer, "QLinearMatMul": qlinear_matmul}
