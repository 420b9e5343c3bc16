"""The benchmark of matrix products: its shapes, and a tiny run with nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import gemm


def test_shapes() -> None:
    found = gemm.sizes(None, None)
    assert len(found) == 8 * 5 + 1 and found[-1] == (127, 333, 517)
    assert (1, 768, 3072) in found and (384, 1024, 4096) in found
    assert gemm.sizes(None, "1,4")[:2] == [(1, 768, 768), (4, 768, 768)]
    assert gemm.sizes("2x3x4", None) == [(2, 3, 4)]


def test_a_tiny_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ("--json", str(tmp_path / "g.json"), "--csv", str(tmp_path / "g.csv"))
    words = ("--quick", "--precision", "f32", "--against", "")
    gemm.main([*words, *files])
    said = capsys.readouterr()
    assert "GEMM in f32, threads: 1" in said.out and "13x32x48" in said.out
    assert "2 of 2" in said.err
    found = json.loads((tmp_path / "g.json").read_text())["results"]
    assert [each["size"] for each in found] == ["1x32x48", "13x32x48"]
    assert all(each["gflops"] > 0 for each in found)
    assert (tmp_path / "g.csv").read_text().count("\n") == 3


def test_unknown_precisions_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        gemm.main(["--precision", "f64"])
    assert end.value.code == 2
    assert "f64 is none of f32, bf16, int8" in capsys.readouterr().err
