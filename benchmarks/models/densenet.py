"""DenseNet-121: every layer of a block reads all channels made before it."""

from __future__ import annotations

import torch
from torch import nn

GAIN = 2.0
BOTTLENECK = 4  # width of the 1x1 convolution over the growth
# growth, first width, layers of each block, classes
FULL = (32, 64, (6, 12, 24, 16), 1000)
SMALL = (5, 9, (2, 3, 2, 2), 11)


def activated(inputs: int, outputs: int, kernel: int) -> nn.Sequential:
    """Batch norm, ReLU, convolution: the order of pre-activation networks."""
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    return nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(), convolution)


class DenseLayer(nn.Module):
    """concat(x, conv3x3(conv1x1(x)))."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        inner = BOTTLENECK * growth
        self.body = nn.Sequential(
            activated(inputs, inner, 1), activated(inner, growth, 3)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.body(x)], 1)


def make(name: str, small: bool) -> nn.Module:
    """[batch, 3, height, width] -> logits [batch, classes]."""
    growth, channels, blocks, classes = SMALL if small else FULL
    layers: list[nn.Module] = [
        nn.Conv2d(3, channels, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, padding=1),
    ]
    for number, depth in enumerate(blocks):
        if number > 0:
            layers += [activated(channels, channels // 2, 1), nn.AvgPool2d(2)]
            channels //= 2
        for _ in range(depth):
            layers.append(DenseLayer(channels, growth))
            channels += growth
    layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, classes))
