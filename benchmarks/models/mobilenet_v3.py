"""MobileNetV3, large: inverted residuals, some with squeeze-and-excite, HardSwish."""

from __future__ import annotations

import torch
from torch import nn

GAIN = 2.0
# kernel, inner width, output channels, squeezed, HardSwish, stride; then stem, last
# convolution, last hidden layer, classes
FULL = (
    ((3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2))
    + ((3, 72, 24, False, False, 1), (5, 72, 40, True, False, 2))
    + ((5, 120, 40, True, False, 1),) * 2
    + ((3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1))
    + ((3, 184, 80, False, True, 1),) * 2
    + ((3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1))
    + ((5, 672, 160, True, True, 2),)
    + ((5, 960, 160, True, True, 1),) * 2,
    (16, 960, 1280, 1000),
)
SMALL = (
    ((3, 9, 9, False, False, 1), (5, 21, 13, True, False, 2))
    + ((5, 27, 13, True, True, 1),),
    (9, 31, 37, 11),
)
SQUEEZE = 4  # a block's inner width over the squeezed channels


def normed(
    inputs: int,
    outputs: int,
    kernel: int,
    stride: int = 1,
    groups: int = 1,
    activation: type[nn.Module] = nn.Identity,
) -> nn.Sequential:
    """Convolution without bias, batch norm, activation."""
    padding = kernel // 2
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        activation(),
    )


class SqueezeExcite(nn.Module):
    """x times a gate per channel: a line, clipped to 0..1."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        squeezed = max(channels // SQUEEZE, 3)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, squeezed, 1),
            nn.ReLU(),
            nn.Conv2d(squeezed, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x)


class Block(nn.Module):
    """Widen, filter each channel, gate, narrow; add the input if it fits."""

    def __init__(
        self,
        inputs: int,
        kernel: int,
        inner: int,
        outputs: int,
        squeezed: bool,
        swish: bool,
        stride: int,
    ) -> None:
        super().__init__()
        activation = nn.Hardswish if swish else nn.ReLU
        layers: list[nn.Module] = []
        if inner != inputs:
            layers.append(normed(inputs, inner, 1, activation=activation))
        layers.append(normed(inner, inner, kernel, stride, inner, activation))
        if squeezed:
            layers.append(SqueezeExcite(inner))
        self.body = nn.Sequential(*layers, normed(inner, outputs, 1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.adds else self.body(x)


def make(name: str, small: bool) -> nn.Module:
    """[batch, 3, height, width] -> logits [batch, classes]."""
    blocks, (channels, last, hidden, classes) = SMALL if small else FULL
    layers: list[nn.Module] = [normed(3, channels, 3, 2, activation=nn.Hardswish)]
    for kernel, inner, outputs, squeezed, swish, stride in blocks:
        layers.append(Block(channels, kernel, inner, outputs, squeezed, swish, stride))
        channels = outputs
    layers.append(normed(channels, last, 1, activation=nn.Hardswish))
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    head = [nn.Linear(last, hidden), nn.Hardswish(), nn.Linear(hidden, classes)]
    return nn.Sequential(*layers, *head)
