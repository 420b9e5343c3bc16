"""Matrices in factors and linear systems: compiled, against float64 within bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.torch.backend import nanoloom as backend


def eps(n: int) -> float:
    """Of n rounded steps; a factor of growth that elimination with pivots stays in."""
    return 8 * n * n * torch.finfo(torch.float32).eps


def test_factors_give_the_matrix_again(tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch.manual_seed(5)

    def factors(a: torch.Tensor, wide: torch.Tensor) -> tuple[Any, ...]:
        square = a @ a.mT + torch.eye(a.shape[-1])
        return (
            square, torch.linalg.cholesky(square),
            torch.linalg.cholesky(square, upper=True).mT,
            *torch.linalg.lu(wide), *torch.linalg.qr(wide),
        )  # fmt: skip

    options = {"cache": tmp_path, "threads": 1}
    fast: Any = torch.compile(factors, backend=backend, options=options, fullgraph=True)
    a, wide = torch.randn(2, 3, 6, 6), torch.randn(4, 7, 5)
    wide[1, :, 0] = 0  # a column of zeros: nothing is eliminated there
    made = [x.double() for x in fast(a, wide)]
    square, lower, upper, p, left, right, q, r = made
    for root in (lower, upper):
        assert not root.triu(1).any()
        assert (root @ root.mT - square).abs().max() <= eps(6) * square.abs().max()
    size = wide.double().abs().max()
    assert (p @ left @ right - wide).abs().max() <= eps(7) * size
    assert left.abs().max() <= 1 and not right.tril(-1).any()
    assert (q @ r - wide).abs().max() <= eps(7) * size
    assert (q.mT @ q - torch.eye(5)).abs().max() <= eps(7)
    wanted = torch.linalg.lu(wide)
    assert torch.equal(p.float(), wanted[0])  # the same rows are exchanged


def systems(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    lower, solve = a.tril(), torch.linalg.solve_triangular
    return (
        torch.linalg.solve(a.mT, b.mT, left=False) @ a.mT - b.mT,
        a @ torch.linalg.solve(a, b) - b,
        lower.mT @ solve(lower.mT, b, upper=True) - b,
        torch.linalg.slogdet(a).logabsdet.exp() - torch.linalg.det(a).abs(),
    )


def test_solutions(tmp_path: Path) -> None:
    """What is left of each equation, with any number of systems in one program."""
    torch._dynamo.reset()
    torch.manual_seed(5)
    options, size = {"cache": tmp_path, "threads": 1}, 5
    fast: Any = torch.compile(systems, backend=backend, options=options, dynamic=True)
    for batch in (2, 4):
        a = torch.randn(batch, size, size) + 3 * torch.eye(size)
        b = torch.randn(batch, size, 2)
        condition = float(torch.linalg.cond(a).max())
        for number, left in enumerate(fast(a, b)):
            assert left.abs().max() <= eps(size) * condition * 9, number


def of_complex(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Each is near 0, but for the last two, which torch has as well."""
    square = a @ a.mH + torch.eye(a.shape[-1])
    lower, upper = torch.linalg.cholesky(square), torch.linalg.cholesky(a @ a.mH).mH
    p, left, right = torch.linalg.lu(a)
    q, r = torch.linalg.qr(b)
    solve, eye = torch.linalg.solve_triangular, torch.eye(a.shape[-1])
    sign, size = torch.linalg.slogdet(a)
    return (
        lower @ lower.mH - square, upper.mH @ upper - a @ a.mH, lower.triu(1),
        p @ left @ right - a, q @ r - b, q.mH @ q - torch.eye(b.shape[-1]), r.tril(-1),
        a @ torch.linalg.solve(a, b) - b, a @ torch.linalg.inv(a) - eye,
        torch.linalg.solve(a, b.mT, left=False) @ a - b.mT,
        a.triu() @ solve(a.triu(), b, upper=True) - b,
        square @ torch.cholesky_solve(b, lower) - b,
        torch.linalg.det(a) - sign * size.exp(), p, torch.linalg.det(a),
    )  # fmt: skip


def test_complex_matrices(tmp_path: Path) -> None:
    torch.manual_seed(5)

    class All(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> Any:
            return of_complex(a, b)

    a, b = (torch.randn(2, 5, n, dtype=torch.complex64) for n in (5, 3))
    program: Any = nanoloom.compile(All(), (a, b), cache=tmp_path, threads=1)
    *made, p, det = program(a, b)
    condition = float(torch.linalg.cond(a).max())
    bound = eps(5) * condition * float(a.abs().max()) ** 2 * 9
    for number, left in enumerate(made):
        assert left.abs().max() <= bound, number
    wanted = of_complex(a.to(torch.complex128), b.to(torch.complex128))
    assert torch.equal(p, wanted[-2].to(p.dtype))  # the same rows are exchanged
    assert (det - wanted[-1]).abs().max() <= bound < wanted[-1].abs().min()


def test_a_matrix_without_factors_gives_no_numbers(tmp_path: Path) -> None:
    class Both(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            lower, info = torch.linalg.cholesky_ex(x)
            return lower, info, torch.linalg.inv(x)

    x = torch.tensor([[[2.0, 0.0], [0.0, 0.0]], [[2.0, 1.0], [1.0, 2.0]]])
    program: Any = nanoloom.compile(Both(), (x,), cache=tmp_path, threads=1)
    lower, info, inverse = program(x)
    assert info.tolist() == [2, 0] and torch.isnan(lower[0, 1, 1])
    assert not torch.isfinite(inverse[0]).all()
    assert torch.isfinite(lower[1]).all() and torch.isfinite(inverse[1]).all()


def test_what_is_refused_says_who_does_it(tmp_path: Path) -> None:
    class Only(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.linalg.eigvals(x)

    told = r"linalg_eigvals.* is not known; torch\.compile.* leaves it to torch"
    with pytest.raises(nanoloom.Error, match=told):
        nanoloom.compile(Only(), (torch.eye(3),), cache=tmp_path, threads=1)
