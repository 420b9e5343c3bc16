"""EfficientNet-B0: inverted residuals with squeeze-and-excite and SiLU."""

from __future__ import annotations

import torch
from torch import nn

GAIN = 2.0
# expansion, output channels, blocks, first stride, kernel; then stem, last, classes
FULL = (
    ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3))
    + ((6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)),
    (32, 1280, 1000),
)
SMALL = (
    ((1, 5, 1, 1, 3), (6, 7, 2, 2, 3), (4, 9, 2, 2, 5), (3, 13, 1, 2, 3)),
    (9, 43, 11),
)
SQUEEZE = 4  # a block's input channels over the squeezed ones


def normed(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    """Convolution without bias, batch norm, SiLU."""
    padding = kernel // 2
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.SiLU(),
    )


class SqueezeExcite(nn.Module):
    """x times a gate per channel, made from the means of all channels."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, squeezed, 1),
            nn.SiLU(),
            nn.Conv2d(squeezed, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x)


class MBConv(nn.Module):
    """Widen, filter each channel, gate, narrow; add the input if it fits."""

    def __init__(
        self, inputs: int, outputs: int, stride: int, expansion: int, kernel: int
    ) -> None:
        super().__init__()
        inner = inputs * expansion
        widen = [normed(inputs, inner, 1)] if expansion != 1 else []
        self.body = nn.Sequential(
            *widen,
            normed(inner, inner, kernel, stride, groups=inner),
            SqueezeExcite(inner, max(1, inputs // SQUEEZE)),
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
    for expansion, outputs, blocks, first, kernel in stages:
        for block in range(blocks):
            stride = first if block == 0 else 1
            layers.append(MBConv(channels, outputs, stride, expansion, kernel))
            channels = outputs
    layers += [normed(channels, last, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(last, classes))
