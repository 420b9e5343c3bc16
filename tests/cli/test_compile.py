"""nanoloom compile: every stage as a file, a folder or a text, whole or not at all."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from nanoloom.cli.emit_choices import EMITS
from nanoloom.cli.schedules import check_script
from nanoloom.errors import InputError
from nanoloom.workers import jobs
from tests.cli import models
from tests.cli.conftest import Command, Said
from tests.cli.test_refusals import refused
from tests.workers.stand_ins import Dies

# What a stage's text of DENSE holds.
MARKS = {
    "graph": "MatMul",
    "linalg": "linalg.generic",
    "kernels": "func.func @contraction_f32_3x5x7",
    "schedule": "transform.named_sequence",
    "vector": "vector.",
    "llvm": "define void",
    "asm": ".text",
}


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.DENSE, "dense.onnx")


def compiled(nanoloom: Command, model: Path, *words: object) -> Said:
    said = nanoloom("compile", model, "-d", "batch=3", *words)
    assert said.status == 0, said.err
    return said


@pytest.mark.parametrize("stage", MARKS)
def test_texts_on_stdout(dense: Path, nanoloom: Command, stage: str) -> None:
    said = compiled(nanoloom, dense, "--emit", stage, "-o", "-")
    assert MARKS[stage] in said.out and said.err == ""


@pytest.mark.parametrize("emit", EMITS, ids=lambda emit: emit.word)
def test_folders_get_files_with_the_models_name(
    tmp_path: Path, dense: Path, nanoloom: Command, emit: object
) -> None:
    word, ending = emit.word, emit.ending  # type: ignore[attr-defined]
    folder = tmp_path / "made"
    folder.mkdir()
    said = compiled(nanoloom, dense, "--emit", word, "-o", folder)
    names = sorted(path.name for path in folder.iterdir())
    assert str(folder) in said.told
    if word == "object":
        assert len(names) > 2
        assert all((folder / name).read_bytes()[:4] == b"\x7fELF" for name in names)
    elif word == "shared":
        assert names == ["dense.h", "dense.so"]
    elif word == "static":
        assert names == ["dense.a", "dense.h"]
    elif word == "bare":
        assert names == ["dense.bare.h", "dense.bare.o"]
    else:
        assert names == [f"dense{ending}"]
    if word in MARKS and word != "graph":
        assert MARKS[word] in (folder / names[0]).read_text()


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("x.so", b"\x7fELF"),
        ("x", b"\x7fELF"),
        ("x.o", b"\x7fELF"),
        ("x.bare.o", b"\x7fELF"),
        ("x.a", b"!<arch>\n"),
        ("x.ll", b"; ---- kernel "),
        ("x.s", b"# ---- kernel "),
        ("x.linalg.mlir", b"#map"),
        ("x.vector.mlir", b"// ---- kernel "),
    ],
)
def test_the_ending_says_what_is_wanted(
    tmp_path: Path, dense: Path, nanoloom: Command, name: str, begins: bytes
) -> None:
    compiled(nanoloom, dense, "-o", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)
    if begins.startswith(b"\x7fELF"):
        kind = {"x.so": 3, "x": 2, "x.o": 1, "x.bare.o": 1}[name]  # ELF's numbers
        assert (tmp_path / name).read_bytes()[16] == kind


def test_an_ending_that_says_nothing(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    """As of a file that is named for its target: no library is written by chance."""
    out = tmp_path / "dense.riscv64+v"
    said = nanoloom("compile", dense, "-o", out)
    assert said.status == 2 and "ending .riscv64+v says nothing" in said.told
    assert "--emit executable" in said.told and not out.exists()
    compiled(nanoloom, dense, "-o", tmp_path / "libdense.so.1")
    assert (tmp_path / "libdense.so.1").read_bytes()[16] == 3


def test_the_graph_is_a_model(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.WITH_WEIGHT)
    path = tmp_path / "simple.onnx"
    assert nanoloom("compile", model, "-o", path).status == 0
    onnx.checker.check_model(onnx.load(path))
    x = tmp_path / "x.npy"
    np.save(x, np.ones((2, 3), np.float32))
    outputs: list[np.ndarray] = []
    for each in (model, path):
        words = ("-i", f"x={x}", "-o", f"y={tmp_path / 'y.npy'}")
        assert nanoloom("run", each, *words).status == 0
        outputs.append(np.load(tmp_path / "y.npy"))
    np.testing.assert_array_equal(*outputs)
    np.testing.assert_array_equal(outputs[0].reshape(-1), np.arange(2, 8))


def test_one_object_holds_all_kernels(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    compiled(nanoloom, dense, "-o", tmp_path / "all.o")
    names = (tmp_path / "all.o").read_bytes()
    assert b"contraction_f32_3x5x7" in names and b"elementwise_f32_3x5" in names


def test_the_library_is_for_c(tmp_path: Path, dense: Path, nanoloom: Command) -> None:
    path = tmp_path / "other.so"
    said = compiled(nanoloom, dense, "-o", path)
    assert f"wrote {path} and {path.with_suffix('.h')}" in said.told
    header = path.with_suffix(".h").read_text()
    assert "nanoloom_other_create" in header
    assert ctypes.CDLL(str(path)).nanoloom_other_create


def test_a_library_for_another_target(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    path = tmp_path / "cross.so"
    compiled(nanoloom, dense, "-o", path, "--target", "aarch64")
    assert path.read_bytes()[18] == 183  # ELF's number for AArch64
    for name, told in (
        ("z80", "no target named 'z80'"),
        ("riscv64,x86-64", "a file has code for CPUs of one kind"),
    ):
        wrong = nanoloom(
            "compile", dense, "-o", path, "-d", "batch=3", "--target", name
        )
        refused(wrong, told, status=2)


def test_nothing_is_half_written(
    tmp_path: Path, dense: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "made" / "x.linalg.mlir"
    path.parent.mkdir()
    path.write_text("before")
    monkeypatch.setattr(
        os,
        "replace",
        lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")),
    )
    said = nanoloom("compile", dense, "-o", path, "-d", "batch=3")
    monkeypatch.undo()
    refused(said, "No space left")
    assert path.read_text() == "before"
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_link_to_a_file_stays_a_link(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    real, link = tmp_path / "real.mlir", tmp_path / "link.mlir"
    real.touch()
    link.symlink_to(real)
    compiled(nanoloom, dense, "-e", "linalg", "-o", link)
    assert link.is_symlink() and "linalg.generic" in real.read_text()


@pytest.mark.parametrize("word", ["shared", "object"])
def test_no_text_no_stdout(dense: Path, nanoloom: Command, word: str) -> None:
    refused(nanoloom("compile", dense, "-o", "-", "-e", word), "no text", status=2)


def test_stdout_wants_a_stage(dense: Path, nanoloom: Command) -> None:
    refused(nanoloom("compile", dense, "-o", "-"), "--emit", "linalg", status=2)
    wrong = nanoloom("compile", dense, "-o", "x", "--emit", "mlir")
    refused(wrong, "mlir is none of graph, linalg", status=2)


def test_dimensions_without_a_number_are_sizes(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    output = tmp_path / "x.so"
    assert nanoloom("compile", dense, "-o", output, "--dim", "batch=1..9").status == 0
    words = ("--dim", "batch=9", "--json")
    assert nanoloom("run", output, *words).status == 0
    refused(nanoloom("run", output, "--dim", "batch=10"), "batch is 10, at most 9")
    text = nanoloom("compile", dense, "--emit", "kernels", "-o", tmp_path / "x.mlir")
    refused(text, "dimension batch", "--dim batch=N")
    assert nanoloom("compile", dense, "-o", output, "--dim", "batch=..9").status == 0
    for bounds in ("4..2", "..", "1..", "0..0"):
        said = nanoloom("compile", dense, "-o", output, "--dim", f"batch={bounds}")
        assert said.status in (1, 2) and "batch" in said.told


def test_values_that_decide_about_sizes_need_memory_that_grows(
    tmp_path: Path, nanoloom: Command
) -> None:
    model = models.write(tmp_path, models.BY_VALUE)
    assert nanoloom("compile", model, "-o", tmp_path / "x.so").status == 0
    refused(
        nanoloom("compile", model, "--emit", "bare", "-o", tmp_path / "x.o"),
        "the data decide about a size that has no bound, and a bare object has no",
    )


def test_an_output_that_is_an_input_is_copied(
    tmp_path: Path, nanoloom: Command
) -> None:
    model = models.write(tmp_path, "g (float[2] x) => (float[2] x) {}")
    assert nanoloom("compile", model, "-o", tmp_path / "x.so").status == 0
    x, y = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(x, np.array([1.5, -2], np.float32))
    words = ("-i", f"x={x}", "-o", f"x={y}")
    assert nanoloom("run", tmp_path / "x.so", *words).status == 0
    np.testing.assert_array_equal(np.load(y), np.load(x))


# ---- schedules


def test_schedules_go_there_and_back(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    path, library = tmp_path / "mine.schedule.mlir", tmp_path / "x.so"
    compiled(nanoloom, dense, "-o", path)
    text = path.read_text()
    assert "// ---- kernel contraction_f32_3x5x7" in text
    compiled(nanoloom, dense, "-o", library, "--schedule", path)
    assert nanoloom("run", library).status == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", ("is no MLIR",)),
        ("", ("is no Transform script",)),
        ("module {}", ("is no Transform script", "--emit schedule")),
        ("// ---- kernel cont*\nmodule {", ("kernel cont*", "is no MLIR")),
    ],
)
def test_bad_schedules(
    tmp_path: Path, dense: Path, cache: Path, text: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text(text)
    command = ("compile", dense, "-o", tmp_path / "x.so", "-d", "batch=3")
    said = child(cache, *command, "--schedule", path)
    assert said.status == 1 and "Traceback" not in said.err
    for word in words:
        assert word in said.told, (word, said.told)
    assert not (tmp_path / "x.so").exists()


def test_a_schedule_that_is_not_there(tmp_path: Path, dense: Path, cache: Path) -> None:
    command = ("compile", dense, "-o", tmp_path / "x.so", "-d", "batch=3")
    said = child(cache, *command, "--schedule", tmp_path / "none.mlir")
    assert said.status == 1 and "cannot be read: No such file" in said.told


def test_a_schedule_that_makes_mlir_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "ReadScript", lambda _: Dies(signal.SIGSEGV))
    told = "mine: kernel k: makes MLIR crash; begin with what --emit schedule writes"
    with pytest.raises(InputError, match=told):
        check_script("module {}", "mine: kernel k")


def child(cache: Path, *words: object) -> Said:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "nanoloom", *map(str, words)]
    environment = {**os.environ, "NANOLOOM_CACHE": str(cache)}
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    return Said(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize(
    ("words", "name"), [((), "other"), (("--name", "mine"), "mine")]
)
def test_the_name_in_a_library(
    tmp_path: Path, nanoloom: Command, words: tuple[str, ...], name: str
) -> None:
    model, out = models.write(tmp_path, models.RELU), tmp_path / "other.so"
    said = nanoloom("compile", model, "-d", "batch=2", "-o", out, *words)
    assert said.status == 0, said
    assert f"nanoloom_{name}_create(" in out.with_suffix(".h").read_text()


def test_an_unknown_target_is_wrong_usage(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.RELU)
    for target in ("foo", "haswell,foo"):
        said = nanoloom("compile", model, "-o", tmp_path / "m.so", "--target", target)
        assert said.status == 2 and "foo" in said.told, said
