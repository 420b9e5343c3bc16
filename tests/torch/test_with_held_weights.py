"""Changes of weights: what compiled code sees is what torch says itself."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.errors import Error, InputError
from nanoloom.torch import held_weights
from nanoloom.torch.held_weights import HeldWeights, state
from nanoloom.torch.tensor_words import paths, words_of
from tests.torch import models


def test_a_file_has_the_weights_of_now(tmp_path: Path) -> None:
    """As a call sees them; what nobody counted is refused, whoever has the program."""
    module, x = nn.Linear(4, 3).eval(), torch.randn(2, 4)
    program = nanoloom.compile(module, (x,), cache=tmp_path)

    def saved(of: nanoloom.Program) -> np.ndarray:
        file = nanoloom.load(of.save(tmp_path / "m.so"))
        (y,) = file({file.inputs[0].name: x.numpy()}).values()
        return y

    with torch.no_grad():
        held = program.program
        module.weight.mul_(2)
        assert np.allclose(saved(program.program), module(x).numpy(), atol=1e-5)
        module.weight.data.mul_(2)
        for each in (held, program.program):
            with pytest.raises(InputError, match=r"has changed since .* reload\(\)"):
                saved(each)
        program.reload()
        assert np.allclose(saved(program.program), module(x).numpy(), atol=1e-5)
    with pytest.raises(Error, match="only programs of ONNX models can be pickled"):
        pickle.dumps(program)


@pytest.fixture
def same(tmp_path: Path) -> Iterator[Any]:
    program = nanoloom.compile(
        models.mlp(), (torch.randn(4, 5),), cache=tmp_path, threads=1
    )
    program(torch.randn(4, 5))
    (variant,) = program.program.variants.values()
    yield variant.library.same_words


def weight(drawn: random.Random) -> Any:
    base = torch.randn(6, 4)
    return drawn.choice((
        lambda: base, lambda: nn.Parameter(base), lambda: base[2:],
        lambda: base.t(), lambda: torch.from_numpy(np.zeros((3, 5), "f4"))[1:],
        lambda: torch.tensor(3.0), lambda: torch.empty(0), lambda: base.bfloat16(),
    ))()  # fmt: skip


CHANGES: tuple[Callable[[Any], object], ...] = (
    lambda t: t.zero_(),
    lambda t: t.view(-1).zero_() if t.is_contiguous() else t.mul_(2),
    lambda t: t.detach().mul_(2),
    lambda t: setattr(t, "data", torch.randn(3, 3).to(t.dtype)),
    lambda t: t.untyped_storage().resize_(4096),
    lambda t: t.set_(torch.randn(2).to(t.dtype)),
)


def test_drawn_changes_of_one_weight_among_others_are_seen(same: Any) -> None:
    drawn, seen = random.Random(3), 0
    for _ in range(200):
        weights = tuple(weight(drawn) for _ in range(drawn.randint(1, 9)))
        held, before = HeldWeights(weights), state(weights)
        assert held.are(weights, same)
        chosen, change = drawn.choice(weights), drawn.choice(CHANGES)
        try:
            with torch.no_grad():
                change(chosen)
        except (RuntimeError, AttributeError):
            continue
        assert held.are(weights, None) == (state(weights) == before)
        if state(weights) != before:
            assert not held.are(weights, same)
            seen += 1
        others = tuple(t.clone() for t in weights)
        assert not held.are(others, same) or not any(t.numel() for t in weights)
    assert seen > 60


def test_words_are_what_torch_says() -> None:
    ways = paths()
    assert ways is not None  # of this release of torch
    drawn = random.Random(4)
    for _ in range(40):
        tensor = weight(drawn)
        for _ in range(drawn.randint(0, 3)):
            tensor.detach().zero_()
        storage, start, offset, count = words_of(tensor, ways)
        own = tensor.untyped_storage()
        assert (storage, start) == (own._cdata, own.data_ptr())
        assert offset == tensor.storage_offset()
        assert count & 0xFFFFFFFF == tensor._version


def test_what_has_no_words_is_asked_of_torch(
    same: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.inference_mode():
        tensors = (torch.randn(3), torch.randn(2))
    assert HeldWeights(tensors).are(tensors, same)
    monkeypatch.setattr(held_weights, "paths", lambda: None)
    changing = (torch.randn(3),)
    held = HeldWeights(changing)
    assert held.are(changing, same)
    changing[0].zero_()
    assert not held.are(changing, same)
