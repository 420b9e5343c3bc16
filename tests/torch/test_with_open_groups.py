"""Convolutions with as many groups as there are images."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import torch
import torch.nn.functional as F
from onnx.reference import ReferenceEvaluator
from torch import nn

from nanoloom.frontend.torch.exported import import_exported


class Modulated(nn.Module):
    """Each image has filters of its own, [images, features, channels, 3, 3]."""

    def forward(self, x: Any, filters: Any) -> Any:
        images, channels, height, width = x.shape
        flat = x.reshape(1, images * channels, height, width)
        plain = filters.reshape(-1, channels, 3, 3)
        turned = filters.transpose(1, 2).reshape(images * channels, -1, 3, 3)
        bias = torch.ones(plain.shape[0])
        apart: dict[str, Any] = {"groups": images, "dilation": (1, 2)}
        made = (
            F.conv2d(flat, plain, padding=1, groups=images),
            F.conv2d(flat, plain, bias, stride=2, padding=(0, 2), **apart),
            F.conv_transpose2d(flat, turned, None, (2, 3), 1, 1, **apart),
        )
        rows = plain.reshape(-1, channels, 9)
        line = flat.reshape(images * channels, height * width)
        return *made, F.conv1d(line, rows, padding="same", groups=images)


def test_numbers_for_any_number_of_images() -> None:
    torch.manual_seed(0)

    def made(count: int) -> tuple[torch.Tensor, ...]:
        return torch.randn(count, 4, 5, 6), torch.randn(count, 5, 4, 3, 3)

    shapes: Any = ({0: torch.export.Dim.AUTO},) * 2
    exported = torch.export.export(Modulated(), made(2), dynamic_shapes=shapes)
    imported = import_exported(exported)
    model = ReferenceEvaluator(ir.to_proto(imported.model))
    for count in (2, 3, 1):
        args = made(count)
        arrays = [x.numpy() for x in args]
        feeds = dict(zip(imported.inputs, arrays, strict=True))
        results: Any = model.run(None, feeds)
        for wanted, got in zip(Modulated()(*args), results, strict=True):
            assert tuple(wanted.shape) == np.shape(got)
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5)
