"""nanoloom reproduce: tables and files of a tiny run, nobody else in it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.test_refusals import refused

WORDS = ("reproduce", "nanokernels", "--quick", "--against", "none", "--threads", "1")


def test_a_tiny_run(tmp_path: Path, nanoloom: Command) -> None:
    words = ("--precision", "f32,int8", "--only", "gemm", "--folder", tmp_path / "made")
    said = nanoloom(*WORDS, *words)
    assert said.status == 0, said
    assert "GEMM, f32: GFLOP/s" in said.out and "64^3" in said.out
    assert "GEMM, int8 (u8 x s8): GFLOP/s" in said.out
    assert "of the measured peak, which" in said.out
    names = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert names == ["gemm-threads.png", "gemm.png", "results.csv", "results.json"]
    with (tmp_path / "made" / "results.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [each["arithmetic"] for each in found] == ["f32", "int8"]
    assert all(float(each["gflops"]) > 0 for each in found)


def test_json_and_a_smaller_target(tmp_path: Path, nanoloom: Command) -> None:
    words = ("--precision", "f32", "--only", "mlp", "--sizes", "40")
    more = ("--folder", tmp_path, "--json", "--target", "x86-64-v3")
    said = nanoloom(*WORDS, *words, *more)
    assert said.status == 0, said
    found = json.loads(said.out)
    assert found["target"] == "x86-64-v3"
    (result,) = found["results"]
    assert (result["kind"], result["size"]) == ("mlp", "32x40")
    assert result["families"] == "fma" and result["peak_gflops"] > 0
    assert found == json.loads((tmp_path / "results.json").read_text())


@pytest.mark.parametrize(
    "words",
    [
        ("--precision", "f64"), ("--only", "conv"), ("--against", "tvm"),
        ("--sizes", "0"), ("--threads", "one"),
    ],
)  # fmt: skip
def test_wrong_usage(words: tuple[str, str], nanoloom: Command) -> None:
    refused(nanoloom(*WORDS, *words), words[0], status=2)


def test_unknown_names(nanoloom: Command, tmp_path: Path) -> None:
    refused(
        nanoloom("reproduce", "kernels"), "kernels is none of nanokernels", status=2
    )
    words = ("--folder", tmp_path, "--target", "x86-64-v9")
    refused(nanoloom(*WORDS, *words), "no target named 'x86-64-v9'")
