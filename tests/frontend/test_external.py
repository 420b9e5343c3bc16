"""Weights in files beside the model: mapped, and nothing else is ever opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from nanoloom.errors import ModelError
from nanoloom.frontend.mapped_tensors import MappedTensor
from nanoloom.frontend.onnx import external_files, load
from tests.frontend import models

SIZE = 37 * 53 * 4


def save(folder: Path, **facts: str | None) -> Path:
    """A model whose weight w is in weights.bin at byte 10.  facts: changed entries."""
    folder.mkdir(parents=True, exist_ok=True)
    proto = models.linear()
    tensor = proto.graph.initializer[0]
    (folder / "weights.bin").write_bytes(b"0123456789" + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entries = {"location": "weights.bin", "offset": "10", "length": str(SIZE), **facts}
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def weight(source: Path | ir.Model) -> MappedTensor:
    tensor = load(source).graph.initializers["w"].const_value
    assert isinstance(tensor, MappedTensor)
    return tensor


WANTED = numpy_helper.to_array(models.linear().graph.initializer[0])


@pytest.mark.parametrize("length", (str(SIZE), None))
def test_weights_are_mapped(length: str | None, tmp_path: Path) -> None:
    got = weight(save(tmp_path, length=length)).numpy()
    np.testing.assert_array_equal(got, WANTED)
    assert not got.flags.aligned  # at byte 10, of four-byte elements


def test_a_model_opened_by_onnx_ir(tmp_path: Path) -> None:
    got = weight(ir.load(save(tmp_path))).numpy()
    np.testing.assert_array_equal(got, WANTED)


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path)
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(weight(Path("model.onnx")).numpy(), WANTED)


def test_one_mapping_for_a_file(tmp_path: Path) -> None:
    path = save(tmp_path)
    proto = onnx.load(path, load_external_data=False)
    second = proto.graph.initializer.add()
    second.CopyFrom(proto.graph.initializer[0])
    second.name = "again"
    path.write_bytes(proto.SerializeToString())
    weights = load(path).graph.initializers
    first, other = weights["w"].const_value, weights["again"].const_value
    assert isinstance(first, MappedTensor) and isinstance(other, MappedTensor)
    assert first.region.buffer is other.region.buffer


def test_a_link_inside_the_folder(tmp_path: Path) -> None:
    path = save(tmp_path)
    (tmp_path / "weights.bin").rename(tmp_path / "real.bin")
    (tmp_path / "weights.bin").symlink_to("real.bin")
    np.testing.assert_array_equal(weight(path).numpy(), WANTED)


def test_a_download_cache(tmp_path: Path) -> None:
    """Model and weights are links into one folder of blobs, as hubs store them."""
    save(tmp_path / "blobs")
    snapshot = tmp_path / "snapshots" / "main"
    snapshot.mkdir(parents=True)
    for name in ("model.onnx", "weights.bin"):
        (snapshot / name).symlink_to(Path("../../blobs") / name)
    np.testing.assert_array_equal(weight(snapshot / "model.onnx").numpy(), WANTED)


def test_a_hard_link(tmp_path: Path) -> None:
    path = save(tmp_path)
    os.link(tmp_path / "weights.bin", tmp_path / "other.bin")
    np.testing.assert_array_equal(weight(path).numpy(), WANTED)


def link_out(folder: Path) -> None:
    (folder.parent / "secret").write_bytes(b"x" * 2 * SIZE)
    (folder / "weights.bin").unlink()
    (folder / "weights.bin").symlink_to("../secret")


def link_circle(folder: Path) -> None:
    (folder / "weights.bin").unlink()
    (folder / "weights.bin").symlink_to("weights.bin")


def nothing(folder: Path) -> None:
    return


def make_pipe(folder: Path) -> None:
    (folder / "weights.bin").unlink()
    os.mkfifo(folder / "weights.bin")


def shorten(folder: Path) -> None:
    (folder / "weights.bin").write_bytes(b"x" * SIZE)


def empty(folder: Path) -> None:
    (folder / "weights.bin").write_bytes(b"")


OUTSIDE = "is outside of the model's folder"
FAULTS: list[tuple[Callable[[Path], None], dict[str, str | None], str]] = [
    (lambda f: (f / "weights.bin").unlink(), {}, "no such weight file 'weights.bin'"),
    (nothing, {"location": "/etc/passwd"}, OUTSIDE),
    (nothing, {"location": "../secret"}, OUTSIDE),
    (nothing, {"location": "a/../../secret"}, OUTSIDE),
    (nothing, {"location": ""}, "does not name its weight file"),
    (nothing, {"location": None}, "does not name its weight file"),
    (nothing, {"location": "a\0b"}, "does not name its weight file"),
    (nothing, {"location": "a\nb"}, "no such weight file 'a\\nb'"),
    (nothing, {"location": "."}, "is a directory"),
    (link_out, {}, OUTSIDE),
    (link_circle, {}, ""),
    (make_pipe, {}, "is a pipe or a device"),
    (shorten, {}, f"needs bytes 10 to {SIZE + 10} of 'weights.bin', which has {SIZE}"),
    (empty, {}, "which has 0"),
    (nothing, {"offset": "11"}, f"needs bytes 11 to {SIZE + 11} of 'weights.bin'"),
    (nothing, {"offset": "-1"}, "with the offset '-1', not a number of bytes"),
    (nothing, {"offset": "9" * 400}, "not a number of bytes"),
    (nothing, {"offset": "ten"}, "with the offset 'ten'"),
    (nothing, {"length": "x"}, "with the length 'x'"),
    (nothing, {"length": str(SIZE - 1)}, f"has {SIZE - 1} bytes of data and its shape"),
]


@pytest.mark.parametrize(("change", "facts", "words"), FAULTS)
def test_refusals(change, facts, words: str, tmp_path: Path) -> None:
    path = save(tmp_path / "model", **facts)
    change(path.parent)
    with pytest.raises(ModelError) as caught:
        load(path)
    text = str(caught.value)
    assert words in text
    assert text.startswith(f"{path}: weight w: ")
    assert "\n" not in text


def test_a_model_in_memory_has_no_folder(tmp_path: Path) -> None:
    content = save(tmp_path).read_bytes()
    with pytest.raises(ModelError, match=r"give the path of the \.onnx file instead"):
        load(content)


def test_data_in_two_places(tmp_path: Path) -> None:
    proto = onnx.load(save(tmp_path), load_external_data=False)
    proto.graph.initializer[0].float_data.append(1.0)
    with pytest.raises(ModelError, match="in another file and in float_data"):
        load(proto)


def test_names_of_the_weight_files(tmp_path: Path) -> None:
    path = save(tmp_path)
    assert external_files(path) == ["weights.bin"]
    path.write_bytes(models.linear().SerializeToString())
    assert external_files(path) == []


def test_the_name_of_a_weight_file_is_text(tmp_path: Path) -> None:
    path = save(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"weights.bin", b"weight\xff.bin"))
    for use in (load, external_files):
        with pytest.raises(ModelError, match="a value in it is not UTF-8"):
            use(path)
