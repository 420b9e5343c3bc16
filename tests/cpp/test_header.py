"""nanoloom.hpp over C headers of models of each kind, as C++17 with all warnings."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import nanoloom
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.cpp import FOLDER
from tests.cli import models
from tests.cpp.programs import CASES, PROGRAM, SIZED, UNCAUGHT

WARNINGS = ("-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


def compiler() -> list[str]:
    own = shutil.which("c++")
    return [own] if own else [str(zig()), "c++"]


def built(source: Path, library: Path, *flags: str) -> Path:
    folder, program = source.parent, source.with_suffix("")
    places = [f"-I{folder}", f"-I{FOLDER}", "-Wl,-rpath,$ORIGIN", "-pthread"]
    command = [*compiler(), *flags, *places, str(source), str(library)]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


@pytest.mark.parametrize("name", CASES)
def test_a_program(name: str, tmp_path: Path) -> None:
    """The numbers, and a sentence for what does not fit, before anything is written."""
    text, body, said = CASES[name]
    model = models.write(tmp_path, text, f"{name}.onnx")
    library = nanoloom.compile(model, cache=Cache(tmp_path)).save(
        tmp_path / f"{name}.so"
    )
    source = tmp_path / "main.cpp"
    source.write_text(PROGRAM.format(name=name, body=body))
    program = built(source, library, "-std=c++17", "-pedantic", *WARNINGS)
    ran = subprocess.run([program], capture_output=True, text=True, check=True)
    assert ran.stdout == said


def test_without_exceptions(tmp_path: Path) -> None:
    """The sentence, and the end of the program; the newest C++ that is there."""
    model = models.write(tmp_path, SIZED, "sized.onnx")
    library = nanoloom.compile(model).save(tmp_path / "sized.so")
    source = tmp_path / "main.cpp"
    source.write_text(UNCAUGHT)
    program = built(source, library, "-std=c++2b", "-fno-exceptions", "-fno-rtti")
    ran = subprocess.run([program], capture_output=True, text=True, check=False)
    assert ran.returncode == -signal.SIGABRT
    text = "length is -1, and at least 0 is wanted"
    assert (ran.stdout, ran.stderr) == ("2\n", f"nanoloom: {text} (status 7)\n")
