"""Singular values and eigenvalues: they give the matrix again, whatever its rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.frontend.torch.exported import import_exported
from tests.torch.operator_results import by_peer

EPS = torch.finfo(torch.float32).eps


class Values(torch.nn.Module):
    def forward(self, a: torch.Tensor, symmetric: torch.Tensor) -> Any:
        return (
            *torch.linalg.svd(a, full_matrices=False),
            torch.linalg.svd(a).U, torch.linalg.svdvals(a), torch.linalg.pinv(a),
            *torch.linalg.eigh(symmetric), torch.linalg.eigvalsh(symmetric),
        )  # fmt: skip


TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)


def matrices(rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    """Of full rank; of less; of equal values; of zeros; of numbers far from 1."""
    torch.manual_seed(rows)
    a = torch.randn(5, rows, columns, dtype=dtype)
    a[1, :, 0] = a[1, :, -1]
    a[2] = torch.eye(rows, columns)
    a[3] = 0
    a[4] *= 2.0**100
    return a


def require_factors(a: Any, symmetric: Any, found: list[Any]) -> None:
    """Within 16 roundings for each row and column, of what is largest."""
    wide = torch.promote_types(a.dtype, torch.float64)
    a, symmetric, *found = [x.to(wide) for x in (a, symmetric, *found)]
    u, s, v, whole, alone, inverse, values, vectors, only = found
    bound = 16 * sum(a.shape[-2:]) * EPS
    size, wide = (x.abs().amax((1, 2), keepdim=True) for x in (a, symmetric))

    def is_near(x: Any, y: Any, of: Any = 1.0) -> bool:
        return bool(((x - y).abs() <= bound * of).all())

    assert is_near(u @ torch.diag_embed(s) @ v, a, size)
    assert is_near(s, torch.linalg.svdvals(a), size[:, 0])
    assert is_near(alone, s, size[:, 0])
    assert (s[:, :-1].real >= s[:, 1:].real).all() and (s.real >= 0).all()
    for q in (u.mH, v, whole):  # those of singular values of 0, too
        assert is_near(q @ q.mH, torch.eye(q.shape[1], dtype=q.dtype))
    assert is_near(a @ inverse @ a, a, size)
    assert is_near(vectors @ torch.diag_embed(values) @ vectors.mH, symmetric, wide)
    assert is_near(vectors.mH @ vectors, torch.eye(values.shape[1], dtype=a.dtype))
    assert is_near(values, torch.linalg.eigvalsh(symmetric), wide[:, 0])
    assert is_near(only, values, wide[:, 0])


@TYPES
@pytest.mark.parametrize("shape", [(6, 3), (4, 5), (1, 1)])
def test_factors_of_any_matrix(shape: tuple[int, int], dtype: torch.dtype) -> None:
    a = matrices(*shape, dtype)
    symmetric = matrices(shape[0], shape[0], dtype) * 2.0**-50
    symmetric = symmetric + symmetric.mH
    given = a, symmetric
    imported = import_exported(torch.export.export(Values(), given), {})
    arrays = {
        n: imported.given(n, given[int(i)]).numpy() for n, i in imported.inputs.items()
    }
    made = by_peer(imported.model, arrays)
    found = [imported.result(str(what), torch.from_numpy(made[str(what)]))
             for _, what in imported.results]  # fmt: skip
    require_factors(a, symmetric, found)


@TYPES
def test_eigenvectors_compiled(dtype: torch.dtype, tmp_path: Path) -> None:
    class Eigenvectors(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.linalg.eigh(x)

    x = matrices(5, 5, dtype)[:3]
    x = x + x.mH
    program: Any = nanoloom.compile(Eigenvectors(), (x,), cache=tmp_path, threads=1)
    values, vectors = program(x)
    again = (vectors * values[:, None]) @ vectors.mH
    assert (again - x).abs().max() <= 160 * EPS * x.abs().max()
