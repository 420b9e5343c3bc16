"""Encoders of text, from transformers' own classes and the published sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers
from torch import nn
from torch.nn import functional

GAIN = 1.0
Sizes = Mapping[str, Any]

# model class, config class
CLASSES: Mapping[str, tuple[type[Any], type[Any]]] = {
    "bert-base": (transformers.BertModel, transformers.BertConfig),
    "bge-small": (transformers.BertModel, transformers.BertConfig),
    "distilbert": (
        transformers.DistilBertForSequenceClassification,
        transformers.DistilBertConfig,
    ),
    "roberta-base": (transformers.RobertaModel, transformers.RobertaConfig),
    "albert": (transformers.AlbertModel, transformers.AlbertConfig),
    "deberta-v2": (transformers.DebertaV2Model, transformers.DebertaV2Config),
}

BASE: Sizes = {  # what "base" means in every family
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
}
ROBERTA: Sizes = {"type_vocab_size": 1, "layer_norm_eps": 1e-5}
DEBERTA: Sizes = {  # disentangled attention as in deberta-v3
    "relative_attention": True,
    "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "type_vocab_size": 0,
}
FULL: Mapping[str, Sizes] = {
    "bert-base": {"vocab_size": 30522, **BASE},
    "bge-small": {
        "vocab_size": 30522,
        **BASE,
        "hidden_size": 384,
        "intermediate_size": 1536,
    },
    "distilbert": {"vocab_size": 30522},  # its defaults are the published sizes
    "roberta-base": {
        "vocab_size": 50265,
        "max_position_embeddings": 514,
        **BASE,
        **ROBERTA,
    },
    "albert": {"vocab_size": 30000, **BASE},  # its defaults are the xxlarge sizes
    "deberta-v2": {"vocab_size": 128100, "position_buckets": 256, **BASE, **DEBERTA},
}


def little(vocabulary: int, hidden: int, inner: int) -> Sizes:
    """Two layers, three heads, forty positions."""
    return {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "max_position_embeddings": 40,
    }


SMALL: Mapping[str, Sizes] = {
    "bert-base": little(97, 21, 43),
    "bge-small": little(97, 27, 37),
    "distilbert": {  # the names of its config differ
        "vocab_size": 89,
        "dim": 33,
        "hidden_dim": 41,
        "n_layers": 2,
        "n_heads": 3,
        "max_position_embeddings": 40,
    },
    "roberta-base": {**little(101, 21, 47), **ROBERTA},
    "albert": {**little(83, 33, 51), "embedding_size": 17},
    "deberta-v2": {**little(79, 21, 43), "position_buckets": 8, **DEBERTA},
}
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def first(outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The last hidden state or the logits."""
    return outputs[:1]


def both(outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The last hidden state and the pooler's output."""
    return outputs[:2]


def sentence(outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The first token's state, of length 1: how bge makes a sentence's embedding."""
    return (functional.normalize(outputs[0][:, 0], dim=1),)


HEADS: Mapping[str, Callable[..., tuple[torch.Tensor, ...]]] = {
    "bert-base": both,
    "bge-small": sentence,
}


class Encoder(nn.Module):
    """A transformers model behind positional inputs, in the order of INPUTS."""

    def __init__(self, body: nn.Module, head: Callable[..., Any]) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        named = dict(zip(INPUTS, inputs, strict=False))
        return self.head(self.body(**named, return_dict=False))


def make(name: str, small: bool) -> nn.Module:
    """Token ids, mask and types [batch, sequence] -> hidden states or logits."""
    model, config = CLASSES[name]
    extra: dict[str, Any] = {}
    if model is transformers.BertModel:
        extra["add_pooling_layer"] = name == "bert-base"
    body = model(config(**(SMALL if small else FULL)[name]), **extra)
    return Encoder(body, HEADS.get(name, first))
