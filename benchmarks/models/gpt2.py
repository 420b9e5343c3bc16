"""GPT-2 with its language head, without a cache of keys and values."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn

GAIN = 1.0
FULL: dict[str, Any] = {}  # the defaults are the published sizes
SMALL: dict[str, Any] = {
    "vocab_size": 103,
    "n_embd": 21,
    "n_layer": 2,
    "n_head": 3,
    "n_positions": 40,
}


class LanguageModel(nn.Module):
    """ids and mask [batch, sequence] -> logits [batch, sequence, vocabulary]."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.body(
            input_ids=ids, attention_mask=mask, use_cache=False, return_dict=False
        )[0]


def make(name: str, small: bool) -> nn.Module:
    config = transformers.GPT2Config(**(SMALL if small else FULL))
    return LanguageModel(transformers.GPT2LMHeadModel(config))
