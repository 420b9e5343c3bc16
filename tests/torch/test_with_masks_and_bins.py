"""What is put where a mask is true, found, counted in bins, reduced in segments."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from tests.torch.test_with_places import require_same


class Puts(torch.nn.Module):
    def forward(
        self, x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor, some: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        a, b, c, d = (x.clone() for _ in range(4))
        a[rows] = y
        b[some] = y[0]
        b[rows, 1:3] = y[1:3]
        c[:, y[:, 0] > 0] = y[y[:, 0] > 0]
        d[some] += 1
        e = x.index_put((some,), x[some].flip(0))
        return a, b, c, d, e, e.index_put((rows,), x[rows] * 2, accumulate=True)


def test_rows_are_put_by_a_mask(tmp_path: Path) -> None:
    torch.manual_seed(4)
    y, rows = torch.randn(4, 5), {0: torch.export.Dim("rows")}
    calls = [(torch.randn(n, 4, 5), y, torch.randn(n) > 0, torch.randn(n, 4) > 0)
             for n in (4, 3, 1)]  # fmt: skip
    calls.append((calls[0][0], y, torch.zeros(4) > 0, torch.zeros(4, 4) > 0))
    said = {"dynamic_shapes": (rows, None, rows, rows), "threads": 1}
    program = nanoloom.compile(Puts(), calls[0], cache=tmp_path, **said)
    for args in calls:
        for wanted, made in zip(Puts()(*args), program(*args), strict=True):
            assert torch.equal(wanted, made)


class Chooses(torch.nn.Module):
    def forward(
        self, x: torch.Tensor, at: torch.Tensor, *some: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        a, b, c, ab, bc = some
        parts = x[:, b], x[:, :, c], x[:, bc], x[ab]
        return *parts, x[at, :, c], x[:, at, c], x[at, b, :], x[ab, at], x[a, at, 1:]


def test_masks_choose_along_any_axes_and_beside_places(tmp_path: Path) -> None:
    torch.manual_seed(4)
    rows, shape = {0: torch.export.Dim("rows")}, (4, 3, 5)
    calls = list[tuple[torch.Tensor, ...]]()
    for n in (4, 2, 1):
        x = torch.randn(n, 3, 5)
        masks = (torch.arange(m) >= m - 1 for m in (n, *shape[1:]))
        drawn = torch.randn(3, 5) > 0
        true = torch.zeros(n, 3) > 0
        true[0, n % 3] = True
        calls.append((x, torch.tensor([n // 2]), *masks, true, drawn))
    said = {"dynamic_shapes": (rows, None, (rows, None, None, rows, None))}
    program = nanoloom.compile(Chooses(), calls[0], cache=tmp_path, threads=1, **said)
    for args in calls:
        for wanted, made in zip(Chooses()(*args), program(*args), strict=True):
            assert torch.equal(wanted, made)


class Promotes(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.to(torch.promote_types(x.dtype, y.dtype)) + y[:, y[0] > 0].sum()


def test_an_element_type_that_is_asked_for_is_nothing_to_compute(
    tmp_path: Path,
) -> None:
    x, y = torch.tensor([1, 2]), torch.tensor([[0.5, -1.0]])
    program = nanoloom.compile(Promotes(), (x, y), cache=tmp_path, threads=1)
    made = program(x, y)
    assert made.dtype == torch.float32
    assert torch.equal(made, x + 0.5)


def found(x: torch.Tensor) -> list[torch.Tensor]:
    at, flat = torch.tensor([0, 2, 0]), x.reshape(-1)
    return [
        torch.nonzero_static(x > 0, size=7),
        torch.nonzero_static(x > 0, size=70, fill_value=9),
        torch.as_strided_scatter(x, x[0, :, :3], (4, 3), (5, 2), 1),
        x.index_reduce(0, at, x * 2, "mean", include_self=False),
        flat[0].index_reduce(0, at[:1], flat[1], "prod"),
        torch.cosine_similarity(flat[0], flat[1], 0),
        torch.combinations(x[0, 0], 2), torch.angle(x > 0), torch.angle(x),
    ]  # fmt: skip


def test_places_and_scalars(tmp_path: Path) -> None:
    torch.manual_seed(4)
    require_same(found, [(torch.randn(3, 4, 5),)], tmp_path, dynamic=False)


def binned(x: torch.Tensor) -> list[torch.Tensor]:
    found = [torch.histc(x, 5, -2, 2), torch.histc(x, 7), torch.histc(x * 0 + 1, 4)]
    if x.dtype == torch.float32:
        found += torch.histogram(x, 6, weight=x.abs(), density=True)
        found += torch.histogram(x, torch.tensor([-1.0, 0.0, 2.0]))
        found += torch.histogram(x[0], 2)
        for given in (x, x[:0]):  # a range of one number is half a one wider
            found += torch.histogram(given, 2, range=(1.0, 1.0))
        found += torch.histogram(x[:0], 2)  # of nothing it is from 0 to 1
        rows, edges = x.reshape(-1, 2), torch.tensor([-1.0, 0.0, 0.5])
        ends = [-1.0, 2.0, -0.5, 1.0]
        for made in (
            torch.histogramdd(rows, [3, 4]),
            torch.histogramdd(rows, [2, 3], range=ends, density=True),
            torch.histogramdd(rows, [edges, edges * 2], weight=rows[:, 0].abs()),
        ):
            found += [made.hist, *made.bin_edges]
    return found


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_bins(kind: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(4)
    require_same(binned, [(torch.randn(100).to(kind),)], tmp_path, dynamic=False)


def segments(x: torch.Tensor) -> list[torch.Tensor]:
    lengths, offsets = torch.tensor([2, 0, 4, 1]), torch.tensor([0, 2, 7, 7])
    made: list[torch.Tensor] = []
    for reduce in ("sum", "mean", "max", "prod"):
        made += [
            torch.segment_reduce(x, reduce, lengths=lengths),
            torch.segment_reduce(x, reduce, lengths=lengths, initial=2.0),
            torch.segment_reduce(x, reduce, offsets=offsets),
        ]
    wide = x.T.contiguous()
    return [
        *made,
        torch.segment_reduce(wide, "min", lengths=lengths.repeat(3, 1), axis=1),
    ]


def test_segments(tmp_path: Path) -> None:
    torch.manual_seed(4)
    require_same(segments, [(torch.randn(7, 3),)], tmp_path, dynamic=False)


class Counts(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        count = torch.bincount(x, minlength=4)
        return count, torch.bincount(x, weights=y), count.cumsum(0)[x]


def test_how_often_numbers_occur(tmp_path: Path) -> None:
    """The largest one decides how many there are."""
    some = {0: torch.export.Dim("some")}
    calls = [(torch.tensor(x), torch.rand(len(x))) for x in ([1, 2, 2, 0], [5, 9, 5])]
    said = {"dynamic_shapes": (some, some), "threads": 1}
    program = nanoloom.compile(Counts(), calls[0], cache=tmp_path, **said)
    for args in calls:
        for wanted, made in zip(Counts()(*args), program(*args), strict=True):
            assert torch.allclose(wanted, made) and wanted.dtype == made.dtype
