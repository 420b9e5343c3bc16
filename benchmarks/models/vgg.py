"""VGG-16: thirteen 3x3 convolutions, five pools, three linear layers."""

from __future__ import annotations

from torch import nn

GAIN = 2.0
BLOCKS = (2, 2, 3, 3, 3)  # convolutions before each pool
# widths of the blocks, pixels left of one image, width of the linear layers, classes
FULL = ((64, 128, 256, 512, 512), 7 * 7, 4096, 1000)
SMALL = ((3, 6, 12, 23, 23), 2 * 1, 41, 11)


def make(name: str, small: bool) -> nn.Module:
    """[batch, 3, height, width] -> logits [batch, classes]."""
    widths, pixels, wide, classes = SMALL if small else FULL
    layers: list[nn.Module] = []
    channels = 3
    for convolutions, width in zip(BLOCKS, widths, strict=True):
        for _ in range(convolutions):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(channels * pixels, wide), nn.ReLU()]
    layers += [nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, classes)]
    return nn.Sequential(*layers)
