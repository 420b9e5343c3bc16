"""Convolutions and averages of integers: exact, as PyTorch has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.torch.backend import nanoloom as backend

F = nn.functional


def drawn(*shape: int, dtype: Any, low: int = -90) -> Any:
    random = torch.Generator().manual_seed(shape[-1])
    return torch.randint(low, 90, shape, generator=random).to(dtype)


class Convolved(nn.Module):
    def forward(self, x: Any, w: Any, b: Any) -> Any:
        made = [
            F.conv2d(x, w, b, padding=(1, 2), stride=(2, 1)),
            F.conv2d(x, w[:, :2], groups=2, padding="same"),
            F.conv2d(x[0], w), F.conv1d(x[:, :, 0], w[:, :, 0], b),
            F.conv3d(x[:, :, None], w[:, :, None]),
        ]  # fmt: skip
        if x.dtype == torch.int64:
            turned = F.conv_transpose2d(x, w.transpose(0, 1), stride=2, padding=1)
            made += [turned, F.conv2d(x, w, dilation=2)]
        return made


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "int64"])
def test_convolutions_wrap_around(kind: str, tmp_path: Path) -> None:
    dtype = getattr(torch, kind)
    given = (
        drawn(2, 4, 7, 9, dtype=dtype), drawn(6, 4, 3, 3, dtype=dtype),
        drawn(6, dtype=dtype),
    )  # fmt: skip
    program: Any = nanoloom.compile(Convolved(), given, cache=tmp_path, threads=1)
    for number, pair in enumerate(
        zip(program(*given), Convolved()(*given), strict=True)
    ):
        assert torch.equal(*pair), number


def averaged(x: Any) -> Any:
    return (
        F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        F.avg_pool2d(x, (3, 2), 2, divisor_override=-5),
        F.avg_pool1d(x[:, :, 0], 3, padding=1), F.avg_pool3d(x, 2, ceil_mode=True),
    )  # fmt: skip


@pytest.mark.parametrize("dynamic", [False, True])
def test_averages_leave_out_what_is_behind_the_point(
    dynamic: bool, tmp_path: Path
) -> None:
    torch._dynamo.reset()
    options = {"cache": tmp_path, "threads": 1}
    fast: Any = torch.compile(
        averaged, backend=backend, options=options, dynamic=dynamic, fullgraph=True
    )
    for sizes in ((7, 9), (6, 8)):
        x = drawn(2, 3, *sizes, dtype=torch.int64)
        for number, pair in enumerate(zip(fast(x), averaged(x), strict=True)):
            assert torch.equal(*pair), number
