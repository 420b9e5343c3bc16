"""Changes in place that only their own result shows, and those that others see."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from onnx.reference import ReferenceEvaluator
from torch import nn  # pyright: ignore[reportMissingImports] - an extra
from torch.export import (  # pyright: ignore[reportMissingImports] - an extra
    ExportedProgram,
    export,
)

import nanoloom
from nanoloom.frontend.torch.exported import import_exported
from nanoloom.frontend.torch.unseen_changes import without_unseen

ROWS = torch.contiguous_format
Step = Callable[[Any, Any], Any]
OWN: list[Step] = [
    lambda x, y: x.relu_(),
    lambda x, y: x.add_(y),
    lambda x, y: x.mul_(0.5),
    lambda x, y: x.clamp_(-0.5, 0.5),
    lambda x, y: nn.functional.silu(x, inplace=True),
    lambda x, y: x - y,
    lambda x, y: x @ y,
]
OTHERS: list[Step] = [
    lambda x, y: x.mul_(x),
    lambda x, y: x.masked_fill_(y > 0.2, 0.3),
    lambda x, y: x[:, 1].neg_(),
    lambda x, y: x.t().sub_(y.t()),
    lambda x, y: x.reshape(25).reshape(5, 5),
    lambda x, y: nn.functional.dropout(x, 0.5, training=False),
    lambda x, y: x.contiguous(),
]


class Drawn(nn.Module):
    """Some steps, most of them on what the one before has made."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def forward(self, given: torch.Tensor) -> Any:
        draw = random.Random(self.seed)
        made = [given + 1, given * 2, given - 3]
        for _ in range(6):
            step = draw.choice(OWN if draw.random() < 0.9 else OTHERS)
            x = made[-1] if draw.random() < 0.9 else draw.choice(made)
            y = draw.choice(made[:2])
            new = step(x, y)
            made.append(new if new.shape == x.shape else x)
        return tuple(x.clone(memory_format=ROWS) for x in (made[0], made[-1]))


def numbers(exported: ExportedProgram, given: torch.Tensor) -> list[Any]:
    model = import_exported(exported).model
    session = ReferenceEvaluator(ir.to_proto(model))
    return [*session.run(None, {str(model.graph.inputs[0].name): given.numpy()})]


@pytest.mark.parametrize("seed", range(24))
def test_the_numbers_are_those_of_torch(seed: int) -> None:
    given = torch.randn(5, 5, generator=torch.Generator().manual_seed(seed))
    module = Drawn(seed)
    found = numbers(export(module, (given.clone(),)), given)
    for one, other in zip(found, module(given.clone()), strict=True):
        torch.testing.assert_close(torch.from_numpy(one.copy()), other)


class Residual(nn.Module):
    """As networks for images are written that save memory."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = nn.functional.relu(self.norm(self.conv(x)), inplace=True)
        made = self.norm(self.conv(made))
        made += x
        return made.relu_()


def test_torch_traces_nothing_again(monkeypatch: Any) -> None:
    torch.manual_seed(0)
    module, given = Residual().eval().requires_grad_(False), torch.randn(2, 3, 6, 5)
    exported = export(module, (given,))
    kept = [str(node.target) for node in exported.graph.nodes]
    monkeypatch.delattr(ExportedProgram, "run_decompositions")
    (found,) = numbers(exported, given)
    torch.testing.assert_close(torch.from_numpy(found), module(given))
    assert [str(node.target) for node in exported.graph.nodes] == kept


def seen_by_a_view(x: torch.Tensor) -> torch.Tensor:
    made = x * 2
    made[:, 0].relu_()
    return made


def seen_by_who_calls(x: torch.Tensor) -> torch.Tensor:
    return x.relu_()


def seen_behind_dropout(x: torch.Tensor) -> torch.Tensor:
    made = x * 2
    same = nn.functional.dropout(made, training=False)
    return same.relu_() + made


def seen_in_another_type(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).half().add_(x)


class Of(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.forward = function


@pytest.mark.parametrize(
    "function",
    [seen_by_a_view, seen_by_who_calls, seen_behind_dropout, seen_in_another_type],
)
def test_what_others_see_is_left_to_torch(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    exported = export(Of(function), (torch.randn(4, 4),))
    assert without_unseen(exported.graph) is None


def test_arguments_keep_their_names() -> None:
    """As those of nn.Sequential are called, a word that Python has as well."""
    module = nn.Sequential(nn.Linear(4, 5), nn.ReLU(inplace=True)).eval()
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    exported = export(module, (x,))
    made = without_unseen(exported.graph)
    assert made is not None
    names = [node.name for node in exported.graph.nodes if node.op != "output"]
    assert [node.name for node in made.nodes if node.op != "output"] == names
    program = nanoloom.compile(module, (x,))
    assert "input [3, 4]" in repr(program)
    torch.testing.assert_close(program(x), module(x))
