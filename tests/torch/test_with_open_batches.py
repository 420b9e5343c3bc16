"""Cells of recurrences and spectrograms of any number of rows, in one program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(4, 6), nn.GRUCell(6, 6, bias=False)

    def forward(self, x: Any, hidden: Any, cell: Any) -> Any:
        hidden, cell = self.lstm(x, (hidden, cell))
        return hidden, cell, self.gru(cell, hidden)


class Spectra(nn.Module):
    def forward(self, x: Any) -> Any:
        hann = torch.hann_window(12)
        said: dict[str, Any] = {"window": hann, "return_complex": True}
        whole = torch.stft(x, 16, 4, 12, **said)
        plain = torch.stft(x, 16, 8, center=False, onesided=False, return_complex=True)
        scaled = torch.stft(x, 16, 4, 12, hann, normalized=True, return_complex=True)
        return (
            torch.view_as_real(whole), plain.abs(), scaled.abs(),
            torch.istft(whole, 16, 4, 12, hann), torch.fft.fftshift(x),
            torch.istft(whole, 16, 5, 12, hann, length=50),
            torch.istft(torch.polar(whole.abs(), whole.real), 16, 4, 12, hann),
            torch.fft.rfftfreq(9, 0.5) + x[:, :5],
        )  # fmt: skip


def require_open(
    module: nn.Module, made: Callable[[int], tuple[Any, ...]], folder: Path
) -> None:
    torch.manual_seed(2)
    rows, example = torch.export.Dim("rows"), made(3)
    said = {"dynamic_shapes": ({0: rows},) * len(example), "threads": 1}
    program = nanoloom.compile(module.eval(), example, cache=folder, **said)
    for count in (3, 1, 2, 7):
        args = made(count)
        with torch.no_grad():
            wanted = module(*args)
        for one, other in zip(wanted, program(*args), strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            assert torch.allclose(one, other, atol=2e-6, rtol=1e-5)
    assert not program.program.open.reason


def test_cells_of_recurrences(tmp_path: Path) -> None:
    require_open(
        Steps(), lambda n: tuple(torch.randn(n, k) for k in (4, 6, 6)), tmp_path
    )


def test_spectrograms_and_back(tmp_path: Path) -> None:
    require_open(Spectra(), lambda n: (torch.randn(n, 64),), tmp_path)
