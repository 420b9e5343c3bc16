"""Inputs and outputs of programs of modules, as torch counts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.errors import InputError


class Turned(nn.Module):
    """An image with its channels last, complex numbers, a kept buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.register_buffer("count", torch.zeros(2))

    def forward(self, image: Any, z: Any) -> Any:
        self.count.add_(1)
        return z * 2, self.conv(image), 3


def example() -> tuple[Any, Any]:
    image = torch.randn(2, 3, 5, 6).to(memory_format=torch.channels_last)
    return image, torch.randn(4, 7, dtype=torch.complex64)


def test_sides_are_those_of_a_call(tmp_path: Path) -> None:
    made: Any = nanoloom.compile(Turned().eval(), example(), cache=tmp_path, threads=1)
    sides = [(x.name, x.shape, x.dtype) for x in made.inputs]
    assert sides == [
        ("image", (2, 3, 5, 6), np.dtype(np.float32)),
        ("z", (4, 7), np.dtype(np.complex64)),
    ]
    results = [(x.shape, x.dtype) for x in made.outputs]
    assert results == [
        ((4, 7), np.dtype(np.complex64)), ((2, 4, 3, 4), np.dtype(np.float32)),
    ]  # fmt: skip
    assert repr(made).endswith("module: image [2, 3, 5, 6], z [4, 7]>")


@pytest.mark.parametrize(
    ("place", "shape", "told"),
    [
        (0, (2, 3, 5, 7), "float32 2x3x5x7, the model wants float32 2x3x5x6"),
        (0, (2, 3, 5), "float32 2x3x5, the model wants float32 2x3x5x6"),
        (1, (4, 8), "complex64 4x8, the model wants complex64 4x7"),
    ],
)
def test_other_shapes_are_told_as_they_were_given(
    place: int, shape: tuple[int, ...], told: str, tmp_path: Path
) -> None:
    given: list[Any] = list(example())
    made: Any = nanoloom.compile(Turned().eval(), example(), cache=tmp_path, threads=1)
    given[place] = torch.zeros(shape, dtype=given[place].dtype)
    with pytest.raises(InputError, match=f"is {told}"):
        made(*given)
