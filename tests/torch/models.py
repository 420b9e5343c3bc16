"""Small modules of every kind that people compile, with seeded weights."""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]

F = nn.functional
HEADS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 48, "vocab_size": 50}  # fmt: skip


def mlp() -> Any:
    parts = nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 3), nn.Softmax(-1)
    return nn.Sequential(*parts).eval()


class Residual(nn.Module):
    """Convolutions with batch norms, ReLU in place, a pool, a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)])
        self.second = nn.Conv2d(8, 8, 3, 1, 1)
        self.last = nn.Linear(8, 5)
        self.relu = nn.ReLU(inplace=True)
        for norm in self.norms:
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(self.relu(self.norms[0](self.first(x))), 3, 2, 1)
        x = x + self.relu(self.norms[1](self.second(x)))
        return self.last(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(16, 4)

    def forward(self, x: Any) -> Any:
        y, (h, c) = self.lstm(x)
        z, last = self.gru(y)
        return z, h, c, last


class Encoder(nn.Module):
    """An encoder of torch's own, with padding that is not looked at."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Any, padding: Any) -> Any:
        return self.layers(x, src_key_padding_mask=padding)


class Cache(nn.Module):
    """Keys that are kept from call to call, in a buffer that is written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(4, 4)
        self.register_buffer("keys", torch.zeros(8, 4))

    def forward(self, x: Any, position: Any) -> Any:
        self.keys[position] = self.project(x)
        return F.relu(x @ self.keys.t())


class Texts(nn.Module):
    """A model of transformers, of ids and a mask alone."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.model = of_transformers(kind)

    def forward(self, ids: Any, mask: Any) -> Any:
        return self.model(input_ids=ids, attention_mask=mask, use_cache=False)[0]


def of_transformers(kind: str) -> Any:
    import transformers  # pyright: ignore[reportMissingImports]

    if kind == "bert":
        config = transformers.BertConfig(**HEADS, max_position_embeddings=64)
        return transformers.BertModel(config)
    if kind == "llama":
        config = transformers.LlamaConfig(
            **HEADS, num_key_value_heads=2, max_position_embeddings=64,
            tie_word_embeddings=True,
        )  # fmt: skip
        return transformers.LlamaForCausalLM(config)
    config = transformers.GPT2Config(
        vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=64,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def text_inputs(batch: int, length: int) -> tuple[Any, Any]:
    random = torch.Generator().manual_seed(length)
    ids = torch.randint(0, 50, (batch, length), generator=random)
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, : length // 3] = 0
    return ids, mask


def padded_rows(batch: int, length: int) -> tuple[Any, Any]:
    random = torch.Generator().manual_seed(length)
    padding = torch.zeros(batch, length, dtype=torch.bool)
    padding[0, length - length // 3 :] = True
    return torch.randn(batch, length, 16, generator=random), padding
