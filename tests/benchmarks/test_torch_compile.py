"""The benchmark of torch.compile: rows that are kept are not measured again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import torch_compile


def row(name: str, threads: int, backend: str, ratio: float) -> dict[str, Any]:
    return {"model": name, "threads": threads, "backend": backend, "first": 2.5,
            "error": 3e-6, "call": 0.00125, "ratio": ratio}  # fmt: skip


def test_it_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    def measured(
        name: str, threads: int, backends: list[str], rounds: int
    ) -> list[dict[str, Any]]:
        assert rounds == 3
        asked.append((name, threads))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return [row(name, threads, b, 1.0 + i) for i, b in enumerate(backends)]

    monkeypatch.setattr(torch_compile, "measured", measured)
    kept = tmp_path / "rows.jsonl"
    words = ["--models", "lstm,unet", "--backends", "nanoloom,inductor"]
    words += ["--quick", "--kept", str(kept)]
    with pytest.raises(KeyboardInterrupt):
        torch_compile.main(words)
    assert len(kept.read_text().splitlines()) == 4
    torch_compile.main(words)
    assert asked == [("lstm", 1), ("lstm", 2), *[("unet", 1)] * 2, ("unet", 2)]
    lines = [x for x in capsys.readouterr().out.splitlines() if "inductor" in x]
    assert len(lines) == 4
    assert lines[0].split() == [
        "lstm",
        "1",
        "inductor",
        "2.5",
        "1.250",
        "2.00",
        "3e-06",
    ]
    assert json.loads(kept.read_text().splitlines()[-1])["model"] == "unet"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--models", "bert"], "there is no bert; there are bert-base"),
        (["--backends", "eager"], "there is no eager"),
        (["--threads", "0"], "--threads: numbers, by commas"),
    ],
)
def test_what_is_not_known(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        torch_compile.parse(words)
    assert said in capsys.readouterr().err
