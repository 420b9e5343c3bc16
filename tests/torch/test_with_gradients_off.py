"""What Dynamo's graphs do while gradients are off in them, and in training mode."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra
from torch.utils.checkpoint import (  # pyright: ignore[reportMissingImports]
    checkpoint,
)

import nanoloom
from nanoloom.errors import ModelWarning, Unsupported
from nanoloom.torch.backend import nanoloom as backend


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        yield
    torch._dynamo.reset()


def compiled(run: Any, folder: Path) -> Any:
    options = {"cache": folder, "threads": 1}
    return torch.compile(run, backend=backend, fullgraph=True, options=options)


class Inside(nn.Module):
    """Its weights ask for gradients, and no result does."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.layer = kind, nn.Linear(4, 4)

    @torch.no_grad()
    def without(self, x: Any) -> Any:
        return self.layer(x)

    def forward(self, x: Any) -> Any:
        if self.kind == "decorated":
            return self.without(x) * 2
        if self.kind == "detached":
            return self.layer(x).detach() + 1
        if self.kind == "compared":
            return self.layer(x) > 0
        with torch.no_grad():
            made = self.layer(x)
            if self.kind == "changed":
                x.add_(made)
        return (made, x[1:]) if self.kind == "view" else made.relu()


@pytest.mark.parametrize(
    "kind", ["decorated", "detached", "compared", "changed", "view", "around"]
)
def test_a_module_that_turns_gradients_off_itself(kind: str, tmp_path: Path) -> None:
    module = Inside(kind)
    fast, twin = compiled(module, tmp_path), copy.deepcopy(module)
    for rows in (3, 2):
        x = torch.randn(rows, 4)
        own = x.clone()
        made, wanted = fast(x), twin(own)
        for ours, theirs in zip(pair(made), pair(wanted), strict=True):
            assert torch.allclose(ours.float(), theirs.float(), atol=1e-5)
            assert ours.requires_grad == theirs.requires_grad
        assert torch.allclose(x, own, atol=1e-5)


def pair(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


def test_what_is_computed_behind_it_is_refused(tmp_path: Path) -> None:
    layer = nn.Linear(4, 4)

    def run(x: Any) -> Any:
        with torch.no_grad():
            y = layer(x)
        return layer(y)

    with pytest.raises(Exception, match="the graph would be trained"):
        compiled(run, tmp_path)(torch.randn(2, 4))


class Kept(nn.Module):
    """Statistics as a module keeps them that does not count its batches."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("variance", torch.ones(3))

    def forward(self, x: Any) -> Any:
        norm: Any = getattr(nn.functional, self.kind)
        return norm(x, self.mean, self.variance, None, None, True, 0.3)


@pytest.mark.parametrize("kind", ["batch_norm", "instance_norm"])
def test_statistics_of_batches_are_kept(kind: str, tmp_path: Path) -> None:
    module = Kept(kind)
    fast, twin = compiled(module, tmp_path), copy.deepcopy(module)
    for rows in (4, 2):
        x = torch.randn(rows, 3, 5) + 1
        assert torch.allclose(fast(x), twin(x), atol=1e-5)
        for ours, theirs in zip(module.buffers(), twin.buffers(), strict=True):
            assert torch.allclose(ours, theirs, atol=1e-6)


def test_an_exported_module_does_not_drop_them() -> None:
    """torch leaves instance_norm whole, and its statistics as they were."""
    x = torch.randn(4, 3, 5)
    module = nn.InstanceNorm1d(3, track_running_stats=True)
    with pytest.raises(Unsupported, match=r"changes the statistics.*module\.eval\(\)"):
        nanoloom.compile(module, (x,))
    with torch.no_grad():
        made = nanoloom.compile(module.eval(), (x,))(x)
        assert torch.allclose(made, module(x), atol=1e-5)


def of_functions(kind: str) -> Any:
    layer = nn.Linear(3, 3)
    if kind == "checkpoint":
        return lambda x: checkpoint(layer, x, use_reentrant=False)
    if kind == "jvp":
        return lambda x: torch.func.jvp(lambda y: (y.exp() * 2).tanh(), (x,), (x,))
    return lambda x: torch.func.hessian(lambda y: (y**3).sum())(x)


@pytest.mark.parametrize("kind", ["checkpoint", "jvp", "hessian"])
def test_what_a_trace_before_autograd_has_not(kind: str, tmp_path: Path) -> None:
    run = of_functions(kind)
    fast = compiled(run, tmp_path)
    with torch.no_grad():
        for rows in (3, 2):
            x = torch.randn(rows, 3)
            for ours, theirs in zip(pair(fast(x)), pair(run(x)), strict=True):
                assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_sum_of_numbers_that_are_given(tmp_path: Path) -> None:
    fast = compiled(lambda x, each: x * sum(each), tmp_path)
    x = torch.randn(3)
    for each in ([1, 2], [3, 4], [7, -9]):
        assert torch.equal(fast(x, each), x * sum(each))


@pytest.mark.parametrize("norm_first", [False, True])
def test_torchs_fused_layer_of_an_encoder(norm_first: bool, tmp_path: Path) -> None:
    """It asks for attention, which a release of torch says draws numbers."""
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, activation="gelu", batch_first=True, norm_first=norm_first
    ).eval()
    fast = compiled(layer, tmp_path)
    with torch.no_grad():
        for length in (4, 3):
            x, unseen = torch.randn(2, length, 8), torch.arange(length) > 2
            given = {"src_key_padding_mask": unseen.expand(2, -1)}
            assert torch.allclose(fast(x, **given), layer(x, **given), atol=1e-5)
