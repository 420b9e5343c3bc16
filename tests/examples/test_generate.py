"""Both say the same tokens, and a wrong one is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.decoder_model import Decoder
from examples.generate import demo, loop

MODEL = Decoder(layers=1, heads=2, width=32, words=61, positions=64)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return MODEL.write(tmp_path_factory.mktemp("model") / "decoder.onnx")


def test_both_say_the_same(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    prompt = np.random.default_rng(0).integers(0, MODEL.words, (1, 7))
    assert demo.demo(path, prompt, 20, 1) == 0
    printed = capsys.readouterr().out
    assert printed.count("tokens/s") == 4 and "copied" not in printed
    monkeypatch.setattr(demo, "kept_by_hand", lambda *_: lambda: silent)
    assert demo.demo(path, prompt, 20, 1) == 1


def silent(ids: np.ndarray) -> np.ndarray:
    """Says the same token for ever."""
    return np.eye(1, MODEL.words, dtype=np.float32)[None].repeat(ids.shape[1], 1)


def test_draws_are_of_the_likely_ones() -> None:
    logits = np.linspace(0, 5, 50, dtype=np.float32)
    one, other = loop.sampled(1, most=3), loop.sampled(1, most=3)
    drawn = [one(logits) for _ in range(60)]
    assert drawn == [other(logits) for _ in range(60)]
    assert set(drawn) == {47, 48, 49}
    assert loop.greedy(logits) == 49
