"""Numbers of float64 keep their bits, integers wrap around and round down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch.nn import functional as F  # pyright: ignore[reportMissingImports] - an extra

from nanoloom.torch.backend import nanoloom as backend


def compiled(function: Any, folder: Path) -> Any:
    torch._dynamo.reset()
    torch.manual_seed(3)
    options = {"cache": folder, "threads": 1}
    return torch.compile(function, backend=backend, options=options, fullgraph=True)


def bent(x: torch.Tensor) -> list[torch.Tensor]:
    """With numbers of which 32 bits are too few."""
    flat = x.reshape(4, 7)
    return [
        F.leaky_relu(flat, 0.2), F.elu(flat, 0.3), F.hardsigmoid(flat),
        F.layer_norm(flat, (7,)), F.rms_norm(flat, (7,), eps=1e-3),
        F.group_norm(x, 2, eps=1e-3), F.instance_norm(x, eps=0.1),
        F.batch_norm(x, x[0, :, 0], x[0, :, 1].abs(), eps=1e-3),
        F.interpolate(x, scale_factor=1.7, mode="linear"),
    ]  # fmt: skip


def test_numbers_of_float64_have_all_their_bits(tmp_path: Path) -> None:
    fast = compiled(bent, tmp_path)
    x = torch.randn(1, 4, 7, dtype=torch.float64)
    for wanted, made in zip(bent(x), fast(x), strict=True):
        assert (wanted - made).abs().max() <= 1e-13 * wanted.abs().max()


def whole(x: torch.Tensor) -> list[torch.Tensor]:
    return [x // 3, x // -3, 5 // (x | 1), x % 3, x % -3, -x, 0 - x, x - 1, x * x]


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8])
def test_integers_of_all_values(kind: Any, tmp_path: Path) -> None:
    x = torch.arange(256).to(kind)
    made = compiled(whole, tmp_path)(x)
    for number, pair in enumerate(zip(whole(x), made, strict=True)):
        assert pair[0].dtype == pair[1].dtype and torch.equal(*pair), number
