"""The C program runs any model: with sizes or without, whatever its file is called."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.cli.main import main
from tests.cli import models

MAIN = Path(__file__).parents[2] / "examples" / "c" / "main.c"
TEXT = """
    g (float[batch, length] x) => (float[batch] y) {
      axes = Constant<value_ints = [1]>()
      y = ReduceSum<keepdims = 0>(x, axes)
    }
"""


def built(library: Path, *options: str) -> Path:
    """The example with a library, as its README says."""
    own = shutil.which("cc")
    compiler = [own] if own else [str(zig()), "cc"]
    flags = ["-O2", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", *options]
    flags += [f"-I{library.parent}", "-Wl,-rpath,$ORIGIN"]
    made = library.parent / "main"
    command = [*compiler, *flags, str(MAIN), str(library), "-o", str(made)]
    subprocess.run(command, check=True)
    return made


def run(program: Path, words: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *words], capture_output=True, text=True, check=False
    )


def sums(rows: int, columns: int) -> list[str]:
    x = (np.arange(rows * columns) % 7 * 0.25).astype(np.float32)
    return [f"{y:g}" for y in x.reshape(rows, columns).sum(axis=1).tolist()[:8]]


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sized")
    program = nanoloom.compile(
        models.write(folder, TEXT), cache=Cache(folder), dims={"length": (1, 9)}
    )
    return built(program.save(folder / "model.so"))


@pytest.mark.parametrize("sizes", [(1, 1), (3, 1), (3, 5), (20, 9)])
def test_named_dimensions(sized: Path, sizes: tuple[int, int]) -> None:
    """Those behind the last number are 1."""
    words = [str(size) for size in sizes]
    while words and words[-1] == "1":
        words.pop()
    ran = run(sized, words)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["y:", *sums(*sizes)]


def test_a_size_that_the_model_does_not_take(sized: Path) -> None:
    many = run(sized, ["3", "10"])
    assert many.returncode == 1 and many.stdout == ""
    assert many.stderr == "length is 10, and at most 9 is wanted\n"
    few = run(sized, ["-3", "4"])
    assert few.stderr == "batch is -3, and at least 0 is wanted\n"


def test_a_library_of_another_name(tmp_path: Path) -> None:
    model = tmp_path / "mödel x.onnx"
    models.write(tmp_path, TEXT).rename(model)
    library = tmp_path / "sums.so"
    words = ["compile", model, "-d", "batch=2", "-d", "length=3", "--name", "model"]
    assert main([*map(str, words), "-o", str(library)]) == 0
    ran = run(built(library, '-DHEADER="sums.h"'))
    assert ran.stdout.split() == ["y:", *sums(2, 3)]
