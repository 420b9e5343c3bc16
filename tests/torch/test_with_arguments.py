"""Arguments by position, by name, and those that are no tensors."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]
from torch.export import Dim  # pyright: ignore[reportMissingImports]

import nanoloom
from nanoloom.errors import InputError, Unsupported


class Scaled(nn.Module):
    def forward(self, first: Any, second: Any, scale: Any = 2.0, *, mask: Any = None):
        made = (first - second) * scale
        return made if mask is None else made * mask


def drawn() -> list[Any]:
    return [torch.randn(2, 3) for _ in range(3)]


def test_tensors_by_position_come_by_name_as_well() -> None:
    rng = random.Random(3)
    module = Scaled().eval()
    names = ["first", "second", "scale"]
    for example in (drawn(), [*drawn()[:2], 3.0]):
        program = nanoloom.compile(module, tuple(example), threads=1)
        for _ in range(4):
            given = [*drawn()[:2], example[2]]
            count = rng.randint(0, 3)
            named = list(zip(names[count:], given[count:], strict=True))
            rng.shuffle(named)
            found = program(*given[:count], **dict(named))
            assert torch.allclose(found, module(*given))


def test_another_structure_is_refused_by_name() -> None:
    first, second, mask = drawn()
    program = nanoloom.compile(Scaled().eval(), (first, second), threads=1)
    with pytest.raises(InputError, match="have mask, the example inputs do not"):
        program(first, second, mask=mask)
    with pytest.raises(InputError, match="have first, the example inputs do not"):
        program(first, second, first=first)


@pytest.mark.parametrize("constant", [3.0, 2, True, None])
def test_a_number_is_that_of_the_example(constant: Any) -> None:
    first, second, _ = drawn()

    class Chosen(nn.Module):
        def forward(self, x: Any, y: Any, scale: Any) -> Any:
            return x - y if scale is None else x - y * scale

    program = nanoloom.compile(Chosen().eval(), (first, second, constant), threads=1)
    for _ in range(2):  # the second is a direct call
        assert torch.allclose(
            program(first, second, constant), Chosen()(first, second, constant)
        )
    for other in (3, 2.0, 1, None, "3", first):
        if type(other) is type(constant) and other is constant:
            continue
        with pytest.raises(InputError, match=r"scale: is .* was made for"):
            program(first, second, other)


def test_reasons_are_the_users_own() -> None:
    x = torch.randn(2, 3)
    module = nn.Linear(3, 2).eval()
    said = {"dynamic_shapes": ({0: Dim("b", max=9)},)}
    program = nanoloom.compile(module, (x,), **said, threads=1)
    with pytest.raises(InputError, match=r"convert it with tensor.to\(torch.float32\)"):
        program(x.double())
    with pytest.raises(InputError, match="a Dim's bounds"):
        program(torch.randn(12, 3))
    for shapes in (({5: Dim("b")},), {"input": {5: Dim("b")}}):
        with pytest.raises(
            InputError, match="input: name axis 5, and the example has 2"
        ):
            nanoloom.compile(module, (x,), dynamic_shapes=shapes)

    class Doubled(nn.Module):
        def forward(self, number: Any) -> Any:
            return number * 2

    with pytest.raises(Unsupported, match="give tensors as example inputs"):
        nanoloom.compile(Doubled(), (3,))
