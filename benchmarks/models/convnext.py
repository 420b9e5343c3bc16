"""ConvNeXt-T: 7x7 depthwise convolutions, layer norms over channels, GELU."""

from __future__ import annotations

import torch
from torch import nn

GAIN = 1.0
EPSILON = 1e-6
# widths and blocks of the four stages, classes
FULL = ((96, 192, 384, 768), (3, 3, 9, 3), 1000)
SMALL = ((7, 13, 22, 31), (1, 1, 2, 1), 11)


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of [batch, channels, height, width]."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    """x + scale * linear(gelu(linear(norm(conv7x7(x)))))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.filter = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.pointwise = nn.Sequential(
            nn.LayerNorm(width, eps=EPSILON),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.pointwise(self.filter(x).permute(0, 2, 3, 1))
        return x + (self.scale * y).permute(0, 3, 1, 2)


def make(name: str, small: bool) -> nn.Module:
    """[batch, 3, height, width] -> logits [batch, classes]."""
    widths, depths, classes = SMALL if small else FULL
    layers: list[nn.Module] = [
        nn.Conv2d(3, widths[0], 4, stride=4),
        ChannelNorm(widths[0], eps=EPSILON),
    ]
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if stage > 0:
            before = widths[stage - 1]
            layers.append(ChannelNorm(before, eps=EPSILON))
            layers.append(nn.Conv2d(before, width, 2, stride=2))
        layers += [Block(width) for _ in range(depth)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(widths[-1], EPSILON)]
    return nn.Sequential(*layers, *head, nn.Linear(widths[-1], classes))
