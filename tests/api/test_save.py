"""What is saved: by which ending, for which shapes, and with whatever names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.api.program import Program
from nanoloom.errors import Error, InputError
from tests.cpp.test_header import compiler

NAMES = ("n*/2", 'a.b"', "a_b\\", "größe")


def program(*names: str) -> Program:
    """Numbers with the other sign, of so many open sizes."""
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, names)
        for name in ("x", "y")
    ]
    node = helper.make_node("Neg", ["x"], ["y"])
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    opset = helper.make_opsetid("", 21)
    return nanoloom.compile(helper.make_model(graph, opset_imports=[opset]))


def test_names_of_sizes_are_texts(tmp_path: Path) -> None:
    """Whatever they are: the library's own, and in a header that compiles."""
    library = program(*NAMES).save(tmp_path / "strange.so")
    x = np.arange(2.0, dtype=np.float32).reshape((1,) * (len(NAMES) - 1) + (2,))
    assert (nanoloom.load(library)({"x": x})["y"] == -x).all()
    with pytest.raises(InputError, match="größe"):
        nanoloom.load(library)({"x": x.reshape(-1)})
    (tmp_path / "all.cpp").write_text('#include "strange.h"\n')
    words = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-c", "-o", "all.o"]
    subprocess.run([*compiler(), *words, "all.cpp"], check=True, cwd=tmp_path)


def test_an_archive_is_one(tmp_path: Path) -> None:
    made = program("n")
    assert made.save(tmp_path / "m.a").read_bytes().startswith(b"!<arch>\n")
    shared = made.save(tmp_path / "n.a", form="shared")
    assert shared.read_bytes().startswith(b"\x7fELF")
    with pytest.raises(Error, match=r"form is one of .*, not 'dynamic'"):
        made.save(tmp_path / "m.so", form="dynamic")  # type: ignore[arg-type] # refused


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ([3], "shapes: are a list"),
        ({"y": (3,)}, "shapes: y is no input; the model takes x"),
        ({"x": np.ones(3)}, r"input x: a ndarray is no shape; .*: \(3,\)"),
        ({"x": 3}, "input x: 3 is no shape; give whole numbers"),
        ({"x": ("n",)}, r"input x: \('n',\) is no shape; give whole numbers"),
        ({"x": (2.5,)}, "is no shape; give whole numbers"),
        ({"x": (-1,)}, "is no shape; a size is at least 0"),
    ],
)
def test_what_is_no_shape(shapes: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        program("n").save(tmp_path / "m.so", shapes=shapes)  # type: ignore[arg-type] # refused


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    library = program("n").save(tmp_path / "m.so", shapes={"x": (np.int64(3),)})  # type: ignore[dict-item] # taken
    assert nanoloom.load(library).inputs[0].shape == (3,)


def test_the_model_is_not_replaced(tmp_path: Path) -> None:
    """Nor by another name of its file."""
    model = tmp_path / "model.onnx"
    info = [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n"]) for x in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])], "g", info[:1], info[1:]
    )
    opset = helper.make_opsetid("", 21)
    onnx.save(helper.make_model(graph, opset_imports=[opset]), model)
    (tmp_path / "other.so").hardlink_to(model)
    before, made = model.read_bytes(), nanoloom.compile(model)
    for path in (model, tmp_path / "other.so"):
        with pytest.raises(InputError, match="is the model's own file; name another"):
            made.save(path)
    assert model.read_bytes() == before
