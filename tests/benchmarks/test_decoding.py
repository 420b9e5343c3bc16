"""The benchmark of decoding, tiny."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import decoding
from benchmarks.decoder_model import TINY, Decoder


def test_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    words = ("--quick", "--against", "onnxruntime", "--json", str(out))
    decoding.main([*words, "--folder", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "nothing was compiled" in printed and "other numbers" not in printed
    (made,) = json.loads(out.read_text("utf-8"))
    assert set(made["token_seconds"]) == {"nanoloom", "onnxruntime"}
    assert made["bytes_a_token"] == TINY.weight_bytes + TINY.cache_bytes(17)


def test_bytes_of_gpt2() -> None:
    """124 million weights but for the positions, and 18 KB of each token a layer."""
    assert round(Decoder().weight_bytes / 4e6) == 124
    assert Decoder().cache_bytes(512) == 12 * 512 * 2 * 768 * 4
