"""MobileNetV2: inverted residuals around depthwise convolutions, ReLU6."""

from __future__ import annotations

import torch
from torch import nn

GAIN = 2.0
# expansion, output channels, blocks, first stride; then stem, last width, classes
FULL = (
    ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2))
    + ((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    (32, 1280, 1000),
)
SMALL = (
    ((1, 5, 1, 1), (6, 7, 2, 2), (3, 9, 2, 2), (3, 13, 1, 2), (3, 19, 1, 2)),
    (9, 43, 11),
)


def normed(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    """Convolution without bias, batch norm, ReLU6."""
    padding = kernel // 2
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(),
    )


class InvertedResidual(nn.Module):
    """Widen by 1x1, filter each channel, narrow by 1x1; add the input if it fits."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        widen = [normed(inputs, inner, 1)] if expansion != 1 else []
        self.body = nn.Sequential(
            *widen,
            normed(inner, inner, 3, stride, groups=inner),
            nn.Conv2d(inner, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.adds else self.body(x)


def make(name: str, small: bool) -> nn.Module:
    """[batch, 3, height, width] -> logits [batch, classes]."""
    stages, (channels, last, classes) = SMALL if small else FULL
    layers: list[nn.Module] = [normed(3, channels, 3, 2)]
    for expansion, outputs, blocks, first in stages:
        for block in range(blocks):
            stride = first if block == 0 else 1
            layers.append(InvertedResidual(channels, outputs, stride, expansion))
            channels = outputs
    layers += [normed(channels, last, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(last, classes))
