"""Modules of every kind against themselves in float64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports]
from torch.export import Dim  # pyright: ignore[reportMissingImports]

import nanoloom
from tests.torch import models
from tests.torch.rounding import require_close

F32, BF16 = 2.0**-24, 2.0**-8


def images(batch: int) -> tuple[Any, ...]:
    random = torch.Generator().manual_seed(batch)
    return (torch.randn(batch, 3, 16, 16, generator=random),)


def rows(batch: int, *shape: int) -> tuple[Any, ...]:
    random = torch.Generator().manual_seed(batch)
    return (torch.randn(batch, *shape, generator=random),)


BATCH, LENGTH = Dim("batch"), Dim("length", min=2, max=64)
TEXT = ({0: BATCH, 1: LENGTH},) * 2
Made = Callable[[], Any]
# Module, arguments to compile for, what is open, others to call with.
CASES: dict[str, tuple[Made, tuple[Any, ...], Any, list[tuple[Any, ...]]]] = {
    "mlp": (models.mlp, rows(4, 5), ({0: BATCH},), [rows(1, 5), rows(9, 5)]),
    "residual": (models.Residual, images(2), ({0: BATCH},), [images(1), images(3)]),
    "recurrent": (models.Recurrent, rows(2, 5, 6), None, []),
    "encoder": (models.Encoder, models.padded_rows(2, 6), TEXT,
                [models.padded_rows(3, 9)]),
    "bert": (lambda: models.Texts("bert"), models.text_inputs(2, 7), TEXT,
             [models.text_inputs(1, 12)]),
    "gpt2": (lambda: models.Texts("gpt2"), models.text_inputs(2, 7), TEXT,
             [models.text_inputs(3, 4)]),
    "llama": (lambda: models.Texts("llama"), models.text_inputs(2, 7), TEXT,
              [models.text_inputs(1, 9)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_module_gives_its_own_numbers(name: str, tmp_path: Path) -> None:
    make, example, shapes, others = CASES[name]
    torch.manual_seed(0)
    module = make().eval()
    program = nanoloom.compile(
        module, example, dynamic_shapes=shapes, cache=tmp_path, threads=1
    )
    for args in (example, *others):
        require_close(module, args, program(*args), F32)
    assert not shapes or not program.program.open.reason


def test_a_module_of_bf16_stays_one(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = models.mlp().bfloat16()
    (x,) = rows(4, 5)
    program = nanoloom.compile(module, (x.bfloat16(),), cache=tmp_path, threads=1)
    made = program(x.bfloat16())
    assert made.dtype == torch.bfloat16
    require_close(module, (x.bfloat16(),), made, BF16)
