"""Archives are read as torch.export.load reads them, and annotations asked for once."""

from __future__ import annotations

import typing
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
import torch

from nanoloom.frontend.torch import archives

READER = import_module(archives.READER)


class Chain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            x = torch.relu(x) + 1
        return x


def test_the_same_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "chain.pt2"
    torch.export.save(torch.export.export(Chain(), (torch.ones(3, 5),)), path)
    asked: Counter[object] = Counter()
    real = typing.get_type_hints

    def counted(cls: object, **others: object) -> dict[str, object]:
        asked[cls] += 1
        return real(cls, **others)  # type: ignore[call-overload] - arguments go on as they came

    monkeypatch.setattr(typing, "get_type_hints", counted)
    loaded = archives.load(path)
    assert isinstance(loaded, torch.export.ExportedProgram)
    assert str(loaded.graph) == str(torch.export.load(path).graph)
    x = torch.tensor([-1.0, 2.0])[:, None].expand(2, 5)[[0, 1, 1]]
    assert torch.equal(loaded.module()(x), Chain()(x))
    assert READER.typing is typing  # as it was
    asked.clear()
    archives.load(path)
    assert asked and max(asked.values()) == 1


def test_another_reader_reads_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "READER", "torch.no_such_module")
    with archives.annotations_once():
        assert READER.typing is typing
