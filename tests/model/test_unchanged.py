"""A file that changes behind a program: the other model has no part in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import InputError

X = np.ones((2, 4), np.float32)
CHANGED = "has changed since the program was compiled"


def write(path: Path, factor: int) -> None:
    """y = factor * x, the factor in a file of its own."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["": 21]>
        g (float[n, 4] x) => (float[n, 4] y)
        <float[4] w = {{{factor}, {factor}, {factor}, {factor}}}> {{ y = Mul(x, w) }}
    """)
    (w,) = model.graph.initializer
    array = onnx.numpy_helper.to_array(w)
    w.CopyFrom(onnx.numpy_helper.from_array(array, "w"))
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="w")


@pytest.mark.parametrize("is_known", [False, True])
def test_a_changed_file_is_not_saved(tmp_path: Path, is_known: bool) -> None:
    """is_known: the code is in the cache, so that the model is not read before."""
    path, cache = tmp_path / "m.onnx", Cache(tmp_path / "cache")
    write(path, 2)
    if is_known:
        nanoloom.compile(path, cache=cache).save(tmp_path / "before.so")
    program = nanoloom.compile(path, cache=cache)
    (tmp_path / "w").unlink()
    write(path, 3)
    with pytest.raises(InputError, match=CHANGED):
        program.save(tmp_path / "m.so")
    with pytest.raises(InputError, match=CHANGED):
        program.save(tmp_path / "m.so")
    saved = nanoloom.compile(path, cache=cache).save(tmp_path / "m.so")
    assert (nanoloom.load(saved)({"x": X})["y"] == 3).all()
    (tmp_path / "w").unlink()
    write(path, 2)
    program.save(saved)
    assert (nanoloom.load(saved)({"x": X})["y"] == 2).all()


def test_a_changed_file_is_not_compiled_for_other_sizes(tmp_path: Path) -> None:
    """Its code would be kept under the name of the one before."""
    path, cache = tmp_path / "m.onnx", Cache(tmp_path / "cache")
    write(path, 2)
    known = nanoloom.compile(path, cache=cache, dims={"n": 2})
    assert (known({"x": X})["y"] == 2).all()
    program = nanoloom.compile(path, cache=cache)
    write(path, 3)
    with pytest.raises(InputError, match=CHANGED):
        program({"x": X[:1]})
