"""Swin-T with its classifier: attention in windows, every second time shifted ones."""

from __future__ import annotations

from typing import Any

import transformers
from torch import nn

from benchmarks.models.vit import Classifier

GAIN = 1.0
FULL: dict[str, Any] = {"num_labels": 1000}  # the defaults are the published sizes
SMALL: dict[str, Any] = {
    "image_size": 32,
    "patch_size": 2,
    "window_size": 4,
    "mlp_ratio": 2.0,
    "embed_dim": 18,
    "depths": [2, 1],
    "num_heads": [2, 3],
    "num_labels": 11,
}


def make(name: str, small: bool) -> nn.Module:
    config = transformers.SwinConfig(**(SMALL if small else FULL))
    return Classifier(transformers.SwinForImageClassification(config))
