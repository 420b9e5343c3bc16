"""Matrices in factors, in torch's simpler operators.

One step for each column, as a scan: a matrix loses a product of that column and a row.
All matrices of a batch take a step together.  A matrix that has no such factors gives
NaN or infinity, and an `info` that is not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
    own = len(state)

    def combine(*given: Tensor) -> list[Tensor]:
        made = step(given[own], *given[:own], *given[own + 1 :])
        return own_memory(made)

    order = torch.arange(count)
    order = order.flip(0) if backward else order
    scan: Any = torch.ops.higher_order.scan
    return tuple(scan(combine, own_memory(state), [order], held)[:own])


def own_memory(state: tuple[Tensor, ...]) -> list[Tensor]:
    """Copies in rows one after the other: a scan wants what it began with."""
    return [x.clone(memory_format=torch.contiguous_format) for x in state]


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
    """a = L @ L.mT, of the lower triangle; of the upper one, U = L.mT."""

    def step(k: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        rows, columns = places(x)
        here = column(x, k)
        square = row(here, k)
        root = torch.where(square > 0, square.sqrt(), float("nan"))
        here = torch.where(rows == k, root, here / root)
        below = torch.where(rows > k, here, 0)
        left = x - below * below.mT
        return (torch.where(columns == k, here, left),)

    (made,) = by_columns(step, a.shape[-1], (flat(a.mT if upper else a),))
    made = made.reshape(a.shape).tril()
    diagonal = made.diagonal(dim1=-2, dim2=-1)
    return made.mT if upper else made, first_bad(diagonal, diagonal > 0)


def lu_factor(
    a: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Both factors in one matrix, the rows that were exchanged, and info."""
    count = min(a.shape[-2:])

    def step(k: Tensor, x: Tensor, exchanged: Tensor) -> tuple[Tensor, ...]:
        rows, columns = places(x)
        at = k.reshape(1, 1, 1).expand(x.shape[0], 1, 1)
        if pivot:
            size = torch.where(rows >= k, column(x, k).abs(), -1)
            at = size.argmax(1, keepdim=True)
        top = x.gather(1, at.expand(-1, -1, x.shape[2]))
        x = torch.where(rows == k, top, torch.where(rows == at, row(x, k), x))
        value, first = column(top, k), column(x, k)
        share = torch.where(value == 0, first, first / value)
        left = torch.where(columns > k, x - share * top, x)
        left = torch.where(columns == k, share, left)
        number = (at.reshape(-1, 1) + 1).to(torch.int32)
        exchanged = torch.where(torch.arange(count) == k, number, exchanged)
        return torch.where(rows > k, left, x), exchanged

    x = flat(a)
    none = torch.zeros((x.shape[0], count), dtype=torch.int32)
    made, exchanged = by_columns(step, count, (x, none))
    diagonal = made.diagonal(dim1=-2, dim2=-1)
    info = first_bad(diagonal, diagonal != 0)
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
    p = lower = upper = data.new_empty([0])
    rows, columns = data.shape[-2:]
    count = min(rows, columns)
    if unpack_pivots:
        order = order_of(flat(pivots.unsqueeze(-2))[:, 0], rows)
        p = (torch.arange(rows)[:, None] == order[:, None, :]).to(data.dtype)
        p = p.reshape(*data.shape[:-2], rows, rows)
    if unpack_data:
        lower = data[..., :count].tril(-1) + torch.eye(rows, count, dtype=data.dtype)
        upper = data[..., :count, :].triu()
    return p, lower, upper


def lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    data, exchanged, _ = lu_factor(a, pivot=pivot)
    return lu_unpack(data, exchanged, unpack_pivots=pivot)


RULES: dict[Any, Any] = {
    aten.linalg_cholesky_ex.default: cholesky,
    aten.linalg_lu_factor_ex.default: lu_factor,
    aten.linalg_lu.default: lu,
    aten.lu_unpack.default: lu_unpack,
}
