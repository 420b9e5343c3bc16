"""Checks that torch keeps in order by tokens: graphs with them are whole programs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.errors import ModelWarning
from nanoloom.frontend.torch.effect_tokens import checks
from nanoloom.torch.backend import nanoloom as backend
from tests.torch.rounding import require_close

EPS = float(torch.finfo(torch.float32).eps)


class Systems(nn.Module):
    """Two checked operators, a change in place and a view: AOTAutograd traces it."""

    def forward(self, x: Any, total: Any) -> Any:
        square = x @ x.mT + 3 * torch.eye(x.shape[-1], dtype=x.dtype)
        total += 1
        return torch.linalg.inv(square), torch.linalg.cholesky(square), x[1:]


def given() -> tuple[Any, Any]:
    random = torch.Generator().manual_seed(3)
    return torch.randn(3, 5, 5, generator=random), torch.zeros(7)


@pytest.mark.parametrize("dynamic", [None, True])
def test_graphs_behind_autograd_are_one_program(
    dynamic: bool | None, tmp_path: Path
) -> None:
    torch._dynamo.reset()
    options, (x, total) = {"cache": tmp_path, "threads": 1}, given()
    fast: Any = torch.compile(
        Systems(), backend=backend, options=options, dynamic=dynamic, fullgraph=True
    )
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        made = fast(x, total)
    require_close(Systems(), (x, torch.zeros(7)), made, EPS)
    assert total.tolist() == [1.0] * 7 and made[2].data_ptr() == x[1:].data_ptr()


def test_other_effects_stay_with_torch(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    torch._dynamo.reset()

    def told(x: Any, y: Any) -> Any:
        inverse = torch.linalg.inv(x)
        y += 1
        torch.ops.aten._print("once")
        return inverse + 1, torch.linalg.inv(x + 1)

    options, x = {"cache": tmp_path, "threads": 1}, given()[0]
    fast: Any = torch.compile(told, backend=backend, options=options)
    with torch.no_grad(), pytest.warns(ModelWarning, match="with_effects") as caught:
        made = fast(x, torch.zeros(2))
    assert len(caught) == 1
    assert capfd.readouterr().out == "once\n"
    wanted = torch.linalg.inv(x.double()) + 1, torch.linalg.inv(x.double() + 1)
    for ours, theirs, of in zip(made, wanted, (x, x + 1), strict=True):
        bound = 8 * 25 * EPS * float(torch.linalg.cond(of).max()) * theirs.abs().max()
        assert (ours - theirs).abs().max() <= bound < theirs.abs().max()


def test_exported_programs_that_torch_has_decomposed(tmp_path: Path) -> None:
    x, total = given()
    exported = torch.export.export(Systems(), (x, total)).run_decompositions()
    assert any(map(checks, exported.graph.nodes))
    program: Any = nanoloom.compile(exported, cache=tmp_path, threads=1)
    assert any(map(checks, exported.graph.nodes))  # the user's program is as it was
    require_close(Systems(), (x, torch.zeros(7)), program(x, total), EPS)
    assert total.tolist() == [1.0] * 7
