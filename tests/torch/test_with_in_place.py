"""What a graph changes in place is computed there: a KV cache is not copied."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.kernels import in_place
from nanoloom.torch import direct_call
from nanoloom.torch.backend import nanoloom as backend


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


class Attention(nn.Module):
    """Two heads over a cache of a fixed length, whose rows are put at places."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.read = nn.Linear(16, 48)

    def forward(
        self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor,
        at: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        q, k, v = self.read(x).view(1, -1, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind()
        for kept, new in ((keys, k), (values, v)):
            if self.way == "index_copy":
                kept.index_copy_(2, at, new)
            elif self.way == "index_put":
                kept[:, :, at] = new
            else:
                kept.scatter_(2, at[None, None, :, None].expand_as(new), new)
        seen = torch.arange(keys.shape[2]) <= at[:, None]
        scores = (q @ keys.mT).masked_fill(~seen, float("-inf"))
        return scores.softmax(-1) @ values


def cache() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(1, 2, 13, 8), torch.zeros(1, 2, 13, 8)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", ["index_copy", "index_put", "scatter"])
def test_a_cache_stays_where_it_is(
    way: str, threads: int, tmp_path: Path, monkeypatch: Any
) -> None:
    module = Attention(way).eval().requires_grad_(False)
    fast: Any = torch.compile(
        module, backend=backend, dynamic=False, fullgraph=True,
        options={"cache": tmp_path, "threads": threads},
    )  # fmt: skip
    mine, its = cache(), cache()
    made: list[tuple[int, ...]] = []
    new = direct_call.new_tensor

    def counted(shape: Any, *rest: Any) -> torch.Tensor:
        made.append(tuple(shape))
        return new(shape, *rest)

    monkeypatch.setattr(direct_call, "new_tensor", counted)
    with torch.no_grad():
        for step in range(5):
            x, at = torch.randn(1, 1, 16), torch.tensor([step])
            places = [t.data_ptr() for t in its]
            versions = [t._version for t in its]
            a, b = module(x, *mine, at), fast(x, *its, at)
            assert (a - b).abs().max() <= 2e-6
            for one, other in zip(mine, its, strict=True):
                assert (one - other).abs().max() <= 2e-6
            assert places == [t.data_ptr() for t in its]
            assert all(t._version > v for t, v in zip(its, versions, strict=True))
    assert made and set(made) == {(1, 2, 1, 8)}


class Slices(nn.Module):
    """Writes new rows into slices, and slices of slices, of caches."""

    def forward(
        self, x: torch.Tensor, one: torch.Tensor, many: torch.Tensor, at: int
    ) -> torch.Tensor:
        one[:, :, at : at + 2] = x
        for layer in range(2):
            many[layer, :, :, at + layer] = x[:, :, 0] + layer
        many[2:, :, ::2][:, 1:, 1:2, -2] = x.sum()
        return one.sum(-1) + many[1].sum(-1)


def slice_caches() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(2, 3, 9, 4), torch.zeros(3, 2, 3, 9, 4)


@pytest.mark.parametrize("way", ["backend", "module"])
def test_slices_of_caches_are_written_where_they_lie(
    way: str, tmp_path: Path, monkeypatch: Any
) -> None:
    module, settings = Slices().eval(), {"cache": tmp_path, "threads": 1}
    mine, its = slice_caches(), slice_caches()

    def refused(*given: Any) -> Any:
        raise AssertionError("what is not written is copied")

    monkeypatch.setattr(in_place, "copied_last", refused)
    x = torch.randn(2, 3, 2, 4)
    if way == "module":
        fast: Any = nanoloom.compile(module, (x, *slice_caches(), 5), **settings)
    else:
        fast = torch.compile(
            module, backend=backend, dynamic=True, fullgraph=True, options=settings
        )
    with torch.no_grad():
        for at in (5,) if way == "module" else (5, 2, 0):
            x = torch.randn(2, 3, 2, 4)
            wanted, made = module(x, *mine, at), fast(x, *its, at)
            assert (wanted - made).abs().max() <= 4e-6
            for one, other in zip(mine, its, strict=True):
                assert (one - other).abs().max() <= 4e-6


def drawn_slice(draw: random.Random, x: torch.Tensor) -> Any:
    """An index of numbers and slices, of which some are empty or count backwards."""
    found: list[Any] = []
    for size in x.shape[: draw.randint(1, x.dim())]:
        a, b = draw.randint(-size, size - 1), draw.randint(-size - 1, size + 2)
        step = draw.choice([1, 1, 2])
        found.append(draw.choice([a, slice(a, b, step), slice(a, None), slice(None)]))
    return tuple(found)


@pytest.mark.parametrize("seed", range(6))
def test_drawn_slices_of_slices(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    first = drawn_slice(draw, torch.empty(3, 4, 2, 5))
    seen = torch.empty(3, 4, 2, 5)[first]
    second = drawn_slice(draw, seen) if seen.dim() and seen.numel() else ()
    third = drawn_slice(draw, torch.empty(3, 4, 2, 5))

    def changed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x[first][second].add_(y)
        x[third] = y * 2
        return x * y

    options = {"cache": tmp_path, "threads": 1}
    fast: Any = torch.compile(changed, backend=backend, options=options, dynamic=False)
    with torch.no_grad():
        a, y = torch.randn(3, 4, 2, 5), torch.randn(())
        b = a.clone()
        assert torch.equal(changed(a, y), fast(b, y))
        assert torch.equal(a, b)


def exchanged(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    old = a.clone()
    a.copy_(b)
    b.copy_(old)
    a[0] = old[1] * 2
    return old + b


def test_what_is_still_read_is_copied(tmp_path: Path) -> None:
    fast: Any = torch.compile(
        exchanged, backend=backend, options={"cache": tmp_path, "threads": 1}
    )
    with torch.no_grad():
        for _ in range(3):
            a, b = torch.randn(3, 5), torch.randn(3, 5)
            c, d = a.clone(), b.clone()
            assert torch.equal(exchanged(a, b), fast(c, d))
            assert torch.equal(a, c) and torch.equal(b, d)


def test_caches_that_overlap_or_are_strided(tmp_path: Path) -> None:
    module = Attention("index_copy").eval().requires_grad_(False)
    given = torch.randn(1, 1, 16), *cache(), torch.tensor([0])
    program: Any = nanoloom.compile(module, given, cache=tmp_path, threads=1)
    with torch.no_grad():
        program(*given)
        program(*given)
        keys, _ = cache()
        with pytest.raises(nanoloom.Error, match="shares memory"):
            program(given[0], keys, keys, given[3])
        wide = torch.zeros(1, 2, 13, 16)[..., ::2], torch.zeros(1, 2, 8, 13).mT
        mine = cache()
        for at in (torch.tensor([2]), torch.tensor([12])):
            x = torch.randn(1, 1, 16)
            assert (program(x, *wide, at) - module(x, *mine, at)).abs().max() <= 2e-6
            assert (wide[0] - mine[0]).abs().max() <= 2e-6
            assert (wide[1] - mine[1]).abs().max() <= 2e-6


def test_a_saved_program_has_outputs_of_its_own(tmp_path: Path) -> None:
    module = Attention("index_copy").eval().requires_grad_(False)
    keys, values = cache()
    given = torch.randn(1, 1, 16), keys, values, torch.tensor([4])
    program: Any = nanoloom.compile(module, given, cache=tmp_path, threads=1)
    arrays = [t.clone().numpy() for t in given]
    names = [x.name for x in program.program.inputs]
    loaded = nanoloom.load(program.program.save(tmp_path / "attention.so"))
    made = loaded(dict(zip(names, arrays, strict=True)))
    module(*given)
    assert not arrays[1].any() and not arrays[2].any()
    for name, kept in (("keys.new", keys), ("values.new", values)):
        assert abs(made[name] - kept.numpy()).max() <= 2e-6
