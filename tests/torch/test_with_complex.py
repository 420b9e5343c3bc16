"""Complex numbers inside of a module: rotations, spectra, transforms there and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.torch.backend import nanoloom as backend


class Rotated(nn.Module):
    """Rotary positions as Llama writes them; the turns are a complex buffer."""

    def __init__(self) -> None:
        super().__init__()
        turns = torch.outer(torch.arange(5.0), torch.tensor([1.0, 0.1, 0.01]))
        self.register_buffer("turns", torch.polar(torch.ones_like(turns), turns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        here = torch.polar(torch.ones(3), x[0, 0, :3])
        made = torch.view_as_real(pairs * self.turns[:, None] * here.conj())
        return made.flatten(-2)


class Spectra(nn.Module):
    """A filter in frequencies, a mixer of tokens, a spectrogram."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        there = torch.fft.rfft2(x, dim=(0, 1), norm="ortho")
        gains = torch.complex(torch.ones(3), torch.arange(3.0))[:, None]
        back = torch.fft.irfft2(there * gains, s=(2, 5), dim=(0, 1), norm="ortho")
        mixed = torch.fft.fft(torch.fft.fft(x, dim=-1), dim=1).real
        window = torch.hann_window(4)
        rows = torch.stft(x.flatten(), 4, 2, window=window, return_complex=True)
        again = torch.istft(
            torch.stft(x.flatten(), 4, 2, window=window, return_complex=True),
            4, 2, window=window, length=x.numel(),
        )  # fmt: skip
        odd = torch.fft.ifft(torch.fft.fft(x[..., :5], norm="forward"), dim=1)
        return (
            back
            + mixed
            + again.reshape(x.shape)
            + rows.abs().square().sum()
            + odd.imag.sum()
            + odd.abs()[0, 0, 0]
        )


@pytest.mark.parametrize("kind", [Rotated, Spectra])
@pytest.mark.parametrize("way", ["backend", "module"])
def test_complex_numbers_inside(kind: Any, way: str, tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch.manual_seed(2)
    module, x = kind().eval(), torch.randn(2, 5, 6)
    if kind is Rotated:
        x = torch.randn(5, 2, 6)
    settings = {"cache": tmp_path, "threads": 1}
    if way == "module":
        fast: Any = nanoloom.compile(module, (x,), **settings)
    else:
        fast = torch.compile(module, backend=backend, fullgraph=True, options=settings)
    with torch.no_grad():
        wanted, made = module(x), fast(x)
    assert wanted.dtype == made.dtype and wanted.shape == made.shape
    assert (wanted - made).abs().max() <= 2e-6 * wanted.abs().max()


def test_a_complex_result_is_refused(tmp_path: Path) -> None:
    class Only(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.fft.fft(x)

    with pytest.raises(nanoloom.Error, match="has elements of type complex64"):
        nanoloom.compile(Only(), (torch.randn(4),), cache=tmp_path)
