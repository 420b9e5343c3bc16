"""Singular values and eigenvalues by Jacobi's rotations, in torch's simpler operators.

Columns are turned in pairs until all are orthogonal: A @ V = U @ S, of one V of
rotations.  A step turns half as many pairs as there are columns, all at once, and
moves the columns so that each meets each other once in a round.  It ends after a round
in which nothing is turned.  Of complex matrices the second column of a pair is first
turned in its phase, so that the product of both is a real number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._guards import TracingContext
from torch.fx.experimental.symbolic_shapes import statically_known_true

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.matrix_factors import (
    Tensor,
    adjoint_of,
    as_before,
    conjugate,
    eye_as,
    flat,
    is_pair,
    of_parts,
    own_memory,
    parts_of,
    real_part,
    squares,
)
from nanoloom.frontend.torch.reflections import qr

aten: Any = torch.ops.aten
ROUNDS = 60  # where it does not end by itself: ten are usual


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
    parts = parts_of((x, *more))
    given = [torch.cat([y, y.new_zeros([*y.shape[:2], columns % 2])], 2)
             for y in parts]  # fmt: skip
    steps = torch.full((), columns + columns % 2 - 1, dtype=torch.int64)
    dtype = parts[0].dtype
    near = torch.full((), rows, dtype=dtype).sqrt() * torch.finfo(dtype).eps
    order = next_pairs(given[0].shape[2])

    def goes_on(number: Tensor, quiet: Tensor, *given: Tensor) -> Tensor:
        steps = given[-3]
        is_whole = number % steps == 0  # all columns are where they began
        return ~is_whole | ((quiet < steps) & (number < ROUNDS * steps))

    def step(number: Tensor, quiet: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        *state, _, near, order = given
        moved, made = rotated(as_before(state, (x, *more)), near)
        quiet = torch.where(moved, 0, quiet + 1)
        made = [y.index_select(2, order) for y in parts_of(tuple(made))]
        return tuple(own_memory((number + 1, quiet, *made)))

    zero = torch.zeros((), dtype=torch.int64)
    loop: Any = torch.ops.higher_order.while_loop
    begin = tuple(own_memory((zero, zero, *given)))
    made = loop(goes_on, step, begin, (steps, near, order))[2:]
    return as_before([y[:, :, :columns] for y in made], (x, *more))


def rotated(state: Sequence[Tensor], near: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Each column of the first half turned with that of the other; whether any was."""
    half = real_part(state[0]).shape[2] // 2
    pairs = [
        tuple(of_parts(lambda y, k=k: y.narrow(2, k, half), x) for k in (0, half))
        for x in state
    ]
    c, d = pairs[0]
    first, second = (squares(y).sum(1, keepdim=True) for y in (c, d))
    both, pairs = in_phase(pairs, (conjugate(c) * d).sum(1, keepdim=True))
    turns = both.abs() > near * (first.sqrt() * second.sqrt())
    ratio = (second - first) / (2 * torch.where(turns, both, 1))
    one = torch.where(ratio < 0, -1, 1).to(ratio.dtype)
    tangent = one / (ratio.abs() + (1 + ratio * ratio).sqrt())
    tangent = torch.where(turns, tangent, 0)
    cosine = 1 / (1 + tangent * tangent).sqrt()
    sine = cosine * tangent
    share = sine / (1 + cosine)  # small turns have small errors
    made = [beside(a - sine * (b + share * a), b + sine * (a - share * b))
            for a, b in pairs]  # fmt: skip
    return turns.any(), made


def in_phase(pairs: list[Any], both: Any) -> tuple[Tensor, list[Any]]:
    """The second columns times a number of size 1, so that a product is real."""
    if not is_pair(both):
        return both, pairs
    size = squares(both).sqrt()
    unit = torch.where(size > 0, size, 1)
    unit_phase = type(both)(torch.where(size > 0, both.re / unit, 1), -both.im / unit)
    return size, [(a, b * unit_phase) for a, b in pairs]


def beside(a: Any, b: Any) -> Any:
    """The columns of a, then those of b."""
    if not is_pair(a):
        return torch.cat([a, b], 2)
    return type(a)(torch.cat([a.re, b.re], 2), torch.cat([a.im, b.im], 2))


def product(a: Any, b: Any) -> Any:
    """a @ b, also of pairs."""
    if not is_pair(a):
        return a @ b
    re, im = a.re @ b.re - a.im @ b.im, a.re @ b.im + a.im @ b.re
    return type(a)(re, im)


def next_pairs(count: int) -> Tensor:
    """Where each column comes from: all but the first move around, by one place."""
    half, at = count // 2, torch.arange(count)
    found = torch.where(at < half, at - 1, at + 1)
    found = torch.where(at == count - 1, half - 1, found)
    return torch.where(at == 1, half, torch.where(at == 0, 0, found))


def in_range(a: Tensor) -> tuple[Tensor, Tensor]:
    """Matrices whose squares are numbers, and what each has to be multiplied by."""
    largest = [x.abs().amax((1, 2), keepdim=True) for x in parts_of((a,))]
    size = torch.maximum(largest[0], largest[-1])
    size = torch.where(size > 0, size, 1)
    return of_parts(lambda x: x / size, a), size


def svd(
    a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *,
    driver: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    require_known_shape(a)
    if a.shape[-2] < a.shape[-1]:
        u, s, v = svd(transposed(a), full_matrices, compute_uv)
        return (transposed(v), s, transposed(u)) if compute_uv else (u, s, v)
    *batch, rows, columns = a.shape
    if 0 in a.shape:
        return svd_of_none(a, full_matrices, compute_uv)
    x, size = in_range(flat(a))
    eye = eye_as(x, columns, columns).expand(x.shape[0], -1, -1)
    x, *more = orthogonal(x, *([eye] if compute_uv else []))
    values = squares(x).sum(1).sqrt()
    values, order = values.sort(1, descending=True)
    s = (values * size[:, 0]).reshape(*batch, columns)
    if not compute_uv:
        return empty_as(a), s, empty_as(a)
    x, v = (in_order(y, order) for y in (x, more[0]))
    # Of columns in right angles R is a real diagonal; Q has those of 0, too.
    q, r = qr(x, "complete" if full_matrices else "reduced")
    diagonal = real_part(r).diagonal(dim1=1, dim2=2)
    signs = torch.where(diagonal < 0, -1, 1).to(s.dtype)[:, None]
    own = of_parts(lambda y: y[:, :, :columns] * signs, q)
    rest = of_parts(lambda y: y[:, :, columns:], q)
    u = beside(own, rest) if full_matrices else own
    v = adjoint_of(v).reshape(*batch, columns, columns)
    return u.reshape(*batch, rows, u.shape[2]), s, v


def transposed(x: Any) -> Any:
    """The transposed matrix, with no number changed."""
    return of_parts(lambda part: part.mT, x)


def empty_as(a: Any) -> Any:
    return of_parts(lambda part: part.new_empty([0]), a)


def in_order(x: Any, order: Tensor) -> Any:
    """The columns [batch, columns] that order says."""
    return of_parts(lambda y: y.gather(2, order[:, None].expand(y.shape)), x)


def svd_of_none(
    a: Tensor, full_matrices: bool, compute_uv: bool
) -> tuple[Tensor, Tensor, Tensor]:
    *batch, rows, columns = a.shape
    s = real_part(a).new_zeros([*batch, columns])
    if not compute_uv:
        return empty_as(a), s, empty_as(a)
    count = rows if full_matrices else columns
    u, v = (eye_as(a, n, m).expand(*batch, n, m).clone()
            for n, m in ((rows, count), (columns, columns)))  # fmt: skip
    return u, s, v


def eigh(a: Tensor, uplo: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    """Of a matrix and as much on its diagonal that no eigenvalue is below 0: those are
    singular values, whose V has the eigenvectors."""
    if 0 in a.shape:
        none = of_parts(lambda x: x.new_zeros(x.shape if compute_v else [0]), a)
        return real_part(a).new_zeros(a.shape[:-1]), none
    x, size = in_range(flat(symmetric(a if uplo.upper() == "L" else adjoint_of(a))))
    count = x.shape[1]
    eye = eye_as(x, count, count).expand(x.shape)
    most = squares(x).sqrt().sum(2).amax(1)[:, None, None]
    _, vectors = orthogonal(x + most * eye, eye)
    squared = conjugate(vectors) * product(x, vectors)
    values, order = real_part(squared).sum(1).sort(1)
    values = (values * size[:, 0]).reshape(a.shape[:-1])
    if not compute_v:
        return values, empty_as(a)
    return values, in_order(vectors, order).reshape(a.shape)


def symmetric(a: Any) -> Any:
    """Of the lower triangle; of the diagonal's numbers the real part."""
    below = of_parts(lambda part: part.tril(-1), a)
    diagonal = torch.diag_embed(real_part(a).diagonal(dim1=-2, dim2=-1))
    return below + adjoint_of(below) + diagonal


def pinv(
    a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:  # fmt: skip
    """Of the singular values above both tolerances, or eigenvalues of such a size."""
    if 0 in a.shape:
        return adjoint_of(a).clone()
    if hermitian:
        values, right = eigh(a)
        left, s = right, values.abs()
    else:
        left, values, v = svd(a)
        right, s = adjoint_of(v), values
    most, bound = s.amax(-1, keepdim=True), torch.zeros_like(s)
    if atol is not None:
        bound = torch.maximum(bound, atol.unsqueeze(-1))
    if rtol is not None:
        bound = torch.maximum(bound, rtol.unsqueeze(-1) * most)
    elif atol is None:
        bound = max(a.shape[-2:]) * torch.finfo(s.dtype).eps * most
    counts = s > bound
    inverse = torch.where(counts, 1 / values, 0)
    return product(right, inverse.unsqueeze(-1) * adjoint_of(left))


RULES: dict[Any, Any] = {
    aten.linalg_pinv.atol_rtol_tensor: pinv,
    aten._linalg_svd.default: svd,
    aten._linalg_eigh.default: eigh,
}
