"""What is solved by the factors of a matrix, and what else they tell of it."""

from __future__ import annotations

from typing import Any

import torch

from nanoloom.frontend.torch.matrix_factors import (
    Tensor,
    adjoint_of,
    by_columns,
    column,
    eye_as,
    flat,
    lu_factor,
    order_of,
    places,
    real_part,
    row,
)

aten: Any = torch.ops.aten


def triangular(a: Tensor, b: Tensor, *, upper: bool, unit: bool = False) -> Tensor:
    """x of a @ x = b, [batch, n, n] and [batch, n, columns]."""

    def step(k: Tensor, x: Tensor, a: Tensor) -> tuple[Tensor, ...]:
        rows, _ = places(x)
        here, own = column(a, k), row(x, k)
        own = own if unit else own / row(here, k)
        behind = rows < k if upper else rows > k
        left = torch.where(behind, x - here * own, x)
        return (torch.where(rows == k, own, left),)

    return by_columns(step, a.shape[1], (b,), (a,), backward=upper)[0]


def together(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, list[int]]:
    """Both as [batch, rows, columns], and the shape that the batch has."""
    batch = list(torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    wide = [flat(x.expand(*batch, *x.shape[-2:])) for x in (a, b)]
    return wide[0], wide[1], batch


def solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True,
    unitriangular: bool = False,
) -> Tensor:  # fmt: skip
    if not left:  # x @ a = b
        made = solve_triangular(
            a.mT, b.mT, upper=not upper, unitriangular=unitriangular
        )
        return made.mT
    wide, sides, batch = together(a, b)
    made = triangular(wide, sides, upper=upper, unit=unitriangular)
    return made.reshape(*batch, *b.shape[-2:])


def triangular_solve(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    made = solve_triangular(
        a.mT if transpose else a,
        b,
        upper=upper != transpose,
        unitriangular=unitriangular,
    )
    return made, a.clone()


def lu_solve(
    data: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """x of a @ x = b, of a's factors; of a.mH @ x = b, or of x @ a = b."""
    if not left:
        return adjoint_of(lu_solve(data, pivots, adjoint_of(b), adjoint=not adjoint))
    wide, sides, batch = together(data, b)
    exchanged = flat(pivots.unsqueeze(-2).expand(*batch, 1, pivots.shape[-1]))[:, 0]
    order = order_of(exchanged, data.shape[-2])
    if adjoint:
        made = triangular(adjoint_of(wide), sides, upper=False)
        made = triangular(adjoint_of(wide), made, upper=True, unit=True)
        order = order.argsort(1)
    else:
        sides = sides.gather(1, order[:, :, None].expand(sides.shape))
        made = triangular(wide, sides, upper=False, unit=True)
        made = triangular(wide, made, upper=True)
    if adjoint:
        made = made.gather(1, order[:, :, None].expand(made.shape))
    return made.reshape(*batch, *b.shape[-2:])


def solve_ex(
    a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    data, pivots, info = lu_factor(a)
    made = lu_solve(data, pivots, b.unsqueeze(-1) if vector else b, left=left)
    return made.squeeze(-1) if vector else made, data, pivots, info


def inverse(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    eye = eye_as(a, a.shape[-1], a.shape[-1])
    made, _, _, info = solve_ex(a, eye.expand(a.shape))
    return made, info


def sign_of(pivots: Tensor, dtype: torch.dtype) -> Tensor:
    """-1 for an odd number of exchanged rows."""
    moved = pivots != torch.arange(1, pivots.shape[-1] + 1)
    return 1 - 2 * (moved.to(torch.int64).sum(-1) % 2).to(dtype)


def determinant(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    data, pivots, _ = lu_factor(a)
    product = data.diagonal(dim1=-2, dim2=-1).prod(-1)
    return product * sign_of(pivots, real_part(a).dtype), data, pivots


def log_determinant(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    data, pivots, _ = lu_factor(a)
    diagonal = data.diagonal(dim1=-2, dim2=-1)
    sign = diagonal.sgn().prod(-1) * sign_of(pivots, real_part(a).dtype)
    return sign, diagonal.abs().log().sum(-1), data, pivots


def cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    lower = adjoint_of(factor) if upper else factor
    made = solve_triangular(lower, b, upper=False)
    return solve_triangular(adjoint_of(lower), made, upper=True)


def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    eye = eye_as(factor, factor.shape[-1], factor.shape[-1])
    return cholesky_solve(eye.expand(factor.shape), factor, upper)


RULES: dict[Any, Any] = {
    aten.cholesky_solve.default: cholesky_solve,
    aten.cholesky_inverse.default: cholesky_inverse,
    aten.linalg_lu_solve.default: lu_solve,
    aten.linalg_solve_triangular.default: solve_triangular,
    aten.triangular_solve.default: triangular_solve,
    aten._linalg_solve_ex.default: solve_ex,
    aten.linalg_inv_ex.default: inverse,
    aten._linalg_det.default: determinant,
    aten._linalg_slogdet.default: log_determinant,
}
