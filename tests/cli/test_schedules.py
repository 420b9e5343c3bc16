"""The file of schedules: its parts, and what stands between them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nanoloom.cli.schedules import sections
from nanoloom.errors import InputError
from tests.cli import models
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused

SCRIPT = "module attributes {transform.with_named_sequence} {\n  body\n}\n"
KERNEL = "#map = affine_map<(d0) -> (d0)>\nmodule {\n  func\n  }\n}\n"
FILE = Path("mine.mlir")


def test_what_is_for_the_reader() -> None:
    """Comments anywhere, and behind a script the kernel that it was made for."""
    behind = f"\n// words:\n//   Tile\n\n{KERNEL}\n// more\n"
    text = f"// mine\n// ---- kernel a\n{SCRIPT}{behind}"
    text += f"// ---- kernel b*\n// first\n{SCRIPT}{behind}"
    found = list(sections(text, FILE))
    assert found == [("a", SCRIPT), ("b*", "// first\n" + SCRIPT)]
    assert list(sections(SCRIPT + behind, FILE)) == [("*", SCRIPT)]


@pytest.mark.parametrize(
    "behind",
    ["Tile(4)", "# ---- kernel b", SCRIPT, KERNEL + KERNEL, KERNEL + "}", "module"],
)
@pytest.mark.parametrize("is_last", [True, False])
def test_text_behind_a_script(behind: str, is_last: bool) -> None:
    """Whatever nothing reads is named by its line, not only in the last part."""
    text = f"// ---- kernel a\n{SCRIPT}\n{behind}\n"
    if not is_last:
        text += f"// ---- kernel c\n{SCRIPT}"
    first = 6 + (behind.startswith(KERNEL) and len(KERNEL.splitlines()))
    if behind == KERNEL + KERNEL:
        first += 1  # a name of a map may stand anywhere
    wrong = text.splitlines()[first - 1]
    with pytest.raises(InputError) as refusal:
        list(sections(text, FILE))
    assert str(refusal.value).startswith(f"mine.mlir:{first}: the script above it has")
    assert repr(wrong[:60]) in str(refusal.value)


def test_the_sentence(tmp_path: Path, nanoloom: Command) -> None:
    model, path = models.write(tmp_path, models.DENSE), tmp_path / "mine.mlir"
    words = ("compile", model, "-d", "batch=3", "-o")
    assert nanoloom(*words, path, "-e", "schedule").status == 0
    whole = path.read_text()
    path.write_text(whole + "Tile('point', (4, 0))\n")
    said = nanoloom(*words, tmp_path / "x.so", "--schedule", path)
    refused(said, f"{path}:{whole.count(chr(10)) + 1}: the script", "Tile('point'")
    assert not (tmp_path / "x.so").exists()
    refused(nanoloom("run", model, "-d", "batch=3", "--schedule", path), "the script")
    path.write_text("// as it is\n" + whole)
    assert nanoloom(*words, tmp_path / "x.so", "--schedule", path).status == 0


def test_what_runs_takes_schedules(tmp_path: Path, nanoloom: Command) -> None:
    """The kernels are made by them: a pattern that fits none is refused, one that fits
    gives the same numbers."""
    model, path = models.write(tmp_path, models.DENSE), tmp_path / "mine.mlir"
    words = ("-d", "batch=3")
    assert nanoloom("compile", model, *words, "-o", path, "-e", "schedule").status == 0
    script = next(sections(path.read_text(), path))[1]
    path.write_text(f"// ---- kernel cont*\n{script}")
    own = ("--schedule", path)
    plain, mine = (
        nanoloom("run", model, *words, *given, "--json") for given in ((), own)
    )
    shown = [json.loads(said.out)["outputs"] for said in (plain, mine)]
    assert mine.status == 0 and shown[0] == shown[1]
    bench = ("bench", model, *words, "--repeat", "1", "--against", "")
    assert nanoloom(*bench, *own).status == 0
    path.write_text(f"// ---- kernel none\n{script}")
    for verb in (("run", model, *words), bench, ("profile", model, *words)):
        refused(nanoloom(*verb, *own), "none", "contraction_f32_3x5x7")


def test_a_library_has_its_schedules(tmp_path: Path, nanoloom: Command) -> None:
    model, library = models.write(tmp_path, models.DENSE), tmp_path / "x.so"
    path = tmp_path / "mine.mlir"
    path.write_text(SCRIPT)
    assert nanoloom("compile", model, "-d", "batch=3", "-o", library).status == 0
    said = nanoloom("run", library, "--schedule", path)
    assert said.status == 2 and "made by their schedules" in said.told
