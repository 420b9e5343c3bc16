"""Checks that run-time indices are in range: small reductions beside the operators.

What reads or writes at an index clamps it nevertheless: a run goes on to its end with
an index out of range, and reports it there.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.errors import ModelError
from nanoloom.ir.mlir import tensor
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.checks import UINT64, Check, Limits
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import BOOL, Scalar, constant, select
from nanoloom.linalg.builder.slices import index as number_of
from nanoloom.linalg.builder.tensor import Tensor


def index_range(extent: int) -> range:
    """The indices of a dimension, counted from its beginning or from its end."""
    return range(-extent, extent)


def check(
    b: Builder,
    node: Node,
    indices: Tensor,
    allowed: range,
    what: str = "index",
    ignored: int | None = None,
) -> Check | None:
    """Refuse indices out of range: those known now by ModelError, others at run time.

    ignored: an index that is allowed wherever the range lies.  Gives the check that a
    run makes, None where it makes none.
    """
    column = b.reshape(indices, (indices.size, 1))
    return check_columns(b, node, column, [allowed], what, ignored)


def check_columns(
    b: Builder,
    node: Node,
    indices: Tensor,
    allowed: Sequence[range],
    what: str = "index",
    ignored: int | None = None,
) -> Check | None:
    """The same for indices [n, k], each of the k columns with a range of its own."""
    if indices.size == 0:
        return None
    limits = tuple(limits_of(node, numbers, what) for numbers in allowed)
    if indices.is_constant:
        array = indices.array()
        array = array[(array != ignored).all(1)] if ignored is not None else array
        try:
            for limit, column in zip(limits, array.T, strict=True):
                limit.refuse(column)
        except ModelError:
            if not b.checks.nested:
                raise
        else:
            return None
    if not b.checks.wanted:
        return None
    words = extreme_index(b, indices, limits[0].low < 0, ignored)
    b.checks.made.append(made := Check(words, limits))
    return made


def passes(b: Builder, check: Check) -> Scalar:
    """Whether all indices of a check are in range."""
    found = constant(True, BOOL)
    for number, limits in enumerate(check.limits):
        word = Scalar(tensor.extract(b.value(check.words), [number_of(number)]), UINT64)
        most = 2 * limits.high + 1 if limits.low < 0 else limits.high
        found = found & (word <= constant(most, UINT64))
    return found


def limits_of(node: Node, allowed: range, what: str) -> Limits:
    """Raises ModelError where no index is allowed: there is nothing to clamp it to."""
    if not allowed:
        raise ModelError(
            f"there is no place for its {what}: the dimension is empty",
            where=node.where,
        )
    return Limits(allowed[0], allowed[-1], node.where, what)


def extreme_index(
    b: Builder, indices: Tensor, both_ends: bool, ignored: int | None
) -> Tensor:
    """The words of a check, [k], for indices [n, k]."""

    def word(index: Scalar) -> Scalar:
        wide = index.cast(INT64)
        if ignored is not None:
            wide = select(wide.equal(ignored), constant(0, INT64), wide)
        if both_ends:
            wide = (wide + wide) ^ (wide >> 63)
        return wide.cast(UINT64)

    return b.reduce(
        lambda sofar, other: sofar.maximum(other),
        indices,
        [0],
        0,
        keepdims=False,
        dtype=UINT64,
        prepare=word,
    )
