"""Elements by strides and what is put at places, of tensors that lie in any way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch.nn import functional as F  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.errors import ModelWarning, Unsupported
from nanoloom.torch.backend import nanoloom as backend

Function = Callable[..., Sequence[torch.Tensor]]


def require_same(
    function: Function,
    calls: Sequence[Sequence[torch.Tensor]],
    folder: Path,
    **said: Any,
) -> None:
    """In the whole program, without a part that stays with torch."""
    torch._dynamo.reset()
    options = {"cache": folder, "threads": 1}
    fast: Any = torch.compile(
        function, backend=backend, options=options, fullgraph=True, **said
    )
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        for args in calls:
            pairs = zip(function(*args), fast(*args), strict=True)
            for number, (wanted, made) in enumerate(pairs):
                assert wanted.dtype == made.dtype and wanted.shape == made.shape
                assert torch.allclose(wanted, made, atol=1e-6, equal_nan=True), number


def by_strides(x: torch.Tensor) -> list[torch.Tensor]:
    turned = (x * 2).T
    return [
        turned.diagonal(1) + 0, turned.as_strided((2, 3), (1, 2), 1) + 0,
        x.T.diagonal(-1) + 0, torch.trace(x), turned.unfold(0, 2, 1) + 0,
        torch.diagonal_scatter(turned, torch.zeros(5), 1),
    ]  # fmt: skip


@pytest.mark.parametrize("dynamic", [False, True])
def test_strides_are_those_of_torch(dynamic: bool, tmp_path: Path) -> None:
    x = torch.arange(40.0).reshape(8, 5)
    ways = [x[:6], x[:6].mT.contiguous().mT, x[1:7]]
    require_same(by_strides, [(way,) for way in ways], tmp_path, dynamic=dynamic)


def at_places(x: torch.Tensor, at: torch.Tensor) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    floats = x.is_floating_point()
    for reduce in ("sum", "mean", "amax") if floats else ("prod", "mean", "amin"):
        for own in (False, True):
            found.append(x.scatter_reduce(1, at, x * 2, reduce, include_self=own))
            if reduce != "sum":
                y = x.index_reduce(0, at[0, :2], x[1:3] * 2, reduce, include_self=own)
                found.append(y)
    return found


@pytest.mark.parametrize("kind", [torch.float32, torch.int32])
def test_what_is_put_takes_the_place_of_what_was_there(
    kind: Any, tmp_path: Path
) -> None:
    torch.manual_seed(3)
    x = torch.randint(-9, 9, (4, 5)).to(kind)
    at = torch.randint(0, 4, (4, 5))
    require_same(at_places, [(x, at)], tmp_path, dynamic=False)


def of_conditions(x: torch.Tensor, at: torch.Tensor) -> list[torch.Tensor]:
    given = [(reduce, own) for reduce in ("amax", "amin") for own in (False, True)]
    return [
        x.scatter_reduce(1, at, ~x, reduce, include_self=own) for reduce, own in given
    ]


def test_conditions_are_put_where_any_or_all_hold(tmp_path: Path) -> None:
    torch.manual_seed(3)
    x, at = torch.rand(4, 5) > 0.5, torch.randint(0, 4, (4, 5))
    require_same(of_conditions, [(x, at)], tmp_path, dynamic=False)


def between(start: torch.Tensor, end: torch.Tensor) -> list[torch.Tensor]:
    return [
        torch.linspace(*each, 9, dtype=kind)
        for kind in (torch.int64, torch.uint8, torch.float32)
        for each in ((start, end), (4.3, end), (start, 11.9))
    ]


def test_steps_of_integers_are_between_integers(tmp_path: Path) -> None:
    pairs = [(4.3, 1.0), (0.6, 9.9), (7.0, 2.5)]
    given = [tuple(map(torch.tensor, each)) for each in pairs]
    require_same(between, given, tmp_path, dynamic=False)


def of_factors(x: torch.Tensor) -> list[torch.Tensor]:
    return [
        F.interpolate(x, scale_factor=0.5, mode="nearest-exact"),
        F.interpolate(x, scale_factor=1.5, mode="bilinear"),
        F.scaled_dot_product_attention(x.double(), x.double(), x.double()).float(),
        F.adaptive_max_pool2d(x, 1), x.flatten(1).logcumsumexp(0),
        torch.fmax(x, x.flip(0).log()), torch.fmin(x.log(), x.flip(0)),
    ]  # fmt: skip


def test_open_sizes_times_factors(tmp_path: Path) -> None:
    torch.manual_seed(3)
    calls = [(torch.randn(2, 3, *size),) for size in ((6, 8), (5, 4))]
    require_same(of_factors, calls, tmp_path, dynamic=True)


class Last(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.narrow(0, -2, 2) * 2 + x.narrow(0, -3, 2)


def test_a_negative_start_counts_from_the_end(tmp_path: Path) -> None:
    shapes = ({0: torch.export.Dim("rows", min=3)},)
    x = torch.arange(20.0).reshape(5, 4)
    said = {"dynamic_shapes": shapes, "cache": tmp_path, "threads": 1}
    program = nanoloom.compile(Last(), (x,), **said)
    for rows in (5, 3):
        assert torch.equal(program(x[:rows]), Last()(x[:rows]))


class SoFar(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return *x.cummax(0), *x.cummin(1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_the_largest_so_far_along_open_axes(dtype: torch.dtype, tmp_path: Path) -> None:
    """Of equal ones the last; NaN above all; also of nothing."""
    own = torch.export.Dim.DYNAMIC
    module, drawn = SoFar().eval(), torch.Generator().manual_seed(5)
    said = {"dynamic_shapes": ({0: own, 1: own},), "cache": tmp_path, "threads": 1}
    x = torch.randint(-3, 4, (19, 8), generator=drawn).to(dtype)
    program = nanoloom.compile(module, (x,), **said)
    if dtype.is_floating_point:
        x[3, 1], x[5, 1], x[1, 0] = float("nan"), float("nan"), float("-inf")
    for rows, columns in ((19, 8), (1, 1), (6, 2), (0, 3)):
        given = x[:rows, :columns].contiguous()
        for one, other in zip(module(given), program(given), strict=True):
            assert one.dtype == other.dtype
            assert torch.equal(one.nan_to_num(99), other.nan_to_num(99))
    assert program.program.open.reason == ""


class Singular(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svdvals(x)


def test_a_refusal_of_a_rule_says_why() -> None:
    own = torch.export.Dim.DYNAMIC
    program = torch.export.export(
        Singular(), (torch.zeros(3, 4),), dynamic_shapes=({0: own, 1: own},)
    )
    with pytest.raises(Unsupported, match="is of matrices of an open size"):
        nanoloom.compile(program)


def test_places_where_a_condition_holds(tmp_path: Path) -> None:
    """`torch.where` of a condition alone."""

    class Sums(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows, columns = torch.where(x > 0)
            return x[rows, columns].sum() + (rows * 10 + columns).sum()

    module, x = Sums().eval(), torch.arange(-6.0, 6.0).reshape(3, 4)
    program = nanoloom.compile(module, (x,), cache=tmp_path, threads=1)
    for given in (x, -x, torch.zeros(3, 4), torch.ones(3, 4)):
        assert program(given) == module(given)


class Selected(torch.nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return (
            torch.masked_select(x, y > 0),
            y.permute(2, 0, 1),
            torch.ops.aten.numpy_T(y),
        )


def test_selected_turned_and_put(tmp_path: Path) -> None:
    """.T turns all axes, as numpy does: sizes that are equal hide other orders."""
    x, y = torch.randn(4), torch.randn(2, 4, 4)
    program = nanoloom.compile(Selected().eval(), (x, y), cache=tmp_path, threads=1)
    pairs = zip(Selected()(x, y), program(x, y), strict=True)
    assert all(torch.equal(*each) for each in pairs)
