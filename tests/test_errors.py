"""The border to the user: nothing but nanoloom.Error comes out."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import InternalError, ModelError, explained, noting, public


def test_an_error_passes_as_it_is() -> None:
    @public
    def fail() -> None:
        raise ModelError("is empty", where="model")

    with pytest.raises(ModelError, match=r"^model: is empty$") as found:
        fail()
    assert found.value.__cause__ is None


def test_any_other_is_a_bug_with_its_place_and_cause() -> None:
    @public
    def fail() -> None:
        with noting("stage linalg"), noting("node a (Relu)"):
            raise IndexError("a secret")

    with pytest.raises(InternalError) as found:
        fail()
    assert found.value.where == "stage linalg, node a (Relu)"
    assert "bug of nanoloom (IndexError)" in str(found.value)
    assert isinstance(found.value.__cause__, IndexError)


def test_the_machine_is_no_bug() -> None:
    full = explained(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x"))
    assert str(full) == "/x: No space left on device"
    assert "memory" in str(explained(MemoryError()))
    assert not isinstance(full, InternalError)
    assert isinstance(explained(OSError(errno.EINVAL, "?")), InternalError)


def test_a_wrong_call_stays_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        nanoloom.compile(b"", nonsense=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("model", [None, 3, [], {}, np.zeros(3), "\0", b""])
def test_what_is_no_model(model: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        nanoloom.compile(model, cache=Cache(tmp_path))


@pytest.mark.parametrize("path", [None, 3, "", "/", "\0", os.devnull])
def test_what_is_no_path(path: Any, tmp_path: Path) -> None:
    text = "agraph (float[2] x) => (float[2] y) { y = Relu(x) }"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 19]> {text}')
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    for use in (program.save, nanoloom.load):
        with pytest.raises(nanoloom.Error) as found:
            use(path)
        assert not isinstance(found.value, InternalError)
    assert Path(os.devnull).is_char_device()


def test_weights_that_vanish_between_two_looks(tmp_path: Path) -> None:
    w = onnx.numpy_helper.from_array(np.ones((30, 30), np.float32), "w")
    text = "g (float[1, 30] x) => (float[1, 30] y) { y = MatMul(x, w) }"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 19]> {text}')
    model.graph.initializer.append(w)
    file, cache = tmp_path / "model.onnx", Cache(tmp_path / "cache")
    onnx.save(
        model, file, save_as_external_data=True, location="w.bin", size_threshold=9
    )
    assert nanoloom.compile(file, cache=cache)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ModelError, match=r"no such weight file 'w\.bin'"):
        nanoloom.compile(file, cache=cache)
