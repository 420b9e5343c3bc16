"""ShuffleNetV2: half of the channels is filtered, then both halves are shuffled."""

from __future__ import annotations

import torch
from torch import nn

GAIN = 2.0
# blocks of each stage; channels of the stem, of each stage, of the last; classes
FULL = ((4, 8, 4), (24, 116, 232, 464, 1024), 1000)
SMALL = ((2, 2), (9, 14, 26, 31), 11)


def normed(
    inputs: int, outputs: int, kernel: int, stride: int = 1, filtered: bool = False
) -> nn.Sequential:
    """Convolution without bias and batch norm; ReLU, but behind a depthwise filter."""
    groups = inputs if filtered else 1
    convolution = nn.Conv2d(
        inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False
    )
    activation = [] if filtered else [nn.ReLU()]
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), *activation)


def branch(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        normed(inputs, outputs, 1),
        normed(outputs, outputs, 3, stride, filtered=True),
        normed(outputs, outputs, 1),
    )


class Unit(nn.Module):
    """Two branches side by side, and their channels in turns."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        half, self.splits = outputs // 2, stride == 1
        self.right = branch(half if self.splits else inputs, half, stride)
        self.left: nn.Module = nn.Identity()
        if not self.splits:
            filters = normed(inputs, inputs, 3, stride, filtered=True)
            self.left = nn.Sequential(filters, normed(inputs, half, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, 1) if self.splits else (x, x)
        y = torch.cat([self.left(left), self.right(right)], 1)
        batch, channels, height, width = y.shape
        pairs = y.reshape(batch, 2, channels // 2, height, width)
        return pairs.transpose(1, 2).reshape(batch, channels, height, width)


def make(name: str, small: bool) -> nn.Module:
    """[batch, 3, height, width] -> logits [batch, classes]."""
    blocks, (channels, *widths, last), classes = SMALL if small else FULL
    layers: list[nn.Module] = [normed(3, channels, 3, 2), nn.MaxPool2d(3, 2, padding=1)]
    for count, width in zip(blocks, widths, strict=True):
        for block in range(count):
            layers.append(Unit(channels, width, 1 if block else 2))
            channels = width
    layers += [normed(channels, last, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(last, classes))
