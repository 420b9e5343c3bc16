"""Medians, quantiles, sorted places, distances, bags: compiled, against torch's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
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


def of_columns(x: torch.Tensor) -> tuple[Any, ...]:
    q = torch.full((2,), 0.3) * torch.arange(1, 3)
    return (
        *x.cummax(0), *x.cummin(1), *x.nanmedian(1), x.nanmedian(),
        x.kthvalue(2, 1).values, x.kthvalue(5, 0, keepdim=True).values,
        x.quantile(0.7, 1), x.quantile(q, 0), x.quantile(0.3, interpolation="nearest"),
        x.nanquantile(q, 1, keepdim=True),
    )  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
def test_extremes_so_far_and_quantiles(seed: int, tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch.manual_seed(seed)
    options = {"cache": tmp_path, "threads": 1}
    fast: Any = torch.compile(
        of_columns, backend=backend, options=options, fullgraph=True
    )
    for unknown in (0, 3, 30):
        x = torch.randint(-4, 5, (6, 5)) / 2  # many are equal
        x.view(-1)[torch.randperm(30)[:unknown]] = float("nan")
        x[2, 3] = float("-inf")
        pairs = zip(of_columns(x), fast(x), strict=True)
        for number, (wanted, made) in enumerate(pairs):
            assert wanted.dtype == made.dtype and wanted.shape == made.shape
            if number == 5:  # any place of equal numbers
                wanted, made = (x.gather(1, at[:, None]) for at in (wanted, made))
            assert torch.allclose(wanted, made, atol=1e-6, equal_nan=True), number


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_rows(mode: str, tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch.manual_seed(3)
    last = mode == "mean"

    def bags(at: torch.Tensor, offsets: torch.Tensor, table: torch.Tensor) -> Any:
        factors = table[:, 0][at] if mode == "sum" else None
        return torch.nn.functional.embedding_bag(
            at, table, offsets, mode=mode, per_sample_weights=factors,
            padding_idx=-2, include_last_offset=last,
        )  # fmt: skip

    options = {"cache": tmp_path, "threads": 1}
    fast: Any = torch.compile(bags, backend=backend, options=options, fullgraph=True)
    table, offsets = torch.randn(7, 3), torch.tensor([0, 3, 3, 4, 9])
    for _ in range(3):
        at = torch.randint(0, 7, (9,))
        at[3] = 5  # the padding row alone in a bag
        wanted = bags(at, offsets, table)
        assert (wanted - fast(at, offsets, table)).abs().max() <= 1e-6


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


def test_repeated_rows(tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch.manual_seed(3)

    def repeated(x: torch.Tensor, counts: torch.Tensor) -> tuple[torch.Tensor, ...]:
        again = torch.repeat_interleave
        return (
            again(x, counts, dim=0, output_size=6),
            again(x, counts.to(torch.int32), dim=1, output_size=6),
            again(counts, output_size=6),
        )

    options = {"cache": tmp_path, "threads": 1}
    fast: Any = torch.compile(
        repeated, backend=backend, options=options, fullgraph=True
    )
    for counts in ([1, 2, 3], [0, 6, 0], [3, 0, 3]):
        given = torch.randn(3, 3), torch.tensor(counts)
        for wanted, made in zip(repeated(*given), fast(*given), strict=True):
            assert torch.equal(wanted, made)
