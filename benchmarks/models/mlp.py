"""The multilayer perceptron of "Library Liberation": 3 layers, bias + ReLU each."""

from __future__ import annotations

from torch import nn

LAYERS = 3
GAIN = 2.0
WIDTHS = {"mlp1024": (1024, 37), "mlp2048": (2048, 43), "mlp4096": (4096, 53)}


def make(name: str, small: bool) -> nn.Module:
    """[batch, width] -> [batch, width]."""
    width = WIDTHS[name][small]
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(LAYERS)]
    return nn.Sequential(*layers)
