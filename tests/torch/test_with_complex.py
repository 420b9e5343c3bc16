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


class Turned(nn.Module):
    """Complex in and out, as Llama's own code hands its turns around."""

    def forward(self, x: Any, turns: Any, kept: Any) -> Any:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        made = pairs * turns
        kept.mul_(turns[0].conj())
        return torch.view_as_real(made).flatten(-2), made.conj(), turns, kept.abs()


def operands(rows: int, *, turned: bool = False) -> tuple[torch.Tensor, ...]:
    turns = torch.randn(3, rows, dtype=torch.complex64).T
    turns = turns if turned else turns.contiguous()
    return torch.randn(rows, 6), turns, torch.randn(2, 3, dtype=torch.complex64)


@pytest.mark.parametrize("way", ["backend", "module"])
def test_complex_arguments_and_results(way: str, tmp_path: Path) -> None:
    """The second call of a shape goes past numpy; axes may be turned, or conjugate."""
    torch._dynamo.reset()
    torch.manual_seed(3)
    settings = {"cache": tmp_path, "threads": 1}
    module = Turned().eval()
    if way == "module":
        rows = {0: torch.export.Dim("rows")}
        fast: Any = nanoloom.compile(
            module, operands(5), dynamic_shapes=(rows, rows, None), **settings
        )
    else:
        fast = torch.compile(module, backend=backend, fullgraph=True, options=settings)
    for given in (operands(5), operands(5), operands(4, turned=True), operands(5)):
        x, turns, kept = given
        other = kept.clone()
        with torch.no_grad():
            wanted, made = module(x, turns, kept), fast(x, turns, other)
        assert made[2] is turns
        for a, b in zip((*wanted, kept), (*made, other), strict=True):
            assert a.dtype == b.dtype
            assert (a - b).abs().max() <= 1e-6 * a.abs().max()
    x, turns, kept = operands(5)
    with torch.no_grad():
        made = fast(x, turns.conj(), kept.clone())
        wanted = module(x, turns.conj(), kept)
    assert (wanted[1] - made[1]).abs().max() <= 1e-6 * wanted[1].abs().max()


def test_real_numbers_in_the_place_of_complex_ones(tmp_path: Path) -> None:
    program = nanoloom.compile(Turned(), operands(5), cache=tmp_path)
    x, turns, kept = operands(5)
    with pytest.raises(nanoloom.Error, match="has real numbers, where the example has"):
        program(x, torch.view_as_real(turns), kept)
    with pytest.raises(nanoloom.Error, match="has complex numbers, where the example"):
        program(torch.view_as_complex(x.reshape(5, 3, 2)), turns, kept)


class Roots(nn.Module):
    def forward(self, x: Any) -> Any:
        made = torch.fft.fft(torch.linalg.eigvals(x * 2) * 1j)
        return made.abs() + 1


def test_complex_numbers_from_what_stays_with_torch(tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch.manual_seed(4)
    x = torch.randn(4, 4)
    fast = torch.compile(Roots(), backend=backend, options={"cache": tmp_path})
    with torch.no_grad(), pytest.warns(nanoloom.ModelWarning) as told:
        made = fast(x)
    assert {"linalg" in str(w.message) for w in told} == {True}
    assert (made - Roots()(x)).abs().max() <= 1e-4 * made.abs().max()


def test_tensors_of_numbers_and_sizes(tmp_path: Path) -> None:
    class Made(nn.Module):
        def forward(self, x: Any) -> Any:
            double, size = torch.complex128, x.shape[0]
            return (
                torch.zeros(size, dtype=double) + x, torch.eye(size, dtype=double) * x,
                torch.full((size,), 1 - 2j) * x, torch.linalg.vander(x[:2] * 1j),
            )  # fmt: skip

    x, said = torch.arange(3.0), {"dynamic_shapes": ({0: torch.export.Dim("n")},)}
    program: Any = nanoloom.compile(Made(), (x,), cache=tmp_path, threads=1, **said)
    for x in (torch.arange(3.0), torch.tensor([2.0, 0.5])):
        for wanted, made in zip(Made()(x), program(x), strict=True):
            assert wanted.dtype == made.dtype and torch.allclose(wanted, made)
