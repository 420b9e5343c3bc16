"""ViT-B/16 with its classifier."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn

GAIN = 1.0
FULL: dict[str, Any] = {"num_labels": 1000}
SMALL: dict[str, Any] = {
    "image_size": (21, 28),
    "patch_size": 7,
    "hidden_size": 21,
    "intermediate_size": 43,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_labels": 11,
}


class Classifier(nn.Module):
    """[batch, 3, height, width] -> logits [batch, classes]."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.body(pixel_values=pixels, return_dict=False)[0]


def make(name: str, small: bool) -> nn.Module:
    config = transformers.ViTConfig(**(SMALL if small else FULL))
    return Classifier(transformers.ViTForImageClassification(config))
