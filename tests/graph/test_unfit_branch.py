"""An If whose one branch cannot run for these sizes: an error where it is taken."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import ModelError

HEAD = '<ir_version: 10, opset_import: ["" : 18]>'
OUT_OF_RANGE = 5
UNFIT = {  # what cannot be done with float[2, 3]: nodes that make `made`
    "Squeeze": "axes = Constant <value = int64[1] {0}> () made = Squeeze (x, axes)",
    "Split": "sizes = Constant <value = int64[2] {3, 1}> ()"
    " made, rest = Split <axis = 1> (x, sizes)",
    "Reshape": "to = Constant <value = int64[2] {-1, 4}> () made = Reshape (x, to)",
    "MatMul": "made = MatMul (x, x)",
    "Concat": "long = Constant <value = float[5, 1] {1, 2, 3, 4, 5}> ()"
    " made = Concat <axis = 1> (x, long)",
    "RNN": "made, last = RNN <hidden_size = 3> (x, w, w)",
    "Gather": "at = Constant <value = int64[2] {7, 0}> ()"
    " made = Gather <axis = 0> (x, at)",
    "Gather from nothing": "at = Constant <value = int64[2] {0, 0}> ()"
    " end = Constant <value = int64[1] {2}> ()"
    " none = Slice (x, end, end) made = Gather <axis = 0> (none, at)",
}


def model(operator: str, *, first: bool = True) -> str:
    unfit = f"unfit () => (float[k, l] made) {{ {UNFIT[operator]} }}"
    fit = "fit () => (float[2, 3] twice) { twice = Add (x, x) }"
    then, other = (unfit, fit) if first else (fit, unfit)
    return f"""{HEAD} g (float[2, 3] x, float[1, 3, 3] w, bool on) => (float[2, 3] y) {{
        kept = If (on) <then_branch = {then}, else_branch = {other}>
        y = Neg (kept)
    }}"""


@pytest.mark.drawn
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("operator", UNFIT)
def test_the_branch_that_fits(operator: str, first: bool, tmp_path: Path) -> None:
    text = parser.parse_model(model(operator, first=first))
    program = nanoloom.compile(text, cache=Cache(tmp_path))
    rng = np.random.default_rng(0)
    given = {
        "x": rng.standard_normal((2, 3)).astype(np.float32),
        "w": rng.standard_normal((1, 3, 3)).astype(np.float32),
    }
    for _ in range(2):  # and what failed leaves nothing behind
        made = program({**given, "on": np.array(not first)})["y"]
        assert np.array_equal(made, -2 * given["x"])
        kind = operator.split()[0]
        with pytest.raises(nanoloom.InputError, match=rf"node .*\({kind}\): \S+"):
            program({**given, "on": np.array(first)})


def test_neither_branch_fits(tmp_path: Path) -> None:
    text = model("MatMul").replace("Add (x, x)", "MatMul (x, x)")
    with pytest.raises(ModelError, match="do not fit together"):
        nanoloom.compile(parser.parse_model(text), cache=Cache(tmp_path))


def test_a_known_condition(tmp_path: Path) -> None:
    text = model("MatMul").replace("bool on", "bool off")
    text = text.replace("kept =", "on = Constant <value = bool {0}> () kept =")
    program = nanoloom.compile(parser.parse_model(text), cache=Cache(tmp_path))
    x = np.ones((2, 3), np.float32)
    given = {"x": x, "w": np.ones((1, 3, 3), np.float32), "off": np.array(True)}
    assert np.array_equal(program(given)["y"], -2 * x)


def test_unchecked_programs_fail_too(tmp_path: Path) -> None:
    text = parser.parse_model(model("Squeeze"))
    program = nanoloom.compile(text, cache=Cache(tmp_path), checked=False)
    x, w = np.ones((2, 3), np.float32), np.ones((1, 3, 3), np.float32)
    with pytest.raises(nanoloom.InputError, match="Squeeze"):
        program({"x": x, "w": w, "on": np.array(True)})


def test_an_executable_says_it(tmp_path: Path) -> None:
    program = nanoloom.compile(
        parser.parse_model(model("Squeeze")), cache=Cache(tmp_path)
    )
    path = program.save(tmp_path / "model", form="executable")
    given = {"x": np.ones((2, 3), np.float32), "w": np.ones((1, 3, 3), np.float32)}
    files: list[Path] = []
    for name, array in {**given, "on": np.array(True)}.items():
        files.append(tmp_path / f"{name}.npy")
        np.save(files[-1], array)
    done = subprocess.run([path, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "node If_0/Squeeze_1 (Squeeze): its inputs do not fit" in done.stderr
    np.save(files[-1], np.array(False))
    assert subprocess.run([path, *files], cwd=tmp_path, check=False).returncode == 0


def test_a_library_says_it(tmp_path: Path) -> None:
    program = nanoloom.compile(
        parser.parse_model(model("Squeeze")), cache=Cache(tmp_path)
    )
    library = ctypes.CDLL(str(program.save(tmp_path / "model.so")))
    library.nanoloom_model_create.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(library.nanoloom_model_create(1))
    x, w, y = (np.ones(s, np.float32) for s in ((2, 3), (1, 3, 3), (2, 3)))
    for on, status in ((True, OUT_OF_RANGE), (False, 0)):
        arrays = x, w, np.array(on)
        inputs = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in arrays))
        outputs = (ctypes.c_void_p * 1)(y.ctypes.data)
        assert library.nanoloom_model_run(handle, inputs, outputs) == status
    assert np.array_equal(y, -2 * x)
    text = ctypes.create_string_buffer(200)
    flag = np.array(True)
    inputs[2] = flag.ctypes.data
    status = library.nanoloom_model_run(handle, inputs, outputs)
    library.nanoloom_model_explain(handle, status, text, ctypes.c_size_t(200))
    assert text.value.startswith(b"node If_0/Squeeze_1 (Squeeze): its inputs do not")
    library.nanoloom_model_destroy(handle)
