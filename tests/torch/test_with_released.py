"""release_weights=True: the module's copy goes, and the program's numbers stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]

import nanoloom
from nanoloom.errors import InputError


def own_bytes() -> int:
    """Of this process alone: what no file has."""
    text = Path("/proc/self/status").read_text("utf-8")
    (line,) = (x for x in text.splitlines() if x.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024


class Wide(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 400_000), nn.Linear(64, 7)
        self.register_buffer("count", torch.zeros(2048))

    def forward(self, x: Any) -> Any:
        self.count.add_(1)
        return self.first(x).amax(-1), self.last(x) + self.count[0]


def test_memory_of_weights_goes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, x = Wide().eval(), torch.randn(3, 64)
    size = 4 * 64 * 400_000
    other = nn.Linear(64, 7).eval()
    nanoloom.compile(other, (x,), cache=tmp_path, threads=1)(x)  # loads the compiler
    with torch.no_grad():
        wanted = module(x)
        module.count.zero_()
        before = own_bytes()
        program = nanoloom.compile(
            module, (x,), cache=tmp_path, threads=1, release_weights=True
        )
        assert module.first.weight.numel() == 0
        assert module.count.numel() == 2048
        assert own_bytes() < before - size / 2
        for place, found in enumerate(program(x)):
            assert torch.allclose(found, wanted[place], atol=1e-4)
        assert module.count[0] == 1
    with pytest.raises(InputError, match="has released its weights"):
        program.reload()


def test_other_shapes_come_later(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 5)).eval()
    kept = {n: t.clone() for n, t in module.state_dict().items()}
    rows = torch.export.Dim("rows")
    program = nanoloom.compile(
        module, (torch.randn(4, 64),), dynamic_shapes=({0: rows},),
        cache=tmp_path, threads=1, release_weights=True,
    )  # fmt: skip
    for count in (4, 1, 9):
        x = torch.randn(count, 64)
        with torch.no_grad():
            assert torch.allclose(
                program(x), torch.func.functional_call(module, kept, (x,)), atol=1e-5
            )


def test_an_onnx_model_has_none_to_release() -> None:
    with pytest.raises(InputError, match="is for a module of PyTorch"):
        nanoloom.compile(b"", release_weights=True)


def test_earlier_programs_and_later_ones_say_who_has_the_weights() -> None:
    module, x = nn.Linear(64, 96).eval(), torch.randn(4, 64)
    earlier = nanoloom.compile(module, (x,), threads=1)
    program = nanoloom.compile(module, (x,), threads=1, release_weights=True)
    assert module.bias.numel() == 96  # too small to be worth it
    refusal = "weight weight: is empty: a program compiled with release_weights"
    for call in (
        lambda: earlier(x),
        lambda: earlier.program,
        lambda: nanoloom.compile(module, (x,)),
    ):
        with pytest.raises(InputError, match=refusal):
            call()
    assert program(x).shape == (4, 96)
