"""Fourier transforms of windows of a signal and back, and the frequencies of one."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from nanoloom.errors import Unsupported

aten: Any = torch.ops.aten
Tensor = torch.Tensor


def widened(window: Tensor | None, length: int, points: int, dtype: Any) -> Tensor:
    """A window of all points, whose own numbers are in the middle."""
    made = torch.ones(length, dtype=dtype) if window is None else window
    left = (points - length) // 2
    return F.pad(made, (left, points - length - left)) if length < points else made


def real_type(x: Tensor) -> Any:
    return x.real.dtype if x.is_complex() else x.dtype


def stft(
    x: Tensor, n_fft: int, hop_length: int | None = None,
    win_length: int | None = None, window: Tensor | None = None,
    normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """Windows side by side are transformed together."""
    if align_to_window:
        raise Unsupported("aligns what it transforms to windows")
    step, length = hop_length or n_fft // 4, win_length or n_fft
    frames = (x if x.dim() > 1 else x[None]).unfold(-1, n_fft, step)
    if window is not None or length < n_fft:
        frames = frames * widened(window, length, n_fft, real_type(x))
    else:
        frames = frames.contiguous()  # windows that overlap ask open sizes
    half = onesided if onesided is not None else not frames.is_complex()
    transform: Any = torch.fft.rfft if half else torch.fft.fft
    made = transform(frames, norm="ortho" if normalized else "backward")
    made = made.transpose(1, 2)
    made = made if x.dim() > 1 else made[0]
    return made if return_complex or x.is_complex() else torch.view_as_real(made)


def istft(
    x: Tensor, n_fft: int, hop_length: int | None = None,
    win_length: int | None = None, window: Tensor | None = None, center: bool = True,
    normalized: bool = False, onesided: bool | None = None, length: int | None = None,
    return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """Windows are summed where they lie, and divided by the sum of their squares."""
    if return_complex:
        raise Unsupported("gives a complex signal")
    step, wide = hop_length or n_fft // 4, win_length or n_fft
    spectrum = (x if x.dim() > 2 else x[None]).transpose(1, 2)
    if onesided is False:
        spectrum = spectrum[..., : n_fft // 2 + 1]
    spectrum = spectrum.contiguous()  # others ask open sizes
    frames: Any = torch.fft.irfft(
        spectrum, n_fft, norm="ortho" if normalized else "backward"
    )
    shape = widened(window, wide, n_fft, frames.dtype)
    squares = (shape * shape).expand(1, frames.shape[1], n_fft)
    total, weight = (overlapped(y, step) for y in (frames * shape, squares))
    start, count = n_fft // 2 if center else 0, total.shape[1]
    stop = count - start if length is None else start + length
    made = total[:, start:stop] / weight[:, start:stop]
    if length is not None:  # behind the last window there is nothing
        made = F.pad(made, (0, length))[:, :length]
    return made if x.dim() > 2 else made[0]


def overlapped(frames: Tensor, step: int) -> Tensor:
    """The sum of frames, each a step behind the one before.

    Their parts of one step are rows of a matrix, which are moved by one place each:
    as many numbers behind each row, and then rows of one number less.
    """
    batch, count, points = frames.shape
    parts = -(-points // step)
    rows = F.pad(frames, (0, parts * step - points)).unflatten(-1, (parts, step))
    rows = F.pad(rows.transpose(1, 2), (0, 0, 0, parts))
    width = count + parts - 1
    flat = rows.reshape(batch, parts * (width + 1), step)[:, : parts * width]
    total = flat.reshape(batch, parts, width, step).sum(1)
    return total.reshape(batch, width * step)[:, : points + step * (count - 1)]


def rfftfreq(n: int, d: float = 1.0, **said: Any) -> Tensor:
    dtype = said.get("dtype") or torch.get_default_dtype()
    return torch.arange(n // 2 + 1, dtype=dtype) * (1.0 / (n * d))


RULES: dict[Any, Any] = {
    aten.stft.default: stft, aten.istft.default: istft,
    aten.fft_rfftfreq.default: rfftfreq,
}  # fmt: skip
