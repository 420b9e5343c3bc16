"""T5 (v1.1): an encoder, and a decoder that attends to it, both with learned biases."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn

GAIN = 1.0
GATED: dict[str, Any] = {
    "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
}
FULL: dict[str, Any] = {"d_ff": 1024, "num_layers": 8, **GATED}  # t5-v1_1-small
SMALL: dict[str, Any] = {
    "vocab_size": 97,
    "d_model": 21,
    "d_kv": 9,
    "d_ff": 43,
    "num_layers": 1,
    "num_heads": 3,
    **GATED,
}


class Seq2Seq(nn.Module):
    """ids, mask and the decoder's ids [batch, sequence] -> logits of the next words."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, decoder_ids: torch.Tensor
    ) -> torch.Tensor:
        return self.body(
            input_ids=ids,
            attention_mask=mask,
            decoder_input_ids=decoder_ids,
            use_cache=False,
            return_dict=False,
        )[0]


def make(name: str, small: bool) -> nn.Module:
    config = transformers.T5Config(**(SMALL if small else FULL))
    return Seq2Seq(transformers.T5ForConditionalGeneration(config))
