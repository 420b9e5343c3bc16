"""find_package(nanoloom): the example as its README builds it; a model that changes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nanoloom
from nanoloom.cpp import FOLDER
from tests.cli import models
from tests.sources import ROOT

COMMAND = Path(sys.executable).with_name("nanoloom")
TEXT = """
    g (float[batch, length] x) => (float[batch] y) {{
      axes = Constant<value_ints = [1]>()
      y = {reduce}<keepdims = 0>(x, axes)
    }}
"""


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )


def cmake(*words: object) -> str:
    assert shutil.which("cmake"), "cmake is not installed"
    ran = run("cmake", *words)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def configured(folder: Path, *words: object) -> Path:
    """The example's build folder."""
    build = folder / "build"
    found = run(COMMAND, "--cmake-dir").stdout.strip()
    assert Path(found) == FOLDER
    cmake(
        *("-S", ROOT / "examples" / "cpp", "-B", build, f"-Dnanoloom_DIR={found}"),
        *(f"-DNANOLOOM_EXECUTABLE={COMMAND}", *words),
    )
    return build


def test_the_example(tmp_path: Path) -> None:
    """A changed model is compiled again, one that is as it was is not."""
    model = models.write(
        tmp_path, TEXT.format(reduce="ReduceSum"), "two words.onnx", 18
    )
    build = configured(tmp_path, f"-DMODEL={model}")
    cmake("--build", build)
    ran = run(build / "distances", 3, 5)
    assert ran.stdout == "y: 2.5 3.5 4.5\n", ran.stderr
    refused = run(build / "distances", -3, 5)
    assert refused.returncode == 1
    assert refused.stderr == "batch is -3, and at least 0 is wanted\n"
    library = build / "nanoloom" / "model" / "model.so"
    before = library.stat().st_mtime_ns
    cmake("--build", build)
    assert library.stat().st_mtime_ns == before
    models.write(tmp_path, TEXT.format(reduce="ReduceMax"), "two words.onnx", 18)
    cmake("--build", build)
    assert run(build / "distances", 1, 5).stdout == "y: 1\n"


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    places = ("-S", ROOT / "examples" / "cpp", "-B", tmp_path / "build")
    words = (f"-Dnanoloom_DIR={FOLDER}", f"-DNANOLOOM_EXECUTABLE={COMMAND}")
    ran = run("cmake", *places, *words, "-DMODEL=missing.onnx")
    assert ran.returncode == 1
    assert re.search(r"nanoloom_add_model: there is no\s+\S*missing\.onnx", ran.stderr)


def test_the_package_has_the_version_of_nanoloom() -> None:
    text = (FOLDER / "nanoloomConfigVersion.cmake").read_text()
    found = re.search(r'set\(PACKAGE_VERSION "(.*)"\)', text)
    assert found and found[1] == nanoloom.__version__
