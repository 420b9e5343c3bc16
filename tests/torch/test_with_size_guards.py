"""A graph that torch.export made for some sizes alone refuses others at a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.errors import Error, InputError
from nanoloom.torch.torch_program import TorchProgram

AUTO, Dim = torch.export.Dim.AUTO, torch.export.Dim
HALF = 2 * Dim("half", min=3)


class Branch(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + 1 if x.shape[1] > 3 else x * 2


class Number(nn.Module):
    def forward(self, x: Any) -> Any:
        y = x.clone()
        y[:, x.shape[1] // 2] = 2.0
        return y


class Unequal(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + 1 if x.shape[1] != 5 else x * 2


class Windows(nn.Module):
    """Padded to whole windows: of any size, though torch asks about strides."""

    def forward(self, x: Any) -> Any:
        rows, steps = x.shape
        padded = nn.functional.pad(x, (0, -steps % 4))
        parts = padded.view(rows, (steps + -steps % 4) // 4, 4)
        return (parts * parts.sum(-1, keepdim=True)).reshape(rows, -1)[:, :steps]


CASES: dict[str, tuple[nn.Module, Any, set[int], str]] = {
    "branch": (Branch(), AUTO, {4, 5, 6, 7}, r"x.shape\[1\] > 3"),
    "number": (Number(), AUTO, {6, 7}, r"x.shape\[1\]//2"),
    "unequal": (Unequal(), AUTO, {1, 2, 4, 6, 7}, r"x.shape\[1\], 5"),
    "bounds": (Branch(), Dim("t", min=4, max=6), {4, 5, 6}, r"x.shape\[1\] [<>]="),
    "half": (Branch(), HALF, {6, 8}, r"x.shape\[1\]/2 >= 3"),
    "bounded": (Unequal(), AUTO(min=4, max=6), {4, 6}, r"x.shape\[1\]"),
    "windows": (Windows(), AUTO, {1, 2, 4, 5, 6, 7}, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_sizes_for_which_the_graph_is_not(tmp_path: Path, name: str) -> None:
    module, dim, right, reason = CASES[name]
    said: dict[str, Any] = {"dynamic_shapes": ({0: AUTO, 1: dim},), "threads": 1}
    program = nanoloom.compile(module, (torch.ones(3, 6),), cache=tmp_path, **said)
    assert isinstance(program, TorchProgram)
    saved = name != "half" and name != "windows"  # an axis of 2 * n, a Mod of sizes
    if saved:
        program.program.save(tmp_path / "saved.so")
    loaded = nanoloom.load(tmp_path / "saved.so") if saved else None
    for steps in (1, 2, 4, 5, 6, 7) if dim is not HALF else (4, 6, 8):
        x = torch.randn(2, steps)
        if steps in right:
            assert torch.allclose(program(x), module(x))
            if loaded is not None:
                (made,) = loaded({"x": x.numpy()}).values()
                assert np.allclose(made, module(x))
            continue
        with pytest.raises(InputError, match=reason):
            program(x)
        if loaded is not None:
            with pytest.raises(Error, match="no sizes of the model"):
                loaded({"x": x.numpy()})


def test_a_program_of_a_file_asks_too(tmp_path: Path) -> None:
    said: dict[str, Any] = {"dynamic_shapes": ({1: AUTO},)}
    exported = torch.export.export(Branch(), (torch.ones(3, 6),), **said)
    torch.export.save(exported, tmp_path / "branch.pt2")
    loaded = torch.export.load(tmp_path / "branch.pt2")
    program = nanoloom.compile(loaded, cache=tmp_path, threads=1)
    x = torch.randn(3, 5)
    assert torch.equal(program(x), x + 1)
    with pytest.raises(InputError, match=r"torch\.export took it for granted"):
        program(torch.randn(3, 2))
    named = nanoloom.compile(tmp_path / "branch.pt2", cache=tmp_path, threads=1)
    (made,) = named({"x": x.numpy()}).values()
    assert (made == x.numpy() + 1).all()
    with pytest.raises(InputError, match=r"x\.shape\[1\] >= 4 is not so"):
        named({"x": x.numpy()[:, :2]})


def test_what_torch_asks_of_strides_is_not_asked(tmp_path: Path) -> None:
    """A composite asks whether its parts are one element wide; so does a size of 2."""
    module, sizes = nn.PixelUnshuffle(2), {0: AUTO, 2: AUTO, 3: AUTO}
    said: dict[str, Any] = {"dynamic_shapes": (sizes,), "threads": 1, "cache": tmp_path}
    program = nanoloom.compile(module, (torch.ones(2, 1, 4, 6),), **said)
    for shape in ((2, 1, 4, 6), (1, 1, 2, 2), (3, 1, 2, 8)):
        x = torch.randn(shape)
        assert torch.equal(program(x), module(x))
    with pytest.raises(InputError, match=r"torch\.export took it for granted"):
        program(torch.ones(2, 1, 3, 4))
