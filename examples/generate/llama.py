"""A language model of Llama's shape in PyTorch, with seeded weights, as an ONNX file.

Grouped-query heads, rotary positions, RMS norms and gated feed-forward layers; keys and
values of earlier tokens are inputs, those of all tokens outputs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

Pair = tuple[Tensor, Tensor]
OPSET = 17
EPSILON, BASE = 1e-5, 10000.0


@dataclass(frozen=True)
class Shape:
    """groups: heads of keys and values, each for heads / groups of the queries."""

    layers: int = 4
    width: int = 256
    heads: int = 8
    groups: int = 2
    inner: int = 688
    words: int = 2048

    @property
    def head(self) -> int:
        return self.width // self.heads


class Norm(nn.Module):
    """x over the root of the mean of its squares, times weights."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON) * self.weight


def turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Each pair of numbers turned by its position's angle."""
    half = x.shape[-1] // 2
    other = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cosine + other * sine


class Attention(nn.Module):
    """Queries of new tokens on the keys and values of all."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width, few = shape.width, shape.groups * shape.head
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, few, bias=False)
        self.value = nn.Linear(width, few, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(
        self, x: Tensor, angles: Pair, mask: Tensor, past: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        shape, (batch, count, width) = self.shape, x.shape

        def split(y: Tensor, heads: int) -> Tensor:
            return y.view(batch, count, heads, shape.head).transpose(1, 2)

        query = turned(split(self.query(x), shape.heads), *angles)
        key = turned(split(self.key(x), shape.groups), *angles)
        value = split(self.value(x), shape.groups)
        key, value = torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
        scores = query @ self.shared(key).transpose(2, 3) / math.sqrt(shape.head)
        shares = torch.softmax(scores + mask, -1)
        made = (shares @ self.shared(value)).transpose(1, 2)
        return self.out(made.reshape(batch, count, width)), key, value

    def shared(self, x: Tensor) -> Tensor:
        """Keys or values of groups, for each head."""
        batch, groups, length, head = x.shape
        times = self.shape.heads // groups
        wide = x[:, :, None].expand(batch, groups, times, length, head)
        return wide.reshape(batch, self.shape.heads, length, head)


class Layer(nn.Module):
    """Attention and a gated feed-forward layer, each behind a norm and added."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.before, self.between = Norm(shape.width), Norm(shape.width)
        self.attention = Attention(shape)
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(
        self, x: Tensor, angles: Pair, mask: Tensor, past: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        made, key, value = self.attention(self.before(x), angles, mask, past)
        x = x + made
        y = self.between(x)
        gated = nn.functional.silu(self.gate(y)) * self.up(y)
        return x + self.down(gated), key, value


class Llama(nn.Module):
    """ids [batch, count], keys and values of each layer -> logits, the same again."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.words = nn.Embedding(shape.words, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.last = Norm(shape.width)
        self.head = nn.Linear(shape.width, shape.words, bias=False)
        steps = torch.arange(0, shape.head, 2) / shape.head
        self.register_buffer("speeds", BASE**-steps)

    def forward(self, ids: Tensor, *past: Tensor):
        before, count = past[0].shape[2], ids.shape[1]
        places = torch.arange(before, before + count)
        turns = places[:, None] * self.speeds[None]  # type: ignore[index] - a buffer
        turns = torch.cat((turns, turns), -1)
        angles = turns.cos(), turns.sin()
        seen = torch.arange(before + count)[None] <= places[:, None]
        mask = torch.where(seen, 0.0, -1e9)
        x, kept = self.words(ids), []
        for number, layer in enumerate(self.layers):
            pair = past[2 * number : 2 * number + 2]
            x, key, value = layer(x, angles, mask, pair)
            kept += [key, value]
        return self.head(self.last(x)), *kept


def export(shape: Shape, path: Path, seed: int = 0) -> Path:
    """Write the model with weights of this seed."""
    torch.manual_seed(seed)
    model = Llama(shape).eval()
    ids = torch.zeros((2, 3), dtype=torch.int64)
    past = [torch.zeros(2, shape.groups, 5, shape.head)] * 2 * shape.layers
    parts = [f"{i}.{word}" for i in range(shape.layers) for word in ("key", "value")]
    kept = [f"past_key_values.{part}" for part in parts]
    made = [f"present.{part}" for part in parts]
    batch = {0: "batch", 1: "sequence"}
    axes = {"input_ids": batch, "logits": batch}
    axes |= {name: {0: "batch", 2: "past"} for name in kept}
    axes |= {name: {0: "batch", 2: "past + sequence"} for name in made}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of an exporter that is old
        torch.onnx.export(
            model,
            (ids, *past),
            str(path),
            input_names=["input_ids", *kept],
            output_names=["logits", *made],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    return path
