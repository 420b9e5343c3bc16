"""Images read between their places, and in whole windows: resized, sampled, pooled."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
import torch.nn.functional as F  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.errors import Unsupported
from tests.torch.test_with_places import require_same

Dim = torch.export.Dim


def test_antialias_by_drawn_factors(tmp_path: Path) -> None:
    drawn = random.Random(7)
    torch.manual_seed(7)
    each = [
        (mode, (drawn.uniform(0.3, 0.9), drawn.choice([0.5, drawn.uniform(1.1, 2)])))
        for mode in ("bilinear", "bicubic") * 2
    ]

    def smaller(x: torch.Tensor) -> list[torch.Tensor]:
        return [
            F.interpolate(x, scale_factor=factors, mode=mode, antialias=True)
            for mode, factors in each
        ]

    require_same(smaller, [(torch.rand(2, 2, 13, 11),)], tmp_path, dynamic=False)


def test_antialias_with_corners_in_place_is_refused(tmp_path: Path) -> None:
    class Smaller(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            resize: Any = torch.ops.aten._upsample_bilinear2d_aa.default
            return resize(x, [3, 3], True)

    with pytest.raises(Unsupported, match="antialias and corners in place"):
        nanoloom.compile(Smaller().eval(), (torch.rand(1, 2, 5, 7),), cache=tmp_path)


class Sampled(torch.nn.Module):
    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> list[torch.Tensor]:
        return [
            F.grid_sample(x, grid, mode, padding, align_corners=mode == "nearest")
            for mode in ("bilinear", "nearest")
            for padding in ("zeros", "border", "reflection")
        ]


def test_volumes_are_sampled_at_open_grids(tmp_path: Path) -> None:
    torch.manual_seed(7)

    def given(depth: int, rows: int) -> tuple[torch.Tensor, ...]:
        places = torch.rand(2, 3, rows, 2, 3) * 2.6 - 1.3
        return torch.rand(2, 3, depth, 4, 5), places

    shapes, example = ({2: Dim("depth", min=2)}, {2: Dim("rows")}), given(4, 3)
    said: Any = {"dynamic_shapes": shapes, "cache": tmp_path, "threads": 1}
    program = nanoloom.compile(Sampled(), example, **said)
    for args in (example, given(7, 1)):
        for wanted, made in zip(Sampled()(*args), program(*args), strict=True):
            assert wanted.shape == made.shape
            assert torch.allclose(wanted, made, atol=2e-6)


def averaged(x: torch.Tensor) -> list[torch.Tensor]:
    return [
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=5),
        F.avg_pool2d(x[0], (2, 3), 3, 1, ceil_mode=True, divisor_override=2),
        F.avg_pool2d(x, 2, 2, divisor_override=3, count_include_pad=False),
    ]


def test_windows_that_end_outside_have_a_divisor_of_their_own(tmp_path: Path) -> None:
    """The last one is left out where it begins behind the image and its border."""
    torch.manual_seed(7)
    calls = [(torch.rand(1, 2, *sizes),) for sizes in ((9, 8), (10, 11))]
    require_same(averaged, calls, tmp_path, dynamic=False)
