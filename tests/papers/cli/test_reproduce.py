"""nanoloom reproduce: tables and files of a tiny run, nobody else in it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from nanoloom_papers.reproduce import channeled, chapter_h
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
    said = nanoloom("reproduce", "kernels")
    refused(
        said, "kernels is none of nanokernels, chapter-h, oml-vect, yflows", status=2
    )
    words = ("--folder", tmp_path, "--target", "x86-64-v9")
    refused(nanoloom(*WORDS, *words), "no target named 'x86-64-v9'")


PARTS = ("nest.txt", "transform.mlir", "s")
CHAPTER_H = ("reproduce", "chapter-h", "--quick", "--only")


def test_chapter_h(tmp_path: Path, nanoloom: Command) -> None:
    """A table, and what each schedule makes."""
    words = ("nanoloom,late", "--against", "loops", "--folder", tmp_path / "made")
    said = nanoloom(*CHAPTER_H, *words)
    assert said.status == 0, said
    assert "Channeled convolution 2x6x11x72, 3x3x12" in said.out
    for name in ("late unrolling", "automatic", "C loops", "of the measured peak"):
        assert name in said.out
    listed = {f"{form}.{part}" for form in ("late", "nanoloom") for part in PARTS}
    names = {path.name for path in (tmp_path / "made").iterdir()}
    assert names == listed | {"results.csv", "results.json", "chapter-h.png"}
    with (tmp_path / "made" / "results.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [each["contender"] for each in found] == ["late", "nanoloom", "loops"]
    assert all(float(each["percent_of_peak"]) > 0 for each in found)
    assert "ComputeAt(" in (tmp_path / "made" / "late.nest.txt").read_text()


def test_a_wrong_result_is_named_and_fails(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are compared with what is right for other numbers."""
    drawn = channeled.draw
    monkeypatch.setattr(
        chapter_h,
        "right",
        lambda sizes, numbers: channeled.right(sizes, drawn(sizes, seed=1)),
    )
    words = ("nanoloom", "--against", "none", "--folder", tmp_path, "--json")
    said = nanoloom(*CHAPTER_H, *words)
    assert said.status == 1, said
    found = json.loads(said.out)["results"]
    assert [each["contender"] for each in found] == ["nanoloom"]
    assert all("wrong result" in each["note"] for each in found)
    assert all(each["median_seconds"] is None for each in found)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--threads", "2"), "with one thread"),
        (("--sizes", "64"), "--sizes"),
        (("--precision", "bf16"), "--precision"),
        (("--against", "onednn"), "onednn is none of halide, loops"),
        (("--only", "mlp"), "mlp is none of nanoloom, early, late"),
    ],
)
def test_chapter_h_is_one_computation(
    words: tuple[str, str], said: str, nanoloom: Command
) -> None:
    refused(nanoloom("reproduce", "chapter-h", *words), said, status=2)
