"""A detector of the YOLO kind: CSP backbone with SiLU, feature pyramid, three heads."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

GAIN = 2.0
# width of the stem, blocks of each stage, classes
FULL = (32, (1, 2, 2, 1), 80)
SMALL = (2, (1, 1, 1, 1), 5)
SIDES = 4  # numbers that say where a box is


def normed(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """Convolution without bias, batch norm, SiLU."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.SiLU())


class Bottleneck(nn.Module):
    """x + conv3x3(conv3x3(x))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*[normed(channels, channels, 3) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


class CrossStage(nn.Module):
    """Half of the channels passes the blocks; all that there was is joined."""

    def __init__(self, inputs: int, outputs: int, blocks: int) -> None:
        super().__init__()
        half = outputs // 2
        self.first = normed(inputs, outputs, 1)
        self.blocks = nn.ModuleList(Bottleneck(half) for _ in range(blocks))
        self.last = normed(half * (blocks + 2), outputs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Pooled(nn.Module):
    """Maxima of windows of 5, 9 and 13 beside the values themselves."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.narrow = normed(channels, channels // 2, 1)
        self.widen = normed(channels // 2 * 4, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.narrow(x)]
        for _ in range(3):
            parts.append(functional.max_pool2d(parts[-1], 5, 1, 2))
        return self.widen(torch.cat(parts, 1))


class Detector(nn.Module):
    """[batch, 3, height, width] -> boxes and classes [batch, 4 + classes, places]."""

    def __init__(self, stem: int, depths: tuple[int, ...], classes: int) -> None:
        super().__init__()
        widths = [stem << stage for stage in range(5)]
        self.stem = normed(3, stem, 3, 2)
        self.stages = nn.ModuleList(
            nn.Sequential(normed(low, high, 3, 2), CrossStage(high, high, blocks))
            for low, high, blocks in zip(widths, widths[1:], depths, strict=False)
        )
        small, middle, large = widths[2:]
        self.pooled = Pooled(large)
        self.up = nn.ModuleList(
            [
                CrossStage(large + middle, middle, 1),
                CrossStage(middle + small, small, 1),
            ]
        )
        self.shrink = nn.ModuleList(
            [normed(small, small, 3, 2), normed(middle, middle, 3, 2)]
        )
        self.down = nn.ModuleList(
            [
                CrossStage(small + middle, middle, 1),
                CrossStage(middle + large, large, 1),
            ]
        )
        self.heads = nn.ModuleList(
            nn.Sequential(normed(n, n, 3), nn.Conv2d(n, SIDES + classes, 1))
            for n in (small, middle, large)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.stem(x)
        levels: list[torch.Tensor] = []
        for stage in self.stages:
            y = stage(y)
            levels.append(y)
        _, small, middle, large = levels
        large = self.pooled(large)
        middle = self.up[0](torch.cat([enlarged(large, middle), middle], 1))
        small = self.up[1](torch.cat([enlarged(middle, small), small], 1))
        middle = self.down[0](torch.cat([self.shrink[0](small), middle], 1))
        large = self.down[1](torch.cat([self.shrink[1](middle), large], 1))
        pairs = zip(self.heads, (small, middle, large), strict=True)
        return torch.cat([head(level).flatten(2) for head, level in pairs], 2)


def enlarged(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Each number four times; an odd edge of the other level is cut off before."""
    return functional.interpolate(x, size=like.shape[2:], mode="nearest")


def make(name: str, small: bool) -> nn.Module:
    return Detector(*(SMALL if small else FULL))
