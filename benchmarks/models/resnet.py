"""ResNet-50 with bottleneck blocks, the stride in the 3x3 convolution (v1.5)."""

from __future__ import annotations

import torch
from torch import nn

GAIN = 2.0
EXPANSION = 4  # a block's output over its inner width
# width of the first stage, blocks of each stage, classes
FULL = (64, (3, 4, 6, 3), 1000)
SMALL = (4, (2, 1, 2, 1), 11)


def normed(
    inputs: int, outputs: int, kernel: int, stride: int = 1, relu: bool = True
) -> nn.Sequential:
    """Convolution without bias, batch norm and, if asked, ReLU."""
    convolution = nn.Conv2d(
        inputs, outputs, kernel, stride, padding=kernel // 2, bias=False
    )
    activation = [nn.ReLU()] if relu else []
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), *activation)


class Bottleneck(nn.Module):
    """relu(shortcut(x) + conv1x1(conv3x3(conv1x1(x))))."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.body = nn.Sequential(
            normed(inputs, width, 1),
            normed(width, width, 3, stride),
            normed(width, outputs, 1, relu=False),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = normed(inputs, outputs, 1, stride, relu=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def make(name: str, small: bool) -> nn.Module:
    """[batch, 3, height, width] -> logits [batch, classes]."""
    width, depths, classes = SMALL if small else FULL
    layers: list[nn.Module] = [normed(3, width, 7, 2), nn.MaxPool2d(3, 2, padding=1)]
    channels = width
    for stage, blocks in enumerate(depths):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Bottleneck(channels, width << stage, stride))
            channels = (width << stage) * EXPANSION
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
    return nn.Sequential(*layers)
