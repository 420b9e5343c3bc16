"""A file that is no model is refused in one sentence that says what it is."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from nanoloom.errors import Error, ModelError
from nanoloom.frontend.onnx import load
from tests.frontend import models
from tests.frontend.models import refusal


def test_missing_file_with_a_similar_name(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    text = refusal(tmp_path / "modle.onnx")
    assert "modle.onnx: no such model file" in text
    assert f"did you mean {tmp_path / 'model.onnx'}?" in text


def test_missing_folder(tmp_path: Path) -> None:
    assert f"there is no folder {tmp_path / 'no'}" in refusal(
        tmp_path / "no" / "m.onnx"
    )


def test_a_folder(tmp_path: Path) -> None:
    assert "is a directory, no model file; give a file" in refusal(tmp_path)
    (tmp_path / "model.onnx").touch()
    assert "is a directory" in (text := refusal(tmp_path))
    assert "give one of its models: model.onnx" in text


def test_a_link_to_nothing(tmp_path: Path) -> None:
    (link := tmp_path / "m.onnx").symlink_to("gone.onnx")
    assert "is a link to gone.onnx, and nothing is there" in refusal(link)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").touch()
    assert "m.onnx: is empty" in refusal(tmp_path / "m.onnx")
    assert "model: is empty" in refusal(b"")


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    assert "is a pipe or a device" in refusal(tmp_path / "m.onnx")


def test_impossible_names(tmp_path: Path) -> None:
    assert "cannot open" in str(error_of("a\0b"))
    assert "cannot open" in str(error_of("x" * 5000))
    (tmp_path / "file").touch()
    assert "cannot open" in str(error_of(tmp_path / "file" / "m.onnx"))


def error_of(source: str | Path) -> Error:
    with pytest.raises(ModelError) as caught:
        load(source)
    return caught.value


CONTENTS = {
    b"version https://git-lfs.github.com/spec/v1\noid": "Git LFS pointer",
    b"\x80\x04\x95abc": "a Python pickle",
    b"\x1f\x8b\x08\x00": "gzip-compressed",
    b"\x89HDF\r\n\x1a\n": "HDF5",
    b"\x1c\x00\x00\x00TFL3": "TensorFlow Lite",
    b"GGUF\x03": "GGUF",
    b"\x7fELF\x02": "a program or library",
    b"\x93NUMPY\x01\x00": "a numpy array",
    b'\x40\x00\x00\x00\x00\x00\x00\x00{"a"': "safetensors",
    b"module {\n func.func @main()": "text (it begins with 'module { func.func @main')",
    b'{"a": 1}': "text",
    b"<!DOCTYPE html>": "text",
    # The first letters of these are tags of a model's fields.
    b"root:x:0:0:root:/root:/bin/bash\n" * 3: "text (it begins with 'root:x:0:0:root",
    b'"quoted" words': "text",
    b"2 + 2": "text",
    b"Bert, a transformer": "text",
    b"(defun f ())": "text",
    b":- model.": "text",
    b"\xff\xfe\xfd\x01\x02": "of an unknown format",
    b"\x00": "of an unknown format",
}


@pytest.mark.parametrize("content", CONTENTS)
def test_other_formats_are_recognized(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    text = refusal(tmp_path / "m.onnx")
    assert "m.onnx: is not an ONNX model but " in text
    assert CONTENTS[content] in text


def test_a_pytorch_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as archive:
        archive.writestr("data.pkl", "x")
    text = refusal(tmp_path / "m.pt")
    assert "a zip archive (PyTorch saves .pt files so)" in text
    assert "torch.onnx.export" in text


def test_cut_off_inside_the_weights(tmp_path: Path) -> None:
    content = models.linear().SerializeToString()
    (tmp_path / "m.onnx").write_bytes(content[:3000])
    text = refusal(tmp_path / "m.onnx")
    assert "the file is cut off" in text
    assert "fetch or export it again" in text
