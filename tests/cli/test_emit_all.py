"""nanoloom compile --emit all: every stage of a layer's kernels, a file each."""

from __future__ import annotations

from pathlib import Path

import pytest

from nanoloom.schedule.printer import WORDS
from tests.cli import models
from tests.cli.conftest import Command

ENDINGS = (".kernels.mlir", ".llvm.ll", ".s", ".schedule.mlir", ".vector.mlir")


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.DENSE, "dense.onnx")


def test_one_layer_as_small_files(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    words = ("-d", "batch=3", "--emit", "all", "--only", "contraction_f32_3x5x7*")
    said = nanoloom("compile", dense, *words, "-o", tmp_path / "stages")
    assert said.status == 0, said.err
    files = {path.name: path.read_text() for path in (tmp_path / "stages").iterdir()}
    (kernel,) = {name.partition(".")[0] for name in files}
    assert kernel.startswith("contraction_f32_3x5x7")
    assert sorted(files) == sorted(kernel + ending for ending in ENDINGS)
    schedule = files[f"{kernel}.schedule.mlir"]
    titles = (WORDS, "loops of the kernel", "loops as scheduled")
    places = [schedule.index(f"// {title}:\n") for title in titles]
    assert places == sorted(places)
    assert "//   Nanokernel(" in schedule
    assert " by fma, " in schedule


def test_a_schedule_among_them_can_be_given_back(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    words = ("-d", "batch=3", "--emit", "all", "--only", "contraction_*")
    assert nanoloom("compile", dense, *words, "-o", tmp_path / "made").status == 0
    schedule = next((tmp_path / "made").glob("*.schedule.mlir"))
    words = ("-d", "batch=3", "--schedule", schedule)
    said = nanoloom("compile", dense, *words, "-o", tmp_path / "x.so")
    assert said.status == 0, said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--emit", "all", "--only", "nothing"), "there is no layer nothing; some"),
        (("--emit", "llvm", "--only", "x"), "it goes with --emit all"),
        (("--emit", "all", "-o", "-"), "all is no text, name a file"),
    ],
)
def test_refusals(
    tmp_path: Path,
    dense: Path,
    nanoloom: Command,
    words: tuple[str, ...],
    said: str,
) -> None:
    place = () if "-o" in words else ("-o", tmp_path / "made")
    got = nanoloom("compile", dense, "-d", "batch=3", *words, *place)
    assert got.status != 0
    assert said in " ".join(got.err.replace("│", " ").split())
