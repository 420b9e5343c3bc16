"""Matrices in factors, in torch's simpler operators.

One step for each column, as a scan: a matrix loses a product of that column and a row.
All matrices of a batch take a step together.  A matrix that has no such factors gives
NaN or infinity, and an `info` that is not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten: Any = torch.ops.aten
Tensor = torch.Tensor
# Of the column's number, the state, and what all steps read.
Step = Callable[..., tuple[Tensor, ...]]


def by_columns(
    step: Step, count: int, state: tuple[Tensor, ...], held: tuple[Tensor, ...] = (),
    *, backward: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The state after one step for each of so many columns."""
    if count == 0:
        return state
    began, kept = parts_of(state), parts_of(held)
    own = len(began)

    def combine(*given: Tensor) -> list[Tensor]:
        now, rest = as_before(given[:own], state), as_before(given[own + 1 :], held)
        return own_memory(parts_of(step(given[own], *now, *rest)))

    order = torch.arange(count)
    order = order.flip(0) if backward else order
    scan: Any = torch.ops.higher_order.scan
    return as_before(scan(combine, own_memory(began), [order], kept)[:own], state)


def own_memory(state: tuple[Tensor, ...]) -> list[Tensor]:
    """Copies in rows one after the other: a scan wants what it began with."""
    return [x.clone(memory_format=torch.contiguous_format) for x in state]


def parts_of(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Real and imaginary parts apart: a graph inside of another takes no pairs."""
    each = [(x.re, x.im) if is_pair(x) else (x,) for x in tensors]
    return tuple(part for parts in each for part in parts)


def as_before(parts: Sequence[Tensor], before: tuple[Tensor, ...]) -> tuple[Any, ...]:
    """The parts as pairs again, where there were such."""
    left = iter(parts)
    return tuple(
        type(x)(next(left), next(left)) if is_pair(x) else next(left) for x in before
    )


def is_pair(x: Tensor) -> bool:
    """Whether it is a complex tensor in two real ones: torch's ComplexTensor."""
    return hasattr(x, "re")


def of_parts(function: Callable[[Tensor], Tensor], x: Any) -> Any:
    """What is no rule of torch for pairs, and does the same to both parts."""
    return type(x)(function(x.re), function(x.im)) if is_pair(x) else function(x)


def lower(x: Tensor, diagonal: int = 0) -> Tensor:
    return of_parts(lambda part: part.tril(diagonal), x)


def eye_as(x: Any, rows: int, columns: int) -> Any:
    """Of the element type of x; a pair, if that is one."""
    eye = torch.eye(rows, columns, dtype=real_part(x).dtype)
    return type(x)(eye, torch.zeros_like(eye)) if is_pair(x) else eye


def adjoint_of(x: Any) -> Any:
    """The transposed matrix, of complex numbers the conjugate of that."""
    return type(x)(x.re.mT, -x.im.mT) if is_pair(x) else x.mT


def conjugate(x: Any) -> Any:
    return type(x)(x.re, -x.im) if is_pair(x) else x


def squares(x: Any) -> Tensor:
    """Of each number's size."""
    return x.re * x.re + x.im * x.im if is_pair(x) else x * x


def real_part(x: Any) -> Tensor:
    return x.re if is_pair(x) else x


def imaginary(x: Any) -> Tensor:
    return x.im if is_pair(x) else torch.zeros_like(x)


def pivot_size(x: Any) -> Tensor:
    """What LAPACK compares: of complex numbers, both parts' sizes added."""
    return x.re.abs() + x.im.abs() if is_pair(x) else x.abs()


def row(x: Tensor, k: Tensor) -> Tensor:
    return x.index_select(1, k.reshape(1))


def column(x: Tensor, k: Tensor) -> Tensor:
    return x.index_select(2, k.reshape(1))


def places(x: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers of rows [rows, 1] and of columns."""
    return torch.arange(x.shape[1])[:, None], torch.arange(x.shape[2])


def flat(x: Tensor) -> Tensor:
    """[batch, rows, columns]"""
    return x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])


def first_bad(diagonal: Tensor, good: Tensor) -> Tensor:
    """LAPACK's info: which number on the diagonal is the first that is not good."""
    at = (~good).to(torch.int32)
    count = diagonal.shape[-1]
    if count == 0:
        return torch.zeros(diagonal.shape[:-1], dtype=torch.int32)
    number = at.argmax(-1).to(torch.int32) + 1
    return torch.where(at.any(-1), number, torch.zeros_like(number))


def cholesky(
    a: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """a = L @ L.mH, of the lower triangle; of the upper one, U = L.mH."""

    def step(k: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        rows, columns = places(x)
        here = column(x, k)
        square = real_part(row(here, k))
        root = torch.where(square > 0, square.sqrt(), float("nan"))
        here = torch.where(rows == k, root, here / root)
        below = torch.where(rows > k, here, 0)
        left = x - below * adjoint_of(below)
        return (torch.where(columns == k, here, left),)

    (made,) = by_columns(step, a.shape[-1], (flat(adjoint_of(a) if upper else a),))
    made = lower(made.reshape(a.shape))
    diagonal = real_part(made.diagonal(dim1=-2, dim2=-1))
    return adjoint_of(made) if upper else made, first_bad(diagonal, diagonal > 0)


def lu_factor(
    a: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Both factors in one matrix, the rows that were exchanged, and info."""
    count = min(a.shape[-2:])

    def step(k: Tensor, x: Tensor, exchanged: Tensor) -> tuple[Tensor, ...]:
        rows, columns = places(x)
        at = k.reshape(1, 1, 1).expand(x.shape[0], 1, 1)
        if pivot:
            size = torch.where(rows >= k, pivot_size(column(x, k)), -1)
            at = size.argmax(1, keepdim=True)
        top = x.gather(1, at.expand(-1, -1, x.shape[2]))
        x = torch.where(rows == k, top, torch.where(rows == at, row(x, k), x))
        value, first = column(top, k), column(x, k)
        share = torch.where(pivot_size(value) == 0, first, first / value)
        left = torch.where(columns > k, x - share * top, x)
        left = torch.where(columns == k, share, left)
        number = (at.reshape(-1, 1) + 1).to(torch.int32)
        exchanged = torch.where(torch.arange(count) == k, number, exchanged)
        return torch.where(rows > k, left, x), exchanged

    x = flat(a)
    none = torch.zeros((x.shape[0], count), dtype=torch.int32)
    made, exchanged = by_columns(step, count, (x, none))
    diagonal = made.diagonal(dim1=-2, dim2=-1)
    info = first_bad(diagonal, pivot_size(diagonal) != 0)
    batch = a.shape[:-2]
    return made.reshape(a.shape), exchanged.reshape(*batch, count), info.reshape(batch)


def order_of(exchanged: Tensor, rows: int) -> Tensor:
    """Which row of a matrix each row of its factors' product is: [batch, rows]."""

    def step(k: Tensor, order: Tensor, exchanged: Tensor) -> tuple[Tensor, ...]:
        number = torch.arange(rows)
        at = exchanged.index_select(1, k.reshape(1)).to(torch.int64) - 1
        other, own = order.gather(1, at), order.index_select(1, k.reshape(1))
        found = torch.where(number == at, own, order)
        return (torch.where(number == k, other, found),)

    begin = torch.arange(rows).expand(exchanged.shape[0], rows)
    return by_columns(step, exchanged.shape[1], (begin,), (exchanged,))[0]


def lu_unpack(
    data: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U, whose product is the matrix; those that nobody asks for are empty."""
    p = low = high = of_parts(lambda part: part.new_empty([0]), data)
    rows, columns = data.shape[-2:]
    count = min(rows, columns)
    if unpack_pivots:
        order = order_of(flat(pivots.unsqueeze(-2))[:, 0], rows)
        p = torch.arange(rows)[:, None] == order[:, None, :]
        p = p.reshape(*data.shape[:-2], rows, rows).to(real_part(data).dtype)
        p = type(data)(p, torch.zeros_like(p)) if is_pair(data) else p
    if unpack_data:
        low = lower(data[..., :count], -1) + eye_as(data, rows, count)
        high = of_parts(Tensor.triu, data[..., :count, :])
    return p, low, high


def lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    data, exchanged, _ = lu_factor(a, pivot=pivot)
    return lu_unpack(data, exchanged, unpack_pivots=pivot)


RULES: dict[Any, Any] = {
    aten.linalg_cholesky_ex.default: cholesky,
    aten.linalg_lu_factor_ex.default: lu_factor,
    aten.linalg_lu.default: lu,
    aten.lu_unpack.default: lu_unpack,
}
