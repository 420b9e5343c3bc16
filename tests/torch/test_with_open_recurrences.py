"""Recurrences of any number of steps and rows, in one program of a module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.errors import Unsupported

Dim = torch.export.Dim


class Recurrences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True)
        self.gru, self.rnn = nn.GRU(6, 5), nn.RNN(5, 2, nonlinearity="relu")

    def forward(self, x: Any, hidden: Any) -> Any:
        y, (last, cell) = self.lstm(x)
        turned, end = self.gru(y.transpose(0, 1), hidden)
        return y, last, cell, turned, end, self.rnn(turned)[0]


def given(rows: int, steps: int) -> tuple[Any, Any]:
    return torch.randn(rows, steps, 4), torch.randn(1, rows, 5)


@pytest.mark.parametrize("way", ["named", "auto"])
def test_steps_and_rows_are_open(tmp_path: Path, way: str) -> None:
    torch.manual_seed(1)
    module, auto = Recurrences().eval(), Dim.AUTO
    rows, steps = (Dim("rows"), Dim("steps")) if way == "named" else (auto, auto)
    said: dict[str, Any] = {"dynamic_shapes": ({0: rows, 1: steps}, {1: rows})}
    program = nanoloom.compile(module, given(3, 4), cache=tmp_path, threads=1, **said)
    for sizes in ((3, 4), (1, 1), (2, 7), (5, 2)):
        args = given(*sizes)
        with torch.no_grad():
            wanted = module(*args)
        for one, other in zip(wanted, program(*args), strict=True):
            assert one.shape == other.shape
            assert torch.allclose(one, other, atol=2e-6, rtol=1e-5)


class Projected(nn.Module):
    """States that are projected, in both directions and in one without biases."""

    def __init__(self) -> None:
        super().__init__()
        both = {"bidirectional": True, "batch_first": True}
        self.both = nn.LSTM(4, 5, 2, proj_size=3, **both)
        self.one = nn.LSTM(6, 4, proj_size=2, bias=False)

    def forward(self, x: Any, hidden: Any, cell: Any) -> Any:
        y, (last, _) = self.both(x)
        return last, *self.one(y.transpose(0, 1), (hidden, cell))


def test_projected_states(tmp_path: Path) -> None:
    torch.manual_seed(1)
    module = Projected().eval()

    def given(rows: int, steps: int) -> tuple[Any, ...]:
        each = torch.randn(1, rows, 2), torch.randn(1, rows, 4)
        return torch.randn(rows, steps, 4), *each

    rows = {1: Dim("rows")}
    said: Any = {"dynamic_shapes": ({0: Dim("rows"), 1: Dim("steps")}, rows, rows)}
    program = nanoloom.compile(module, given(3, 4), cache=tmp_path, threads=1, **said)
    for sizes in ((3, 4), (1, 1), (2, 7)):
        args = given(*sizes)
        with torch.no_grad():
            first, second, (hidden, cell) = module(*args)
        made = program(*args)
        wanted = first, second, hidden, cell
        flat = made[0], made[1], *made[2]
        for one, other in zip(wanted, flat, strict=True):
            assert one.shape == other.shape
            assert torch.allclose(one, other, atol=2e-6, rtol=1e-5)


class FixedByPython(nn.Module):
    def forward(self, x: Any) -> Any:
        return sum(x[:, step] for step in range(x.shape[1]))


def test_a_size_that_the_module_fixes_is_refused(tmp_path: Path) -> None:
    said: dict[str, Any] = {"dynamic_shapes": ({1: Dim("steps")},), "cache": tmp_path}
    reason = r"specialized it to be a constant \(3\); give it a fixed size"
    with pytest.raises(Unsupported, match=reason):
        nanoloom.compile(FixedByPython(), (torch.ones(2, 3),), **said)
