"""Keys and values whose lengths torch.export takes for sizes of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom

WIDTH = 8


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Any, key: Any, value: Any) -> Any:
        query, *new = (part(x)[:, None] for part in self.parts)
        key, value = (
            torch.cat(pair, 2) for pair in zip((key, value), new, strict=True)
        )
        made = nn.functional.scaled_dot_product_attention(query, key, value)
        return made[:, 0], (key, value)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x: Any, past: Any) -> Any:
        present: list[Any] = []
        for layer, pair in zip(self.layers, past, strict=True):
            x, pair = layer(x, *pair)
            present.append(pair)
        return x, present


def drawn(batch: int, past: int, new: int) -> tuple[Any, Any]:
    def cache() -> Any:
        return torch.randn(batch, 1, past, WIDTH)

    return torch.randn(batch, new, WIDTH), [(cache(), cache()) for _ in range(3)]


def flat(made: Any) -> list[Any]:
    return [made[0], *(x for pair in made[1] for x in pair)]


def test_one_program_for_caches_that_grow(tmp_path: Path) -> None:
    torch.manual_seed(3)
    module, own = Decoder().eval(), torch.export.Dim.DYNAMIC
    axes = {0: own, 1: own}, [({0: own, 2: own},) * 2] * 3
    exported = torch.export.export(module, drawn(2, 5, 3), dynamic_shapes=axes)
    program = nanoloom.compile(exported, cache=tmp_path, threads=1)
    for sizes in ((2, 5, 1), (2, 6, 1), (3, 4, 2), (1, 9, 9)):
        args = drawn(*sizes)
        with torch.no_grad():
            wanted = module(*args)
        for one, other in zip(flat(wanted), flat(program(*args)), strict=True):
            assert one.shape == other.shape
            assert torch.allclose(one, other, atol=4e-6, rtol=1e-5)
    assert program.program.open.reason == ""
