"""Pools to a number of elements along axes of open sizes, and rules for some sizes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
import torch.nn.functional as F  # pyright: ignore[reportMissingImports]

import nanoloom
from nanoloom.errors import Unsupported


class Does(torch.nn.Module):
    def __init__(self, what: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.what = what

    def forward(self, x: torch.Tensor) -> Any:
        return self.what(x)


def to_counts(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        F.adaptive_avg_pool2d(x, (3, 5)), F.adaptive_max_pool2d(x, (3, 5)),
        F.adaptive_avg_pool2d(x, (None, 2)), F.adaptive_avg_pool1d(x[0], 4),
    )  # fmt: skip


def by_parts(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    half, third = x.shape[2] // 2, 1 + x.shape[3] // 3
    return (
        F.interpolate(x, scale_factor=0.5, mode="area"),
        F.adaptive_avg_pool2d(x, (third, half)),
    )


@pytest.mark.parametrize("what", [to_counts, by_parts])
def test_windows_of_open_sizes(what: Callable[..., Any], tmp_path: Path) -> None:
    """Also of sizes that the numbers of elements divide; to counts, in one program."""
    torch.manual_seed(1)
    shapes = ({2: torch.export.Dim("h", min=4), 3: torch.export.Dim("w", min=4)},)
    said = {"dynamic_shapes": shapes, "cache": tmp_path, "threads": 1}
    module, example = Does(what), torch.randn(1, 2, 6, 10)
    program = nanoloom.compile(module, (example,), **said)
    for height, width in ((9, 14), (6, 10), (4, 5), (31, 20)):
        x = torch.randn(1, 2, height, width)
        x[0, 0, 2, 3], x[0, 1, 0, 0] = torch.nan, torch.inf
        for wanted, made in zip(what(x), program(x), strict=True):
            assert wanted.shape == made.shape
            assert torch.allclose(wanted, made, atol=1e-6, equal_nan=True)
    assert what is by_parts or not program.program.open.reason


def test_places_of_the_largest_numbers_of_drawn_windows(tmp_path: Path) -> None:
    """Of windows of one size and of two, some with a largest number twice."""
    drawn, each = random.Random(4), list[tuple[Any, torch.Tensor, list[int]]]()
    torch.manual_seed(4)
    for rank in (1, 1, 2, 2, 3):
        sizes = [drawn.randint(2, 7) for _ in range(rank)]
        x = torch.randint(0, 9, (3, 2, *sizes)).float()
        wanted = [drawn.randint(1, size) for size in sizes]
        each.append((getattr(F, f"adaptive_max_pool{rank}d"), x, wanted))

    def what(*given: torch.Tensor) -> list[torch.Tensor]:
        calls = zip(given, each, strict=True)
        return [y for x, (op, _, n) in calls for y in op(x, n, return_indices=True)]

    class Every(torch.nn.Module):
        def forward(self, given: list[torch.Tensor]) -> list[torch.Tensor]:
            return what(*given)

    given = [x for _, x, _ in each]
    shapes = ([{0: torch.export.Dim.DYNAMIC}, {}, {}, {}, {}],)
    said = {"dynamic_shapes": shapes, "cache": tmp_path, "threads": 1}
    program = nanoloom.compile(Every(), (given,), **said)
    for batch in (3, 2):
        given[0] = given[0][:batch]
        for ours, theirs in zip(program(given), what(*given), strict=True):
            assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)


def test_places_along_open_sizes_are_refused(tmp_path: Path) -> None:
    def what(x: torch.Tensor) -> Any:
        return F.adaptive_max_pool1d(x, 3, return_indices=True)

    shapes, x = ({2: torch.export.Dim("n", min=4)},), torch.randn(1, 2, 7)
    with pytest.raises(Unsupported, match="places of the largest numbers, along open"):
        nanoloom.compile(Does(what), (x,), dynamic_shapes=shapes, cache=tmp_path)


def test_a_rule_for_some_sizes_is_refused(tmp_path: Path) -> None:
    """torch decides by the sizes at hand how it transforms rows that overlap."""

    def spectrum(x: torch.Tensor) -> torch.Tensor:
        return torch.fft.ihfft(x[0, 0].flatten().unfold(0, 8, 4)).abs()

    auto = torch.export.Dim.AUTO
    said: Any = {"dynamic_shapes": ({2: auto, 3: auto},), "cache": tmp_path}
    with pytest.raises(Unsupported, match=r"aten.fft_ihfft.default only where Eq\("):
        nanoloom.compile(Does(spectrum), (torch.randn(1, 3, 8, 12),), **said)


def test_bounds_that_torch_does_not_take_are_told() -> None:
    shapes = ({2: torch.export.Dim("h", min=2)},)
    with pytest.raises(Unsupported) as refusal:
        nanoloom.compile(
            Does(lambda x: F.interpolate(x, scale_factor=0.5)),
            (torch.randn(1, 2, 7, 8),),
            dynamic_shapes=shapes,
        )
    said = str(refusal.value)
    assert "Constraints violated (h): Not all values of h" in said
    assert said.endswith("give its Dim other bounds, as min=4, or take Dim.AUTO")


def test_whether_all_or_any_are_true(tmp_path: Path) -> None:
    """Also in what a module asserts, which an export turns into a number."""

    def truths(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        torch._check((x > -9).all().item())
        is_all, is_any = torch.ops.aten._is_all_true, torch.ops.aten._is_any_true
        return is_all(x > 0), is_any(x > 0), is_all(x > -2), is_any(x > 2)

    x = torch.tensor([-1.0, 1.0])
    program = nanoloom.compile(Does(truths), (x,), cache=tmp_path, threads=1)
    assert [bool(y) for y in program(x)] == [False, True, True, False]
