"""ResNet-18 of basic blocks, ResNet-50 of bottlenecks, the stride in the 3x3 (v1.5)."""

from __future__ import annotations

import torch
from torch import nn

GAIN = 2.0
EXPANSION = 4  # a bottleneck's output over its inner width
# width of the first stage, blocks of each stage, classes
FULL = {"resnet18": (64, (2, 2, 2, 2), 1000), "resnet50": (64, (3, 4, 6, 3), 1000)}
SMALL = {"resnet18": (5, (1, 2, 1), 11), "resnet50": (4, (2, 1, 2, 1), 11)}


def normed(
    inputs: int, outputs: int, kernel: int, stride: int = 1, relu: bool = True
) -> nn.Sequential:
    """Convolution without bias, batch norm and, if asked, ReLU."""
    convolution = nn.Conv2d(
        inputs, outputs, kernel, stride, padding=kernel // 2, bias=False
    )
    activation = [nn.ReLU()] if relu else []
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), *activation)


def basic(inputs: int, width: int, stride: int) -> nn.Sequential:
    """conv3x3(conv3x3(x))."""
    return nn.Sequential(
        normed(inputs, width, 3, stride), normed(width, width, 3, relu=False)
    )


def bottleneck(inputs: int, width: int, stride: int) -> nn.Sequential:
    """conv1x1(conv3x3(conv1x1(x)))."""
    return nn.Sequential(
        normed(inputs, width, 1),
        normed(width, width, 3, stride),
        normed(width, width * EXPANSION, 1, relu=False),
    )


class Block(nn.Module):
    """relu(shortcut(x) + body(x))."""

    def __init__(
        self, body: nn.Sequential, inputs: int, outputs: int, stride: int
    ) -> None:
        super().__init__()
        self.body = body
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = normed(inputs, outputs, 1, stride, relu=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def make(name: str, small: bool) -> nn.Module:
    """[batch, 3, height, width] -> logits [batch, classes]."""
    width, depths, classes = (SMALL if small else FULL)[name]
    body, times = (basic, 1) if name == "resnet18" else (bottleneck, EXPANSION)
    layers: list[nn.Module] = [normed(3, width, 7, 2), nn.MaxPool2d(3, 2, padding=1)]
    channels = width
    for stage, blocks in enumerate(depths):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            inner = width << stage
            made = body(channels, inner, stride)
            layers.append(Block(made, channels, inner * times, stride))
            channels = inner * times
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
    return nn.Sequential(*layers)
