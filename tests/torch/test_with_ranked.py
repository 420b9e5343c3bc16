"""Medians, sorted places and distances: compiled, against torch's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch  # pyright: ignore[reportMissingImports] - an extra

from nanoloom.torch.backend import nanoloom as backend


def ranked(x: torch.Tensor, rows: torch.Tensor) -> tuple[Any, ...]:
    return (
        *x.median(1), *x.median(0, keepdim=True), x.median(),
        torch.searchsorted(rows, x), torch.searchsorted(rows[1], x, side="right"),
        torch.searchsorted(rows[0], 0.5, out_int32=True), torch.nanmean(x, 1),
    )  # fmt: skip


def test_ranks_of_drawn_numbers(tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch.manual_seed(3)
    options = {"cache": tmp_path, "threads": 1}
    fast: Any = torch.compile(ranked, backend=backend, options=options, fullgraph=True)
    rows = torch.randn(6, 7).sort(-1).values
    rows[2, 3] = rows[2, 4]
    for unknown in (False, True):
        x = torch.randperm(30).reshape(6, 5) / 10 - 1.5
        x[:, 0] = rows[:, 3]  # equal numbers: which side counts
        if unknown:
            x[1, 2] = x[4, 0] = float("nan")
        for wanted, made in zip(ranked(x, rows), fast(x, rows), strict=True):
            assert wanted.dtype == made.dtype and wanted.shape == made.shape
            assert torch.allclose(wanted, made, atol=1e-6, equal_nan=True)


def test_distances(tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch.manual_seed(3)

    def all_of(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        far = "donot_use_mm_for_euclid_dist"
        powers = (0.0, 1.0, 2.0, 3.0, float("inf"))
        return [torch.cdist(x, y, p, compute_mode=far) for p in powers]

    options = {"cache": tmp_path, "threads": 1}
    fast: Any = torch.compile(all_of, backend=backend, options=options, fullgraph=True)
    x, y = torch.randn(2, 5, 3), torch.randn(2, 7, 3)
    y[:, 0] = x[:, 0]
    for wanted, made in zip(all_of(x, y), fast(x, y), strict=True):
        assert torch.allclose(wanted, made, atol=2e-6)
