"""Conditions and loops: graphs inside of a graph of torch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]
from torch._higher_order_ops import (  # pyright: ignore[reportMissingImports]
    map as torch_map,
)
from torch._higher_order_ops import (  # pyright: ignore[reportMissingImports]
    scan,
    while_loop,
)

import nanoloom
from nanoloom.errors import ModelWarning
from nanoloom.torch.backend import nanoloom as backend

ROWS = torch.export.Dim("rows")


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


class Choice(nn.Module):
    """A condition in a condition, with weights in its branches; a loop behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any, n: Any) -> Any:
        def inner(y: Any) -> Any:
            return torch.cond(y.sum() > 4, torch.tanh, lambda z: z.clone(), (y,))

        y = torch.cond(
            x.mean() > 0, self.a, lambda z: inner(torch.relu(self.b(z)) + 1), (x,)
        )
        zero = torch.zeros((), dtype=torch.int64)
        return while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, y * 0.5 + i), (zero, y)
        )


class Sums(nn.Module):
    """A recurrence from the last row to the first, of a state and rows of results."""

    def forward(self, x: Any, h: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            state = torch.tanh(state + row)
            return state, (state * 2, row.sum(-1))

        return scan(step, h, x, dim=0, reverse=True)


def same(found: Any, wanted: Any) -> bool:
    leaves = torch.utils._pytree.tree_leaves
    return all(
        a.shape == b.shape and torch.allclose(a, b, atol=1e-5)
        for a, b in zip(leaves(found), leaves(wanted), strict=True)
    )


def test_conditions_and_loops(tmp_path: Path) -> None:
    module, example = Choice().eval(), (torch.randn(3, 4), torch.tensor(5))
    program = nanoloom.compile(
        module, example, dynamic_shapes=({0: ROWS}, None), cache=tmp_path, threads=1
    )
    taken: set[bool] = set()
    with torch.no_grad():
        for rows, trips in ((3, 0), (1, 1), (5, 4), (2, 7), (1, 2)):
            for sign in (-1, 1):
                x, n = torch.rand(rows, 4) * sign * rows, torch.tensor(trips)
                assert same(program(x, n), module(x, n))
                taken.add(bool(x.mean() > 0))
    assert taken == {False, True}


def test_a_scan(tmp_path: Path) -> None:
    module, x, h = Sums(), torch.randn(6, 3, 4), torch.randn(3, 4)
    program = nanoloom.compile(module, (x, h), cache=tmp_path, threads=1)
    assert same(program(x, h), module(x, h))
    assert not same(program(x, h + 1), module(x, h))


class Mixed(nn.Module):
    def forward(self, x: Any) -> Any:
        y = torch.cond(x.sum() > 0, torch.tanh, torch.relu, (x,))
        return y * torch.linalg.eigvals(x).abs().sum()


def test_with_torch_compile(tmp_path: Path) -> None:
    options = {"cache": tmp_path, "threads": 1}
    module, x = Choice().eval(), torch.randn(3, 4)
    n = torch.tensor(3)
    fast = torch.compile(module, backend=backend, fullgraph=True, options=options)
    with torch.no_grad():
        assert same(fast(x, n), module(x, n))
        mixed = torch.compile(Mixed(), backend=backend, options=options)
        with pytest.warns(ModelWarning, match="has a graph inside"):
            made = mixed(x[:, :3])
        assert torch.allclose(made, Mixed()(x[:, :3]), rtol=1e-4)


class Parts(nn.Module):
    """Sizes that data decide, with all that torch has to be told of them."""

    def forward(self, x: Any, sizes: Any) -> Any:
        a, b = sizes.tolist()
        torch._check(a + b == x.size(0))
        one, other = x.split([a, b])
        return torch.cat([one * 2, other + 1])


def test_conditions_that_are_only_asserted(tmp_path: Path) -> None:
    x = torch.randn(7, 4)
    exported = torch.export.export(Parts(), (x, torch.tensor([3, 4])))
    program = nanoloom.compile(exported, cache=tmp_path, threads=1)
    for first in (0, 3, 7):
        sizes = torch.tensor([first, 7 - first])
        assert same(program(x, sizes), Parts()(x, sizes))


class BySizes(nn.Module):
    def forward(self, x: Any) -> Any:
        rows, columns = x.shape
        tall = torch.cond(rows > columns, torch.sin, torch.cos, (x,))
        half = torch.cond(rows / 2 <= 1.5, torch.relu, torch.neg, (x,))
        even = torch.cond(torch.sym_not(rows % 2 == 0), torch.tanh, torch.abs, (x,))
        return tall, half, even


def test_conditions_of_sizes(tmp_path: Path) -> None:
    open_sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    exported = torch.export.export(
        BySizes(), (torch.randn(5, 4),), dynamic_shapes=(open_sizes,)
    )
    program = nanoloom.compile(exported, cache=tmp_path, threads=1)
    options = {"cache": tmp_path, "threads": 1}
    fast = torch.compile(
        BySizes(), backend=backend, dynamic=True, fullgraph=True, options=options
    )
    for rows, columns in ((5, 4), (2, 7), (4, 4), (3, 2)):
        x = torch.randn(rows, columns)
        for run in (program, fast):
            with torch.no_grad():
                assert all(map(same, run(x), BySizes()(x)))


class ByNumbers(nn.Module):
    def __init__(self, decides: Any) -> None:
        super().__init__()
        self.decides = decides

    def forward(self, x: Any, n: Any) -> Any:
        return torch.cond(self.decides(x, n), torch.sin, torch.cos, (x,))


@pytest.mark.parametrize(
    "decides",
    [
        lambda x, n: n.item() >= 3,
        lambda x, n: n.item() != 2,
        lambda x, n: n.item() > 1.5,
        lambda x, n: torch.sym_not(n.item() * 2 > x.shape[0]),
        lambda x, n: x.sum().item() > 0,
        lambda x, n: x.sum().item() < n.item(),
    ],
)
def test_conditions_of_numbers_in_data(decides: Any, tmp_path: Path) -> None:
    x, module = torch.randn(3, 4), ByNumbers(decides)
    exported = torch.export.export(
        module, (x, torch.tensor(3)), dynamic_shapes=({0: ROWS}, None)
    )
    program = nanoloom.compile(exported, cache=tmp_path, threads=1)
    for rows, n in ((3, -1), (1, 2), (5, 3), (4, 4)):
        x, number = torch.randn(rows, 4), torch.tensor(n)
        assert same(program(x, number), module(x, number))


class Divided(nn.Module):
    """Sizes and factors that are quotients of a number in data."""

    def forward(self, x: Any, table: Any) -> Any:
        top = x.max().item()
        torch._check(top >= 0)
        torch._check(top < 40)
        rows = table[: (top + 4) // 4].reshape(-1)
        real = (top - 20) * 0.37
        return (
            rows,
            x * ((top - 20) // 3),
            x * ((top - 20) // -3),
            x
            * (torch.stack([x * math.floor(real), x * math.ceil(real)]))
            * math.trunc(real),
        )


def test_numbers_in_data_are_divided_as_python_divides(tmp_path: Path) -> None:
    table, module = torch.randn(10, 3), Divided()
    dims = ({0: torch.export.Dim.AUTO}, None)
    exported = torch.export.export(
        module, (torch.arange(5), table), dynamic_shapes=dims
    )
    program = nanoloom.compile(exported, cache=tmp_path, threads=1)
    for count in (1, 5, 19, 22, 40):
        x = torch.arange(count)
        for made, wanted in zip(program(x, table), module(x, table), strict=True):
            assert torch.equal(made, wanted)


class OfEach(nn.Module):
    def forward(self, x: Any, b: Any, factor: float) -> Any:
        rows = torch_map(lambda row, bias: (row.cumsum(0) + bias, row.sum()), x, b)
        return *rows, x.clamp(-factor * 2, factor / 2) * (factor + 1)


def test_a_map_and_numbers_computed_of_arguments(tmp_path: Path) -> None:
    options = {"cache": tmp_path, "threads": 1}
    fast = torch.compile(
        OfEach(), backend=backend, dynamic=True, fullgraph=True, options=options
    )
    for rows, factor in ((3, 0.75), (5, 1.5), (2, 0.1)):
        x, b = torch.randn(rows, 4), torch.randn(4)
        with torch.no_grad():
            assert all(map(same, fast(x, b, factor), OfEach()(x, b, factor)))
