"""Bags of embeddings, padding, Fourier transforms, einsum."""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export import Dim  # pyright: ignore[reportMissingImports]

from tests.fuzz.written.draw import Drawn, Written


def bags(d: Drawn) -> Written:
    mode = d.pick("sum", "mean", "max")
    pad = d.pick("None", "0", "2")
    last, weighted = d.flag(), mode == "sum" and d.flag()
    flat = d.flag()
    init = (
        f"self.e = nn.EmbeddingBag(7, 4, mode='{mode}', padding_idx={pad},"
        f" include_last_offset={flat and last})"
    )
    calls: list[Any] = []
    for n in (6, 8):
        i = d.ints(0, 7, n) if flat else d.ints(0, 7, 2, n)
        o = torch.tensor([0, 2, 2, n] if last else [0, 2, 2, 5]) if flat else None
        w = d.randn(*i.shape) if weighted else None
        calls.append(((i, o, w), {}))
    shapes: Any = {
        "i": {len(calls[0][0][0].shape) - 1: Dim.AUTO},
        "o": None,
        "w": {len(calls[0][0][0].shape) - 1: Dim.AUTO} if weighted else None,
    }
    return Written(
        "i, o, w\n  return self.e(i, o, w)",
        calls,
        init,
        shapes=shapes if d.flag() else None,
    )


def padded(d: Drawn) -> Written:
    """Padding as a layer, a function, and of convolutions."""
    rank = d.number(1, 3)
    mode = d.pick("zeros", "reflect", "replicate", "circular")
    stride, dilation = d.pick(1, 2), d.pick(1, 2)
    pad = d.pick(1, 2, "'same'") if stride == 1 else d.pick(1, 2)
    init = (
        f"self.c = nn.Conv{rank}d(2, 4, 3, stride={stride}, padding={pad},"
        f" dilation={dilation}, groups={d.pick(1, 2)}, padding_mode='{mode}',"
        f" bias={d.flag()})"
    )
    how = d.pick("reflect", "replicate", "circular", "constant")
    widths = [
        d.number(0, 2)
        for _ in range(2 * (rank if how != "constant" else d.number(1, rank)))
    ]
    if how == "constant" and d.flag():
        widths = [w - 1 for w in widths]
    more = ", value=1.5" if how == "constant" else ""
    layer = d.pick("ReflectionPad", "ReplicationPad", "ZeroPad", "CircularPad")
    step = d.pick("self.c(x)", f"F.pad(x, {tuple(widths)}, '{how}'{more})",
                  f"self.c(F.pad(x, {tuple(widths)}, '{how}'{more}))",
                  f"nn.{layer}{rank}d({d.number(1, 2)})(x)")  # fmt: skip
    calls: list[Any] = [
        ((d.randn(n, 2, *([k] * rank)),), {}) for n, k in ((2, 6), (1, 7), (3, 8))
    ]
    shapes = {"x": {0: Dim.AUTO, rank + 1: Dim.AUTO}} if d.flag() else None
    return Written(f"x\n  return {step}", calls if shapes else calls[:1], init, shapes)


EINSUMS = (
    "bij,bjk->bik", "bij,bkj->ikb", "bij->bji", "bii->bi", "bii->b", "bij->",
    "bij,bij->b", "...ij,...jk", "bij,kj->bik", "b...,b...->...", "bij,b,j->i",
    "bij,bjk,bkl->bil", "ij...,jk...->ik...", "bij,cij->bc",
)  # fmt: skip
SPECTRA = (
    "torch.fft.rfft(x).abs()", "torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1])",
    "torch.fft.fft2(x).real", "torch.fft.fft(x, dim=1).angle()[..., :1] * 0",
    "torch.view_as_real(torch.fft.rfft(x, norm='ortho'))", "torch.fft.fftshift(x)",
    "torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(x), n=6)",
    "torch.fft.rfft2(x).imag", "torch.fft.ifft(torch.fft.fft(x)).real",
    "torch.fft.fft(x, n=4).abs()",
    "torch.fft.rfftn(x, dim=(1, 2), norm='forward').abs()",
    "torch.fft.hfft(x[..., :3]).real", "torch.fft.rfftfreq(6) + x[..., :4]",
    "torch.fft.fftfreq(x.shape[1], 0.5)", "torch.complex(x, x).abs()",
    "(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * "
    "torch.polar(torch.ones(1), torch.ones(1))).real",
    "torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * "
    "torch.exp(1j * x[..., :1])).flatten(-2)",
    "torch.stft(x.flatten(1), 4, 2, return_complex=True).abs()",
    "torch.stft(x.flatten(1), 4, 2, window=torch.hann_window(4), return_complex=True, "
    "center=False).abs() ** 2",
    "torch.fft.ihfft(x).real", "torch.fft.ifft2(torch.fft.fft2(x)).real.roll(1, -1)",
    "(torch.fft.fft(x) * torch.fft.fft(x).conj()).real",
    "torch.istft(torch.stft(x.flatten(1), 4, 2, window=torch.hann_window(4), "
    "return_complex=True), 4, 2, window=torch.hann_window(4))",
)  # fmt: skip


def spectra(d: Drawn) -> Written:
    dtype = d.pick(torch.float32, torch.float32, torch.float64)
    step = d.pick(*SPECTRA)
    calls: list[Any] = [((d.randn(n, 4, 6, dtype=dtype),), {}) for n in (2, 3, 1)]
    shapes = {"x": {0: Dim("n")}} if d.flag() else None
    return Written(
        f"x\n  return {step}",
        calls if shapes else calls[:1],
        shapes=shapes,
        dtype=dtype,
    )


def sums(d: Drawn) -> Written:
    dtype = d.float_type()
    text = d.pick(*EINSUMS)
    names = "xyz"[: text.count(",") + 1]
    letters = text.partition("->")[0].split(",")
    if "b,j" in text:
        shapes_of = [(4, 4, 4), (4,), (4,)]
    elif text == "bij,kj->bik":
        shapes_of = [(4, 4, 4), (5, 4)]
    else:
        shapes_of = [(4, 4, 4)] * len(letters)
    calls: list[Any] = [
        (tuple(d.randn(*s, dtype=dtype) for s in shapes_of), {}) for _ in range(2)
    ]
    return Written(
        f"{', '.join(names)}\n  return torch.einsum('{text}', {', '.join(names)})",
        calls,
        dtype=dtype,
    )


KINDS = (bags, padded, spectra, sums)
