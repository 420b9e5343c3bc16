"""Models with open dimensions as libraries and executables: any size at once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import InputError
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.c_libraries import lend
from tests.dynamic import models
from tests.guarded import Guarded, Side

BOUNDS = {"batch": (1, 4), "length": (2, 100)}


def test_a_library(tmp_path: Path) -> None:
    """Attention, saved once, with bounds; refused beyond them, in Python too."""
    model = models.attention()
    program = nanoloom.compile(model, dims=BOUNDS, threads=2, cache=Cache(tmp_path))
    loaded = nanoloom.load(program.save(tmp_path / "attention.so"), threads=2)
    assert loaded.inputs[0].shape == ("batch", "length", 32)
    for batch, length in ((1, 2), (3, 17), (4, 100)):
        given = models.inputs(model, {"batch": batch, "length": length})
        for name, y in models.wanted(model, given).items():
            assert np.abs(loaded(given)[name] - y).max() <= 2e-5
            assert (loaded(given)[name] == program(given)[name]).all()
    beyond = models.inputs(model, {"batch": 1, "length": 101})
    for run in (loaded, program):
        with pytest.raises(InputError, match="length is 101, at most 100 was compiled"):
            run(beyond)


def test_an_executable_for_another_machine(tmp_path: Path) -> None:
    """The same file for every number of rows, at every length of vectors."""
    cache = Cache(tmp_path / "cache")
    lend("riscv64", cache)
    options = CompileOptions(by_name("riscv64+v"))
    model = models.rows()
    program = nanoloom.compile(model, options=options, cache=cache)
    file = program.save(tmp_path / "rows", form="executable")
    w, c = (onnx.numpy_helper.to_array(x) for x in model.graph.initializer[:2])
    for bits, n in ((128, 1), (256, 13), (512, 30), (128, 0)):
        x = models.inputs(model, {"n": n})["x"]
        np.save(tmp_path / "x.npy", x)
        machine = ["qemu-riscv64", "-cpu", f"rv64,v=true,vlen={bits}", str(file)]
        made = tmp_path / "made"
        made.mkdir(exist_ok=True)
        subprocess.run([*machine, tmp_path / "x.npy", "-o", made], check=True)
        exact = np.maximum(x.astype(np.float64) @ w + c, 0)
        bound = 40 * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(w) + np.abs(c))
        assert (np.abs(np.load(made / "y.npy") - exact) <= bound).all(), n
        assert np.load(made / "s.npy").shape == (n,)


SUMS = """
<ir_version: 10, opset_import: ["": 20]>
g (float[batch, length, 5] x) => (float[batch, length, 5] y, float[batch, 5] s)
{
    axes = Constant<value_ints = [1]>()
    y = Relu(x)
    s = ReduceSum<keepdims = 0>(x, axes)
}
"""


def test_nothing_is_computed_of_nothing(tmp_path: Path) -> None:
    """Where no result has elements; a sum of nothing has, and is 0."""
    made = nanoloom.compile(onnx.parser.parse_model(SUMS))
    file = made.save(tmp_path / "sums", form="executable")
    loaded = nanoloom.load(made.save(tmp_path / "sums.so"))
    told = subprocess.run([file, "--shape"], capture_output=True, check=True)
    least = [x for x in told.stdout.decode().splitlines() if "dimension" in x]
    assert least == ["dimension batch: at least 0", "dimension length: at least 0"]
    none, empty = np.ones((0, 3, 5), "f4"), np.ones((2, 0, 5), "f4")
    np.save(tmp_path / "none.npy", none)
    np.save(tmp_path / "empty.npy", empty)
    given = [file, tmp_path / "none.npy", "-o", tmp_path, "--profile"]
    subprocess.run(given, check=True)
    shapes = {"y": (0, 3, 5), "s": (0, 5)}
    for name, shape in shapes.items():
        for array in (np.load(tmp_path / f"{name}.npy"), loaded({"x": none})[name]):
            assert (array.shape, array.dtype) == (shape, np.float32)
    assert {n: x.shape for n, x in made({"x": none}).items()} == shapes
    assert (loaded({"x": empty})["s"] == 0).all()
    assert (made({"x": empty})["s"] == 0).all()  # compiled for these shapes
    given = [file, tmp_path / "empty.npy", "-o", tmp_path]
    subprocess.run(given, check=True)
    for name, shape in {"y": (2, 0, 5), "s": (2, 5)}.items():
        assert np.load(tmp_path / f"{name}.npy").shape == shape
    assert (np.load(tmp_path / "s.npy") == 0).all()


ZERO = "zero = Constant<value_ints = [0]>()"
OF_NOTHING = {  # of x, which has no rows, or no columns
    "sum": ("float[n, 4] x", f"{ZERO} s = ReduceSum(x, zero) y = Exp(s)"),
    "most": ("float[n, 4] x", f"{ZERO} y = ReduceMax(x, zero)"),
    "product": ("float[n, 37] x", "t = Transpose(x) y = MatMul(t, x)"),
    "bytes": ("int8[n, 37] x", "t = Transpose(x) y = MatMulInteger(t, x)"),
    "joined": ("float[n, 7] x", "t = Neg(row) r = Relu(x) y = Concat<axis = 0>(r, t)"),
    "padded": ("float[n, 7] x", "y = Pad(x, pads)"),
    "attention": (
        "float[n, 64] x",
        "t = Transpose(x) s = MatMul(some, t) p = Softmax(s) y = MatMul(p, x)",
    ),
    "steps": (
        "float[n, 4] x",
        """first = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() y = Scan<
        num_scan_inputs = 1, body = b (float[4] v, float[4] e) => (float[4] u)
        { u = Add(v, e) }>(first, x)""",
    ),
}
REFUSED = {  # windows over nothing, a row of nothing
    "windows": ("float[1, 4, n] x", "y = MaxPool<kernel_shape = [3]>(x)"),
    "row": ("float[n, 4] x", "one = Constant<value_int = 1>() y = Gather(x, one)"),
    "index": ("float[n, 4] x, int64 i", "y = Gather(x, i)"),
}


def of_nothing(given: str, body: str, kind: str) -> onnx.ModelProto:
    made = "int32" if kind == "bytes" else "float"
    constants = "float[1, 7] row = {1, 2, 3, 4, 5, 6, 7}, int64[4] pads = {1, 0, 2, 0}"
    text = f"""<ir_version: 10, opset_import: ["": 20]>
    g ({given}) => ({made} y) <{constants}> {{ {body} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    some = np.arange(192, dtype=np.float32).reshape(3, 64) / 64
    model.graph.initializer.append(onnx.numpy_helper.from_array(some, "some"))
    return model


@pytest.mark.parametrize("kind", OF_NOTHING)
def test_what_is_computed_of_nothing(tmp_path: Path, kind: str) -> None:
    """In a library as ONNX's reference has it, and nothing is read or written there."""
    model = of_nothing(*OF_NOTHING[kind], kind)
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    loaded = nanoloom.load(program.save(tmp_path / "made.so"), threads=1)
    (given,) = loaded.inputs
    for n in (0, 5, 0):
        shape = tuple(n if d == "n" else int(d) for d in given.shape)
        x = np.random.default_rng(n).integers(-3, 4, shape).astype(given.dtype)
        wanted = np.asarray(ReferenceEvaluator(model).run(None, {"x": x})[0])
        for side in Side:
            found = loaded({"x": Guarded.of(x, side).array})["y"]
            assert found.shape == wanted.shape and found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_nothing_has_no_result_of(tmp_path: Path, kind: str) -> None:
    model = of_nothing(*REFUSED[kind], kind)
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    loaded = nanoloom.load(program.save(tmp_path / "made.so"), threads=1)
    shape = tuple(0 if d == "n" else int(d) for d in loaded.inputs[0].shape)
    feeds = {"x": np.ones(shape, np.float32), "i": np.array(0)}
    with pytest.raises(InputError, match="n is 0, at least 1 is wanted"):
        loaded({x.name: feeds[x.name] for x in loaded.inputs})


def test_nothing_is_within_bounds_that_begin_with_it(tmp_path: Path) -> None:
    nothing, cache = np.ones((0, 37), "f4"), Cache(tmp_path / "cache")
    for least in (0, 1):
        model = models.rows()
        program = nanoloom.compile(model, dims={"n": (least, 4)}, cache=cache)
        loaded = nanoloom.load(program.save(tmp_path / f"rows{least}.so"))
        for run in (program, loaded):
            if least:
                with pytest.raises(InputError, match="n is 0, at least 1 is wanted"):
                    run({"x": nothing})
            else:
                assert run({"x": nothing})["s"].shape == (0,)


def test_what_cannot_be_saved_for_all_sizes(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 20]>
        g (float[1, height, 2] x) => (float[1, height, 2] y)
        { y = DFT(x) }
    """)
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    output = tmp_path / "waves.so"
    with pytest.raises(InputError, match=r"dimension height, and .*--dim height=N"):
        program.save(output)
    with pytest.raises(InputError, match=r'height; bind it: dims={"height": N}, or --'):
        program.save(output.with_suffix(".o"), form="bare")
    assert not output.exists()


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ((1, 2, 3), "has 3 bounds"),
        ((5, 2), "is from 5 to 2"),
        ((0, 0), "is from 0 to 0"),
        ((1, "x"), "is 'x'"),
    ],
)
def test_bounds_that_are_none(pair: tuple[object, ...], said: str) -> None:
    with pytest.raises(InputError, match=f"dimension n {said}"):
        nanoloom.compile(models.rows(), dims={"n": pair})  # type: ignore[dict-item]


def test_a_bound_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the model has no dimension m; it has n"):
        nanoloom.compile(models.rows(), dims={"m": (1, 2)}, cache=Cache(tmp_path))
