"""Every mistake of a user: one sentence on stderr, its exit status, no traceback."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli import models
from tests.cli.conftest import Command, Said


def refused(said: Said, *words: str, status: int = 1) -> None:
    """Exactly one sentence that holds the words; a usage error has its frame."""
    assert said.status == status, said
    assert "Traceback" not in said.err and "bug" not in said.err, said.err
    for word in words:
        assert word in said.told, (word, said.told)
    if status == 1:
        assert said.err.startswith("nanoloom: ") and said.err.count("\n") == 1, said.err
        assert said.out == ""


def text_file(folder: Path) -> Path:
    (folder / "model.onnx").write_text("hello, this is no model")
    return folder / "model.onnx"


def truncated(folder: Path) -> Path:
    path = models.write(folder, models.WITH_WEIGHT)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return path


def empty(folder: Path) -> Path:
    (folder / "model.onnx").touch()
    return folder / "model.onnx"


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "model.onnx")
    return folder / "model.onnx"


def lost_weights(folder: Path) -> Path:
    path = models.write_external(folder)
    (folder / "weights.bin").unlink()
    return path


def short_weights(folder: Path) -> Path:
    path = models.write_external(folder)
    (folder / "weights.bin").write_bytes(b"1234")
    return path


def escaping(folder: Path) -> Path:
    inner = folder / "inner"
    inner.mkdir()
    (folder / "weights.bin").write_bytes(bytes(24))
    return models.write_external(inner, "../weights.bin")


def absolute(folder: Path) -> Path:
    return models.write_external(folder, "/etc/passwd")


def of(text: str, opset: int = 0) -> Callable[[Path], Path]:
    return lambda folder: models.write(folder, text, opset=opset)


BAD_MODELS: dict[str, tuple[Callable[[Path], Path], tuple[str, ...]]] = {
    "missing": (lambda folder: folder / "model.onnx", ("no such model file",)),
    "folder": (lambda folder: folder, ("is a directory",)),
    "pipe": (fifo, ("pipe or a device", "copy it to a file")),
    "text": (text_file, ("is not an ONNX model but text", "hello")),
    "truncated": (truncated, ("cut off", "again")),
    "empty": (empty, ("is empty",)),
    "opset 99": (of(models.RELU, 99), ("opset 99 is not supported",)),
    "opset 3": (of(models.RELU, 3), ("opset 3 is not supported",)),
    "operator": (of(models.UNKNOWN), ("Rellu_0", "did you mean Relu?")),
    "domain": (of(models.FOREIGN), ("Foo_0", "my.ops::Foo", "is unknown")),
    "complex": (of(models.COMPLEX), ("COMPLEX64",)),
    "shapes": (of(models.DATA_DEPENDENT), ("NonZero", "depends on the data")),
    "lost weights": (lost_weights, ("no such", "weights.bin")),
    "short weights": (short_weights, ("weights.bin", "which has 4")),
    "escaping weights": (escaping, ("outside of the model's folder",)),
    "absolute weights": (absolute, ("outside of the model's folder",)),
}


@pytest.mark.parametrize("verb", ["run", "verify", "bench"])
@pytest.mark.parametrize("name", BAD_MODELS)
def test_models(tmp_path: Path, nanoloom: Command, name: str, verb: str) -> None:
    make, words = BAD_MODELS[name]
    dims = ("-d", "batch=2") if name.startswith("opset") else ()
    refused(nanoloom(verb, make(tmp_path), *dims), *words)


@pytest.mark.parametrize("name", BAD_MODELS)
def test_models_that_do_not_compile(
    tmp_path: Path, nanoloom: Command, name: str
) -> None:
    make, words = BAD_MODELS[name]
    out = tmp_path / "made.so"
    refused(nanoloom("compile", make(tmp_path), "-o", out), *words)
    assert not out.exists()


@pytest.mark.parametrize("verb", ["compile --emit graph", "quantize --weights 4"])
def test_the_model_itself_is_not_written(
    tmp_path: Path, nanoloom: Command, verb: str
) -> None:
    """A link to it, too: what was read would be gone."""
    path = models.write(tmp_path, models.DENSE)
    (link := tmp_path / "link.onnx").symlink_to(path)
    before, (word, *more) = path.read_bytes(), verb.split()
    for out in (path, link):
        told = nanoloom(word, path, *more, "-d", "batch=2", "-o", out)
        refused(told, f"{out}: is the model itself; name another file")
    assert path.read_bytes() == before


def pickled(file: Path) -> None:
    np.save(file, np.array([{}], object), allow_pickle=True)


def cut_short(file: Path) -> None:
    np.save(file, np.zeros((2, 3), np.float32))
    file.write_bytes(file.read_bytes()[:-4])


def archive(file: Path) -> None:
    with file.open("wb") as opened:
        np.savez(opened, x=np.zeros(3))


def array(shape: tuple[int, ...], dtype: object) -> Callable[[Path], None]:
    return lambda file: np.save(file, np.zeros(shape, dtype))


BAD_FILES: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "missing": (lambda file: None, ("x.npy: no such input file",)),
    "folder": (Path.mkdir, ("x.npy: is a directory",)),
    "text": (lambda file: file.write_text("nope"), ("x.npy: is no .npy file",)),
    "empty": (Path.touch, ("x.npy: is no .npy file",)),
    "pickled": (pickled, ("pickled", "never loaded")),
    "cut short": (cut_short, ("cut off",)),
    "archive": (archive, ("archive (.npz)",)),
    "type": (array((2, 3), np.float64), ("input x: is float64 2x3", "float32 batchx3")),
    "shape": (array((2, 4), np.float32), ("is float32 2x4", "float32 batchx3")),
    "rank": (array((3,), np.float32), ("is float32 3", "float32 batchx3")),
    "byte order": (array((2, 3), ">f4"), ("big-endian",)),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_input_files(tmp_path: Path, nanoloom: Command, name: str) -> None:
    make, words = BAD_FILES[name]
    make(tmp_path / "x.npy")
    model = models.write(tmp_path, models.RELU)
    refused(nanoloom("run", model, "-i", f"x={tmp_path / 'x.npy'}"), *words)


BAD_WORDS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "no dimension": ((), 1, ("dimension batch", "add --dim batch=N")),
    "unknown dimension": (("-d", "bach=2"), 1, ("no dimension bach", "it has batch")),
    "input and dim": (("-i", "x={x}", "-d", "batch=5"), 1, ("batch is 2", "5")),
    "unknown input": (("-i", "q={x}"), 1, ("no input q", "it takes x (float32")),
    "unknown output": (("-d", "batch=2", "-o", "q=q.npy"), 1, ("no output q", "y")),
    "word as number": (("-d", "batch=two"), 2, ("batch=two", "whole number")),
    "negative": (("-d", "batch=-1"), 2, ("batch=-1", "whole number")),
    "no bound": (("-d", "batch=1..x"), 2, ("batch=1..x", "whole number")),
    "huge": (("-d", "batch=" + "9" * 30), 2, ("whole number",)),
    "too large": (("-d", "batch=99999999999"), 1, ("memory",)),
    "no equals sign": (("-d", "batch"), 2, ("'batch' is not like batch=2",)),
    "no file": (("-i", "x="), 2, ("'x=' is not like NAME=FILE.npy",)),
    "twice": (("-i", "x={x}", "-i", "x={x}"), 2, ("x is given twice",)),
    "empty output": (("-d", "batch=2", "-o", ""), 2, ("-o is empty",)),
    "empty option": (("-d", "batch=2", "--cache="), 2, ("--cache is empty",)),
    "empty argument": (("",), 2, ("an argument is empty; give a value",)),
    "no threads": (("-t", "0"), 2, ("--threads",)),
    "precision": (("--precision", "f8"), 2, ("f8 is none of f32",)),
    "option": (("--fast",), 2, ("--fast",)),
    "seed": (("--seed", "-1"), 2, ("--seed",)),
}


@pytest.mark.parametrize("name", BAD_WORDS)
def test_words(tmp_path: Path, nanoloom: Command, name: str) -> None:
    given, status, words = BAD_WORDS[name]
    x = tmp_path / "x.npy"
    np.save(x, np.zeros((2, 3), np.float32))
    model = models.write(tmp_path, models.RELU)
    said = nanoloom("run", model, *(word.format(x=x) for word in given))
    refused(said, *words, status=status)


@pytest.mark.parametrize("verb", ["run", "compile", "check", "verify", "bench"])
def test_no_model(nanoloom: Command, verb: str) -> None:
    refused(nanoloom(verb), "Missing argument", "MODEL", status=2)


def test_no_such_verb(nanoloom: Command) -> None:
    refused(nanoloom("rum", "model.onnx"), "No such command 'rum'", status=2)


def test_a_cache_that_is_a_file(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.NO_INPUT)
    refused(nanoloom("run", model, "--cache", model), "is a file", status=2)


@pytest.mark.parametrize("number", [b"\x3e\x00", b"\xb7\x00", b"\xf3\x00"])
def test_a_library_for_another_machine(
    tmp_path: Path, nanoloom: Command, number: bytes
) -> None:
    library = tmp_path / "alien.so"
    library.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(11) + number + bytes(100))
    said = nanoloom("run", library)
    assert said.status == 1 and "Traceback" not in said.err
    assert "is compiled for" in said.err or "is no library of nanoloom" in said.err


# ---- places


@pytest.mark.parametrize(
    ("out", "words", "status"),
    [
        ("made", "--session: is for .so and .a alone", 2),
        ("made.s", "--session: is for .so and .a alone", 2),
        ("made.so", "named past and present; say which belong together, in Python", 1),
    ],
)
def test_sessions(
    tmp_path: Path, nanoloom: Command, out: str, words: str, status: int
) -> None:
    model = models.write(tmp_path, models.RELU)
    said = nanoloom("compile", model, "--session", "-o", tmp_path / out)
    refused(said, words, status=status)


def test_an_output_folder_that_is_not_there(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.NO_INPUT)
    file = tmp_path / "nowhere" / "y.npy"
    refused(nanoloom("run", model, "-o", f"y={file}"), "no folder", "mkdir -p")
    so = tmp_path / "nowhere" / "y.so"
    refused(nanoloom("compile", model, "-o", so), "no folder", "mkdir -p")
    deep = tmp_path / "nowhere" / "deeper"
    refused(nanoloom("run", model, "-o", deep), "mkdir -p")


UNWRITABLE = {
    "run -o {}/y.npy": "/proc",
    "run -o {}": "/proc",
    "compile -o {}/y": "/proc",
    "compile -o {}/y.so": "/proc",
    "compile -e linalg -o {}/y.mlir": "/proc",
    "compile -e all -o {}/all": "/proc",
    "run -o y={}/y.npy": "/etc/passwd",
    "compile -o {}/x": "/etc/passwd",
    "compile -e asm -o {}/x/y.s": "/etc/passwd",
}


@pytest.mark.parametrize("words", UNWRITABLE)
def test_where_nothing_can_be_written(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """Found before anything is compiled; no folder is advised that cannot be made."""

    def compiled(*_: object) -> None:
        raise AssertionError("compiled for nothing")

    monkeypatch.setattr("nanoloom.compiler.partition_model", compiled)
    model, place = models.write(tmp_path, models.NO_INPUT), UNWRITABLE[words]
    verb, *others = words.format(place).split()
    said = nanoloom(verb, model, *others, "--no-cache")
    why = "can be made in /proc" if place == "/proc" else f"{place} is a file"
    refused(said, "cannot be written", why)
    assert "mkdir" not in said.err


def test_an_output_that_is_a_folder(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.NO_INPUT)
    refused(nanoloom("run", model, "-o", f"y={tmp_path}"), "is a folder", "name a file")


def test_an_output_folder_that_is_a_file(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.NO_INPUT)
    refused(nanoloom("run", model, "-o", model), "is a file", "name a folder")


def test_a_library_over_a_device(tmp_path: Path, nanoloom: Command) -> None:
    """A pipe in this test: what fails would replace /dev/null for all programs."""
    model = models.write(tmp_path, models.NO_INPUT)
    os.mkfifo(pipe := tmp_path / "pipe")
    refused(nanoloom("compile", model, "-o", pipe), "pipe or a device")
    assert pipe.is_fifo()


def test_a_full_disk(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.NO_INPUT)
    full = Path("/dev/full")
    refused(nanoloom("run", model, "-o", f"y={full}"), "No space left")
    words = ("compile", model, "-e", "linalg", "-o", full)
    refused(nanoloom(*words), "No space left")
    assert stat.S_ISCHR(full.stat().st_mode)


def test_two_folders_for_outputs(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.NO_INPUT)
    words = ("-o", tmp_path / "a", "-o", tmp_path / "b")
    refused(nanoloom("run", model, *words), "given twice", status=2)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (
            "input x: is list, which the command line cannot give",
            "g (seq(float[n]) x) => (int64 k) { k = SequenceLength(x) }",
        ),
        (
            "the command line cannot look into strings, as StringConcat do",
            "g (string[n] x) => (string[n] y) { y = StringConcat(x, x) }",
        ),
    ],
)
def test_what_python_alone_can_give(
    said: str, text: str, tmp_path: Path, nanoloom: Command
) -> None:
    head = '<ir_version: 8, opset_import: ["": 20]>'
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(head + text).SerializeToString())
    refused(nanoloom("run", path), said)


def test_the_demos_folder_is_a_file(tmp_path: Path, nanoloom: Command) -> None:
    file = tmp_path / "text.txt"
    file.write_text("kept")
    said = nanoloom("demo", "--folder", file)
    assert said.status == 1
    assert said.err == f"nanoloom: {file}: is a file; name a folder\n"
    assert file.read_text() == "kept"
