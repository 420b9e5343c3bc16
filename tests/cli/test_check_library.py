"""nanoloom check of a library: what it is, and whether it is whole and runs here."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import nanoloom
from nanoloom import manifest, sealed_files
from nanoloom.cli.failures import AT_FAULT, DONE
from nanoloom.cli.main import main
from nanoloom.errors import Error
from nanoloom.manifest import FORMAT
from nanoloom.options import CompileOptions
from nanoloom.target.by_name import by_name
from tests.cli import models


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    model = models.write(folder, models.RELU)
    program = nanoloom.compile(model, cache=folder / "cache")
    return program.save(folder / "model.so")


def test_a_library_says_what_it_is(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(library)]) == DONE
    made = capsys.readouterr().out
    assert made.startswith(f"{library}: whole, runs here\n")
    made = " ".join(made.split())
    assert f"compiled by nanoloom {nanoloom.__version__}, format {FORMAT}" in made
    assert main(["check", str(library), "--json"]) == DONE
    said = json.loads(capsys.readouterr().out)
    assert said["problem"] == ""
    assert said["dimensions"] == {"batch": "0.."}
    assert said["inputs"][0]["shape"][0] == "batch"
    assert manifest.read(library) == {
        name: x for name, x in said.items() if name not in ("library", "problem")
    }


def test_tools_show_the_section(library: Path) -> None:
    """The file is a library as before, with a section more at its end."""
    content = library.read_bytes()
    first, count = struct.unpack_from("<Q", content, 40)[0], content[60]
    assert first + count * 64 == len(content) - sealed_files.PORTABLE_BYTES
    if (readelf := shutil.which("readelf")) is not None:
        shown = subprocess.run(
            [readelf, "--string-dump=.nanoloom.manifest", library],
            check=True,
            capture_output=True,
            text=True,
        )
        assert '"format"' in shown.stdout
        assert not shown.stderr


def test_another_format_is_named(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a library by a later version not a line of code runs."""
    later = tmp_path / "later.so"
    content = library.read_bytes()[: -sealed_files.PORTABLE_BYTES]
    old, new = b'"format": %d,' % FORMAT, b'"format": %d,' % (FORMAT + 1)
    new = new.replace(b" ", b"") if len(new) > len(old) else new
    changed = content.replace(old, new)
    assert len(changed) == len(content)
    assert changed != content
    with later.open("wb+") as file:
        file.write(changed)
        sealed_files.seal(file, portable=True)
    reason = (
        f"was made by nanoloom {nanoloom.__version__}, in format {FORMAT + 1}; "
        f"nanoloom {nanoloom.__version__} reads format {FORMAT}"
    )
    with pytest.raises(Error, match=reason):
        nanoloom.load(later)
    assert main(["check", str(later)]) == AT_FAULT
    assert "does not run here" in capsys.readouterr().out


def test_code_for_another_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = models.write(tmp_path, models.RELU)
    options = CompileOptions(by_name("rv64gcv"))
    program = nanoloom.compile(model, cache=tmp_path / "cache", options=options)
    path = program.save(tmp_path / "other.so")
    assert main(["check", str(path)]) == AT_FAULT
    made = capsys.readouterr().out
    assert f"{path}: does not run here" in made
    assert "code for rv64gcv" in " ".join(made.split())
