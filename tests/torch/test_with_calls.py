"""Calls with tensors' own memory: the second call of a shape looks at little else."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]

import nanoloom
from nanoloom.errors import InputError, InternalError
from nanoloom.torch import graph_program, torch_program
from nanoloom.torch.backend import nanoloom as backend
from nanoloom.torch.memory import overlap
from tests.torch import models


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def close(a: Any, b: Any) -> bool:
    return a.shape == b.shape and bool((a - b).abs().max() <= 2e-5)


@pytest.fixture
def no_arrays(monkeypatch: pytest.MonkeyPatch) -> Any:
    """From when it is called on, no tensor may become an array of numpy."""

    def refuse(*_: object) -> None:
        raise AssertionError("a call went through arrays")

    def begin() -> None:
        for module in (graph_program, torch_program):
            monkeypatch.setattr(module, "numpy_view", refuse)

    return begin


@pytest.mark.parametrize("way", ["module", "backend"])
def test_later_calls_of_several_sizes_are_direct(
    way: str, tmp_path: Path, no_arrays: Any
) -> None:
    module = models.mlp()
    x, said = torch.randn(4, 5), {"dynamic_shapes": ({0: torch.export.Dim("n")},)}
    options = {"cache": tmp_path, "threads": 1}
    fast: Any = (
        nanoloom.compile(module, (x,), **said, **options)
        if way == "module"
        else torch.compile(module, backend=backend, options=options, dynamic=True)
    )
    with torch.no_grad():
        for rows in (2, 3, 7):
            fast(torch.randn(rows, 5))
        no_arrays()
        for rows in (3, 2, 2, 7, 3):
            x = torch.randn(rows, 5)
            assert close(fast(x), module(x))
        with pytest.raises((AssertionError, InternalError)):  # of a size that is new
            fast(torch.randn(5, 5))


@pytest.mark.parametrize("way", ["module", "backend"])
def test_later_calls_take_memory_as_it_is(
    way: str, tmp_path: Path, no_arrays: Any
) -> None:
    module = models.mlp()
    fast: Any = (
        nanoloom.compile(module, (torch.randn(4, 5),), cache=tmp_path, threads=1)
        if way == "module"
        else torch.compile(
            module, backend=backend, options={"cache": tmp_path, "threads": 1}
        )
    )
    with torch.no_grad():
        fast(torch.randn(4, 5))
        no_arrays()
        for _ in range(3):
            x = torch.randn(4, 5)
            assert close(fast(x), module(x))


def test_strides_types_and_views_that_are_not_plain(tmp_path: Path) -> None:
    module = models.mlp()
    program = nanoloom.compile(
        module, (torch.randn(4, 5),), cache=tmp_path, threads=1
    )  # fmt: skip
    with torch.no_grad():
        for x in (
            torch.randn(4, 5),
            torch.randn(5, 4).t(),
            torch.randn(8, 5)[::2],
            torch.randn(1, 5).expand(4, 5),
            torch._neg_view(torch.randn(4, 5)),
            torch.view_as_complex(torch.randn(4, 5, 2)).conj().imag,
        ):
            assert close(program(x), module(x))
        for wrong in (torch.randn(4, 5).double(), torch.randn(4, 6), [1.0], 3):
            with pytest.raises(InputError):
                program(wrong)
        with pytest.raises(nanoloom.Error):
            program(torch.randn(4, 5, device="meta"))


class Sizes(nn.Module):
    """Results of all kinds: new, a number, an argument, a constant."""

    def forward(self, x: Any, y: Any) -> Any:
        return x * 2, x.shape[0] + 1, y, 7


def test_results_that_are_no_new_tensors(tmp_path: Path) -> None:
    x, y = torch.randn(3, 2), torch.randn(4)
    shapes = {"x": {0: torch.export.Dim("n")}, "y": None}
    program = nanoloom.compile(
        Sizes(), (x, y), dynamic_shapes=shapes, cache=tmp_path, threads=1
    )
    for rows in (3, 3, 5, 5, 3):
        x = torch.randn(rows, 2)
        doubled, number, same, constant = program(x, y)
        assert torch.equal(doubled, x * 2)
        assert (number, constant) == (rows + 1, 7)
        assert same is y


def test_an_index_out_of_range_writes_nothing(tmp_path: Path) -> None:
    module = models.Cache().eval()
    options = {"cache": tmp_path, "threads": 1}
    fast = torch.compile(module, backend=backend, options=options)
    with torch.no_grad():
        for _ in range(2):
            fast(torch.randn(2, 4), torch.tensor([1, 2]))
        before = module.keys.clone()
        with pytest.raises(InputError, match=r"8 is outside"):
            fast(torch.randn(2, 4), torch.tensor([3, 8]))
    assert torch.equal(module.keys, before)


class Shift(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        x.add_(y)
        return x * 2


def test_what_is_changed_shares_no_memory(tmp_path: Path) -> None:
    block = torch.randn(8)
    program = nanoloom.compile(
        Shift(), (torch.randn(4), torch.randn(4)), cache=tmp_path, threads=1
    )
    for _ in range(2):
        x, y = torch.randn(4), torch.randn(4)
        wanted = x + y
        assert torch.equal(program(x, y), wanted * 2)
        assert torch.equal(x, wanted)
    with pytest.raises(InputError, match="shares memory with"):
        program(block[:4], block[3:7])
    program(block[:4], block[4:])


def test_overlaps_of_drawn_spans() -> None:
    drawn = random.Random(5)
    found: set[bool] = set()
    for _ in range(2000):
        spans = [(a, a + drawn.randint(0, 3)) for a in drawn.choices(range(20), k=4)]
        changed, read = spans[: drawn.randint(0, 4)], spans
        read = read[len(changed) :]
        bytes_of = [set(range(*s)) for s in spans]
        wanted = any(
            bytes_of[i] & bytes_of[k]
            for i in range(len(changed))
            for k in range(len(spans))
            if i != k
        )
        assert overlap(changed, read) == wanted
        found.add(wanted)
    assert found == {False, True}


class Turned(nn.Module):
    """A convolution of images, and a product with a matrix that comes turned."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, 2, 1)

    def forward(self, x: Any, y: Any) -> Any:
        return torch.relu(self.conv(x)), y @ y.t() + 1, y.t()[:1] * 2


@pytest.mark.parametrize("way", ["module", "backend"])
def test_channels_last_and_turned_matrices_are_no_copies(
    way: str, tmp_path: Path, no_arrays: Any
) -> None:
    module = Turned().eval().to(memory_format=torch.channels_last)

    def given() -> tuple[Any, Any]:
        x = torch.randn(2, 3, 9, 7).to(memory_format=torch.channels_last)
        return x, torch.randn(5, 4).t()

    options = {"cache": tmp_path, "threads": 1}
    fast: Any = (
        nanoloom.compile(module, given(), **options)
        if way == "module"
        else torch.compile(module, backend=backend, options=options)
    )
    with torch.no_grad():
        plain = [x.contiguous() for x in given()]
        for args in (given(), plain):
            if way == "module" or args is not plain:
                for found, wanted in zip(fast(*args), module(*args), strict=True):
                    assert close(found, wanted)
        fast(*given())
        no_arrays()
        x, y = given()
        for found, wanted in zip(fast(x, y), module(x, y), strict=True):
            assert close(found, wanted)
            assert found.stride() == wanted.stride()
