"""Householder's reflections, each I - tau * v @ v.mH, in torch's simpler operators.

One step for each column, as of `matrix_factors`.  A matrix in factors has R in its
upper triangle and below that the vectors, each of which begins with a 1 that is not
kept; so LAPACK has it.
"""

from __future__ import annotations

from typing import Any

import torch

from nanoloom.frontend.torch.matrix_factors import (
    Tensor,
    adjoint_of,
    by_columns,
    column,
    conjugate,
    eye_as,
    flat,
    imaginary,
    is_pair,
    of_parts,
    pivot_size,
    places,
    real_part,
    row,
    squares,
)

aten: Any = torch.ops.aten


def geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    """R and the vectors in one matrix, and each tau."""
    count = min(a.shape[-2:])

    def step(k: Tensor, x: Tensor, taus: Tensor) -> tuple[Tensor, ...]:
        rows, columns = places(x)
        first = column(x, k)
        here = torch.where(rows >= k, first, 0)
        top, below = row(here, k), torch.where(rows > k, first, 0)
        alone = pivot_size(below).sum(1, keepdim=True) == 0
        turns = ~alone | (imaginary(top) != 0)  # nothing is turned where it is real
        size = squares(here).sum(1, keepdim=True).sqrt()
        made = torch.where(real_part(top) < 0, size, -size)
        made = torch.where(turns, made, real_part(top))
        tau = torch.where(turns, (made - top) / made, 0)
        vector = torch.where(turns, below / (top - made), 0)
        whole = torch.where(rows == k, 1, vector)
        left = x - conjugate(tau) * whole * inner(whole, x)
        own = torch.where(rows == k, made, torch.where(rows > k, vector, first))
        left = torch.where(columns == k, own, torch.where(columns > k, left, x))
        return left, torch.where(torch.arange(count) == k, tau[:, 0], taus)

    x = flat(a)
    none = of_parts(lambda part: part.new_zeros([x.shape[0], count]), x)
    made, taus = by_columns(step, count, (x, none))
    return made.reshape(a.shape), taus.reshape(*a.shape[:-2], count)


def inner(vector: Any, x: Any) -> Any:
    """vector.mH @ x, which torch has not of pairs inside of a graph."""
    if is_pair(vector):
        return (conjugate(vector) * x).sum(1, keepdim=True)
    return vector.mT @ x


def reflected(c: Tensor, packed: Tensor, taus: Tensor, *, backward: bool) -> Tensor:
    """c, turned by one reflection after the other; backward, it is Q @ c."""

    def step(k: Tensor, c: Tensor, x: Tensor, taus: Tensor) -> tuple[Tensor, ...]:
        rows, _ = places(x)
        vector = torch.where(rows > k, column(x, k), (rows == k).to(real_part(c).dtype))
        tau = taus.index_select(1, k.reshape(1))[:, :, None]
        tau = tau if backward else conjugate(tau)
        return (c - tau * vector * inner(vector, c),)

    count = taus.shape[-1]
    return by_columns(step, count, (c,), (packed, taus), backward=backward)[0]


def householder_product(packed: Tensor, taus: Tensor) -> Tensor:
    """The first columns of Q."""
    return first_columns(packed, taus, packed.shape[-1])


def first_columns(packed: Tensor, taus: Tensor, count: int) -> Tensor:
    x, tau = flat(packed), flat(taus.unsqueeze(-2))[:, 0]
    eye = eye_as(x, x.shape[1], count).expand(x.shape[0], -1, -1)
    made = reflected(eye, x, tau, backward=True)
    return made.reshape(*packed.shape[:-1], count)


def ormqr(
    packed: Tensor, taus: Tensor, c: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Q @ c; c @ Q where it is not left; of Q.mH where it is turned."""
    if not left:
        return adjoint_of(ormqr(packed, taus, adjoint_of(c), transpose=not transpose))
    x, tau = flat(packed), flat(taus.unsqueeze(-2))[:, 0]
    return reflected(flat(c), x, tau, backward=not transpose).reshape(c.shape)


def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """a = Q @ R; without Q where the mode is r."""
    packed, taus = geqrf(a)
    count = min(a.shape[-2:])
    kept = a.shape[-2] if mode == "complete" else count
    upper = of_parts(Tensor.triu, packed)[..., :kept, :]
    if mode == "r":
        return of_parts(lambda part: part.new_empty([0]), a), upper
    return first_columns(packed, taus, kept), upper


RULES: dict[Any, Any] = {
    aten.geqrf.default: geqrf,
    aten.linalg_householder_product.default: householder_product,
    aten.ormqr.default: ormqr,
    aten.linalg_qr.default: qr,
}
