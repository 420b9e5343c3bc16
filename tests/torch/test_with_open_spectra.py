"""Fourier transforms of axes whose size a call brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch import fft, nn

from nanoloom.frontend.torch.exported import import_exported

AUTO = torch.export.Dim.AUTO


class Lines(nn.Module):
    """A long convolution, and rows that are cut or filled up."""

    def forward(self, x: Any) -> Any:
        count = x.shape[-1]
        long = fft.rfft(x, n=2 * count) * fft.rfft(x.flip(-1), n=2 * count)
        made = fft.irfft(long, n=2 * count, norm="ortho")[..., :count]
        return made, fft.rfft(x, n=9, norm="forward").real


class Planes(nn.Module):
    """Axes that are not the last, as images have them whose channels are last."""

    def forward(self, x: Any) -> Any:
        plane = fft.rfft2(x, dim=(1, 2), norm="ortho") * 2
        back = fft.irfft2(plane, s=x.shape[1:3], dim=(1, 2), norm="ortho")
        return back, fft.ifftn(x, s=(4, 6)).real


CASES = [
    (Lines(), {0: AUTO, 1: AUTO}, [(2, 12), (3, 7)]),
    (Planes(), {1: AUTO, 2: AUTO}, [(2, 5, 6, 3), (2, 4, 7, 3)]),
]


@pytest.mark.parametrize("module, axes, shapes", CASES)
def test_as_torch(module: Any, axes: Any, shapes: Any) -> None:
    """By ONNX's reference: each size would be a program of its own."""
    torch.manual_seed(0)
    example, said = (torch.randn(shapes[0]),), {"dynamic_shapes": (axes,)}
    imported = import_exported(torch.export.export(module, example, **said))
    model = ReferenceEvaluator(ir.to_proto(imported.model))
    for shape in shapes:
        x = torch.randn(shape)
        results: Any = model.run(None, {next(iter(imported.inputs)): x.numpy()})
        for wanted, made in zip(module(x), results, strict=True):
            assert tuple(wanted.shape) == np.shape(made)
            np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)
