"""Singular values and eigenvalues by Jacobi's rotations, in torch's simpler operators.

Columns are turned in pairs until all are orthogonal: A @ V = U @ S, of one V of
rotations.  A step turns half as many pairs as there are columns, all at once, and
moves the columns so that each meets each other once in a round.  It ends after a round
in which nothing is turned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._guards import TracingContext
from torch.fx.experimental.symbolic_shapes import statically_known_true

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.matrix_factors import Tensor, flat, own_memory
from nanoloom.frontend.torch.reflections import qr

aten: Any = torch.ops.aten
ROUNDS = 60  # where it does not end by itself: ten are usual


def require_real(a: Tensor) -> None:
    if a.is_complex():
        raise Unsupported("is of a complex matrix")


def require_known_shape(a: Tensor) -> None:
    """Dynamo compiles again where a wide matrix becomes a tall one; a program is of
    all sizes."""
    wide = a.shape[-2] < a.shape[-1]
    known = statically_known_true(wide) or statically_known_true(torch.sym_not(wide))
    if not known and TracingContext.try_get() is None:
        raise Unsupported("is of matrices of an open size", hint="give it a fixed size")


def orthogonal(x: Tensor, *more: Tensor) -> tuple[Tensor, ...]:
    """x with its columns turned until all products of two are 0, and more with x.

    Each is [batch, rows, columns].
    """
    rows, columns = x.shape[1:]
    given = [torch.cat([y, y.new_zeros([*y.shape[:2], columns % 2])], 2)
             for y in (x, *more)]  # fmt: skip
    steps = torch.full((), columns + columns % 2 - 1, dtype=torch.int64)
    near = torch.full((), rows, dtype=x.dtype).sqrt() * torch.finfo(x.dtype).eps
    order = next_pairs(given[0].shape[2])

    def goes_on(number: Tensor, quiet: Tensor, *given: Tensor) -> Tensor:
        steps = given[-3]
        is_whole = number % steps == 0  # all columns are where they began
        return ~is_whole | ((quiet < steps) & (number < ROUNDS * steps))

    def step(number: Tensor, quiet: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        *state, _, near, order = given
        moved, made = rotated(state, near)
        quiet = torch.where(moved, 0, quiet + 1)
        made = [y.index_select(2, order) for y in made]
        return tuple(own_memory((number + 1, quiet, *made)))

    zero = torch.zeros((), dtype=torch.int64)
    loop: Any = torch.ops.higher_order.while_loop
    begin = tuple(own_memory((zero, zero, *given)))
    made = loop(goes_on, step, begin, (steps, near, order))[2:]
    return tuple([y[:, :, :columns] for y in made])


def rotated(state: Sequence[Tensor], near: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Each column of the first half turned with that of the other; whether any was."""
    half = state[0].shape[2] // 2
    pairs = [(x[:, :, :half], x[:, :, half:]) for x in state]
    c, d = pairs[0]
    first, second, both = ((y * z).sum(1, keepdim=True)
                           for y, z in ((c, c), (d, d), (c, d)))  # fmt: skip
    turns = both.abs() > near * (first.sqrt() * second.sqrt())
    ratio = (second - first) / (2 * torch.where(turns, both, 1))
    one = torch.where(ratio < 0, -1, 1).to(c.dtype)
    tangent = one / (ratio.abs() + (1 + ratio * ratio).sqrt())
    tangent = torch.where(turns, tangent, 0)
    cosine = 1 / (1 + tangent * tangent).sqrt()
    sine = cosine * tangent
    share = sine / (1 + cosine)  # small turns have small errors
    made = [
        torch.cat([a - sine * (b + share * a), b + sine * (a - share * b)], 2)
        for a, b in pairs
    ]
    return turns.any(), made


def next_pairs(count: int) -> Tensor:
    """Where each column comes from: all but the first move around, by one place."""
    half, at = count // 2, torch.arange(count)
    found = torch.where(at < half, at - 1, at + 1)
    found = torch.where(at == count - 1, half - 1, found)
    return torch.where(at == 1, half, torch.where(at == 0, 0, found))


def in_range(a: Tensor) -> tuple[Tensor, Tensor]:
    """Matrices whose squares are numbers, and what each has to be multiplied by."""
    size = a.abs().amax((1, 2), keepdim=True)
    size = torch.where(size > 0, size, 1)
    return a / size, size


def svd(
    a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *,
    driver: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    require_real(a)
    require_known_shape(a)
    if a.shape[-2] < a.shape[-1]:
        u, s, v = svd(a.mT, full_matrices, compute_uv)
        return (v.mT, s, u.mT) if compute_uv else (u, s, v)
    *batch, rows, columns = a.shape
    if 0 in a.shape:
        return svd_of_none(a, full_matrices, compute_uv)
    x, size = in_range(flat(a))
    eye = torch.eye(columns, dtype=x.dtype).expand(x.shape[0], -1, -1)
    x, *more = orthogonal(x, *([eye] if compute_uv else []))
    values = (x * x).sum(1).sqrt()
    values, order = values.sort(1, descending=True)
    s = (values * size[:, 0]).reshape(*batch, columns)
    if not compute_uv:
        return a.new_empty([0]), s, a.new_empty([0])
    x, v = (y.gather(2, order[:, None].expand(y.shape)) for y in (x, more[0]))
    # Of columns in right angles R is a diagonal; Q has columns for those of 0, too.
    q, r = qr(x, "complete" if full_matrices else "reduced")
    signs = torch.where(r.diagonal(dim1=1, dim2=2) < 0, -1, 1).to(q.dtype)
    own = q[:, :, :columns] * signs[:, None]
    u = torch.cat([own, q[:, :, columns:]], 2) if full_matrices else own
    v = v.mT.reshape(*batch, columns, columns)
    return u.reshape(*batch, rows, u.shape[2]), s, v


def svd_of_none(
    a: Tensor, full_matrices: bool, compute_uv: bool
) -> tuple[Tensor, Tensor, Tensor]:
    *batch, rows, columns = a.shape
    s = a.new_zeros([*batch, columns])
    if not compute_uv:
        return a.new_empty([0]), s, a.new_empty([0])
    count = rows if full_matrices else columns
    u, v = (torch.eye(n, m, dtype=a.dtype).expand(*batch, n, m).clone()
            for n, m in ((rows, count), (columns, columns)))  # fmt: skip
    return u, s, v


def eigh(a: Tensor, uplo: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    """Of a matrix and as much on its diagonal that no eigenvalue is below 0: those are
    singular values, whose V has the eigenvectors."""
    require_real(a)
    if 0 in a.shape:
        return a.new_zeros(a.shape[:-1]), a.new_zeros(a.shape if compute_v else [0])
    lower = (a if uplo.upper() == "L" else a.mT).tril()
    x, size = in_range(flat(lower + lower.tril(-1).mT))
    count = x.shape[1]
    eye = torch.eye(count, dtype=x.dtype).expand(x.shape)
    most = x.abs().sum(2).amax(1)[:, None, None]
    _, vectors = orthogonal(x + most * eye, eye)
    values, order = (vectors * (x @ vectors)).sum(1).sort(1)
    values = (values * size[:, 0]).reshape(a.shape[:-1])
    if not compute_v:
        return values, a.new_empty([0])
    vectors = vectors.gather(2, order[:, None].expand(vectors.shape))
    return values, vectors.reshape(a.shape)


def pinv(
    a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:  # fmt: skip
    """Of the singular values above both tolerances, or eigenvalues of such a size."""
    if 0 in a.shape:
        return a.mT.clone()
    if hermitian:
        values, right = eigh(a)
        left, s = right, values.abs()
    else:
        left, values, v = svd(a)
        right, s = v.mT, values
    most, bound = s.amax(-1, keepdim=True), torch.zeros_like(s)
    if atol is not None:
        bound = torch.maximum(bound, atol.unsqueeze(-1))
    if rtol is not None:
        bound = torch.maximum(bound, rtol.unsqueeze(-1) * most)
    elif atol is None:
        bound = max(a.shape[-2:]) * torch.finfo(a.dtype).eps * most
    counts = s > bound
    inverse = torch.where(counts, 1 / values, 0)
    return right @ (inverse.unsqueeze(-1) * left.mT)


RULES: dict[Any, Any] = {
    aten.linalg_pinv.atol_rtol_tensor: pinv,
    aten._linalg_svd.default: svd,
    aten._linalg_eigh.default: eigh,
}
