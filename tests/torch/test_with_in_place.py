"""What a graph changes in place is computed there: a KV cache is not copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
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
