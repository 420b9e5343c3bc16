"""U-Net for segmentation: pools down, transposed convolutions up, skips between."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

GAIN = 2.0
# width of the first level, levels below it, classes
FULL = (64, 4, 2)
SMALL = (5, 3, 3)


def double(inputs: int, outputs: int) -> nn.Sequential:
    """Twice: 3x3 convolution, batch norm, ReLU."""
    layers: list[nn.Module] = []
    for channels in (inputs, outputs):
        layers.append(nn.Conv2d(channels, outputs, 3, padding=1, bias=False))
        layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """[batch, 3, height, width] -> logits [batch, classes, height, width]."""

    def __init__(self, width: int, levels: int, classes: int) -> None:
        super().__init__()
        widths = [width << level for level in range(levels + 1)]
        pairs = list(pairwise(widths))
        self.first = double(3, width)
        self.down = nn.ModuleList(double(high, low) for high, low in pairs)
        self.widen = nn.ModuleList(
            nn.ConvTranspose2d(low, high, 2, stride=2) for high, low in reversed(pairs)
        )
        self.up = nn.ModuleList(double(low, high) for high, low in reversed(pairs))
        self.last = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = [self.first(x)]
        for down in self.down:
            skips.append(down(functional.max_pool2d(skips[-1], 2)))
        y = skips.pop()
        for widen, up in zip(self.widen, self.up, strict=True):
            skip, y = skips.pop(), widen(y)
            rows, columns = skip.shape[2] - y.shape[2], skip.shape[3] - y.shape[3]
            y = functional.pad(y, (0, columns, 0, rows))  # a pool drops an odd edge
            y = up(torch.cat([skip, y], 1))
        return self.last(y)


def make(name: str, small: bool) -> nn.Module:
    return UNet(*(SMALL if small else FULL))
