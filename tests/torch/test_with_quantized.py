"""Graphs that PyTorch's quantizers write: they run as ONNX's quantized models do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]
from torch.ao.quantization.fx import (  # pyright: ignore[reportMissingImports]
    _decomposed,  # noqa: F401 - registers the operators  # pyright: ignore[reportUnusedImport]
)

import nanoloom
from nanoloom.frontend.torch.exported import import_exported

Q = torch.ops.quantized_decomposed
I8, U8 = (-128, 127, torch.int8), (0, 255, torch.uint8)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


class Linear(nn.Module):
    """Bytes times bytes per channel, as a quantized layer is exported."""

    def __init__(self) -> None:
        super().__init__()
        weight = torch.randn(7, 13)
        self.register_buffer("scales", weight.abs().amax(1) / 127)
        zeros = torch.zeros(7, dtype=torch.int64)
        self.register_buffer("zeros", zeros)
        made = Q.quantize_per_channel(weight, self.scales, zeros, 0, *I8)
        self.register_buffer("weight", made)

    def forward(self, x: Any) -> Any:
        x = Q.quantize_per_tensor(x, 0.05, 3, *U8)
        x = Q.dequantize_per_tensor(x, 0.05, 3, *U8)
        w = Q.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, *I8)
        y = nn.functional.linear(x, w)
        return Q.quantize_per_tensor(y, 0.25, -7, -100, 100, torch.int8)


class Groups(nn.Module):
    """Weights of four bits in groups of eight columns, rows quantized when it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-8, 8, (6, 24), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(6, 3) + 0.1)
        zeros = torch.randint(-3, 3, (6, 3), dtype=torch.int32)
        self.register_buffer("zeros", zeros)

    def forward(self, x: Any) -> Any:
        scale, zero = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
        rows = Q.quantize_per_token(x, scale, zero, *I8)
        back = Q.dequantize_per_token(rows, scale, zero, *I8, torch.float32)
        given = self.weight, self.scales, self.zeros, -8, 7, torch.int8, 8
        w = Q.dequantize_per_channel_group(*given, torch.float32)
        return back @ w.t()


def test_a_layer_of_bytes(tmp_path: Path) -> None:
    module, x = Linear(), torch.randint(-60, 60, (9, 13)) * 0.0501
    exported = torch.export.export(module, (x,))
    ops = [n.op_type for n in import_exported(exported).model.graph]
    assert ops.count("QuantizeLinear") == 2
    assert ops.count("DequantizeLinear") == 2
    found = nanoloom.compile(exported, cache=tmp_path, threads=1)(x)
    wanted = module(x)
    assert found.dtype == wanted.dtype == torch.int8
    assert (found.int() - wanted.int()).abs().max() <= 1  # sums in another order
    assert (found == wanted).float().mean() > 0.95
    assert found.min() >= -100
    assert len(set(wanted.flatten().tolist())) > 20


def test_groups_of_columns_and_rows_that_are_quantized_at_run_time(
    tmp_path: Path,
) -> None:
    module, x = Groups(), torch.randn(5, 24)
    exported = torch.export.export(module, (x,))
    found = nanoloom.compile(exported, cache=tmp_path, threads=1)(x)
    wanted = module(x)
    # One step of a row's quantization in one place may differ: scale * |w|.
    step = (x.amax(1) - x.amin(1)).max() / 255 * 11 * module.scales.max()
    assert (found - wanted).abs().max() <= step
    assert (found - wanted).abs().median() <= 1e-5
    assert wanted.abs().max() > 8 * step
