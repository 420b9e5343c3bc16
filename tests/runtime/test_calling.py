"""By position or name, some outputs, into given memory, later: of both kinds of
programs."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import nanoloom
from nanoloom.errors import Error, InputError

TEXT = """
<ir_version: 10, opset_import: ["": 21], producer_name: "a test", model_version: 7>
pair (float[n,3] x, float[n,3] z) => (float[n,3] y, float[n,3] d)
{ y = Add(x, z)  d = Sub(x, z) }
"""
Call = Any


def sample(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((5, 3)).astype("f")


X, Z = sample(), sample(1)
BOTH = {"x": X, "z": Z}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(parse_model(TEXT), tmp_path / "pair.onnx")
    return tmp_path / "pair.onnx"


@pytest.fixture(params=["compiled", "saved"])
def call(request: pytest.FixtureRequest, tmp_path: Path, model: Path) -> Call:
    program = nanoloom.compile(model, threads=1)
    if request.param == "compiled":
        return program
    return nanoloom.load(program.save(tmp_path / "pair.so"), threads=1)


def test_by_position_by_name_and_both(call: Call) -> None:
    for made in (call(X, Z), call(x=X, z=Z), call(X, z=Z), call(z=Z, x=X), call(BOTH)):
        np.testing.assert_array_equal(made["y"], X + Z)
        np.testing.assert_array_equal(made["d"], X - Z)


def test_positions_that_do_not_fit(call: Call) -> None:
    with pytest.raises(InputError, match="inputs: are 3, the model takes x"):
        call(X, Z, X)
    with pytest.raises(InputError, match="input x: is given by position and by name"):
        call(X, x=Z)
    with pytest.raises(InputError, match="z is missing"):
        call(x=X)
    with pytest.raises(InputError, match="inputs: are a ndarray; give a dict"):
        call(X)
    with pytest.raises(InputError, match="inputs: are a list; give a dict"):
        call([X, Z])


def test_outputs_that_are_wanted(call: Call) -> None:
    assert list(call.run(BOTH, ["d"])) == ["d"]
    assert list(call.run(BOTH, ["d", "y"])) == ["d", "y"]
    assert list(call.run(BOTH)) == ["y", "d"]
    with pytest.raises(InputError, match="output dd: the model has no such output"):
        call.run(BOTH, ["dd"])
    with pytest.raises(InputError, match="outputs are 'd'; give a list of names"):
        call.run(BOTH, "d")
    assert list(call.run(BOTH, iter(["d"]))) == ["d"]


def test_complex_numbers_are_not_cut(call: Call) -> None:
    with pytest.raises(InputError, match=r"input x: is complex; give array.real"):
        call.run({"x": X + 0j, "z": Z}, convert=True)


@pytest.mark.parametrize(
    "array",
    [np.array([["a"] * 3] * 5), np.full((5, 3), None), np.zeros((5, 3), "V4"),
     np.zeros((5, 3), "M8[D]"), np.zeros((5, 3), [("a", "f4")])],
)  # fmt: skip
def test_what_is_no_number_is_not_converted(call: Call, array: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"input x: is of .*; give an array"):
        call.run({"x": array, "z": Z}, convert=True)
    with pytest.raises(InputError, match="input x: is no array"):
        call.run({"x": [[1, 2], [3]], "z": Z}, convert=True)


@pytest.mark.parametrize("into", [[np.zeros((5, 3), "f")], X, 5])
def test_results_are_put_by_names(call: Call, into: Any) -> None:
    with pytest.raises(InputError, match=r"into is of type .*; give a dict"):
        call.run(BOTH, into=into)
    with pytest.raises(InputError, match="outputs are 5; give a list of names"):
        call.run(BOTH, 5)


def test_into_memory_that_is_there(call: Call) -> None:
    room = np.full((5, 3), np.nan, "f")
    made = call.run(BOTH, into={"d": room})
    assert made["d"] is room
    np.testing.assert_array_equal(room, X - Z)
    np.testing.assert_array_equal(made["y"], X + Z)
    again = call.run({"x": Z, "z": X}, ["d"], into={"d": room})
    assert again["d"] is room
    np.testing.assert_array_equal(room, Z - X)


READONLY = sample(3)
READONLY.flags.writeable = False


@pytest.mark.parametrize(
    "into, said",
    [
        ({"q": sample()}, "output q: the model has no such output"),
        ({"d": sample().astype("d")}, "output d: float64"),
        ({"d": sample()[:4]}, r"output d: float32\[4, 3\] given"),
        ({"d": sample().T.copy().T}, "output d: the array must be contiguous"),
        ({"d": READONLY}, "output d: the array must be contiguous"),
        ({"d": X}, "output d: shares memory with input x"),
        ({"d": [1.0]}, "output d: is a list"),
    ],
    ids=lambda x: str(x)[:40] if isinstance(x, str) else "",
)
def test_memory_that_does_not_fit(call: Call, into: object, said: str) -> None:
    before = X.copy()
    with pytest.raises(InputError, match=said):
        call.run(BOTH, into=into)
    np.testing.assert_array_equal(X, before)


def test_two_outputs_are_not_in_one_place(call: Call) -> None:
    room = np.empty((6, 3), "f")
    with pytest.raises(InputError, match="output d: shares memory with output y"):
        call.run(BOTH, into={"y": room[:5], "d": room[1:]})


class Shared:
    """An array of another library, which numpy sees through DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **given: object) -> object:
        return self.array.__dlpack__(**given)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries(call: Call) -> None:
    made = call(Shared(X), Shared(Z))
    np.testing.assert_array_equal(made["y"], X + Z)
    with pytest.raises(InputError, match="input x: is float64"):
        call(Shared(X.astype("d")), Z)
    np.testing.assert_array_equal(np.from_dlpack(made["d"]), X - Z)


def test_types_are_cast_where_that_is_said(call: Call) -> None:
    given = {"x": X.astype("d"), "z": np.arange(15).reshape(5, 3)}
    with pytest.raises(InputError, match="float64"):
        call.run(given)
    made = call.run(given, convert=True)
    np.testing.assert_array_equal(made["y"], X + np.arange(15, dtype="f").reshape(5, 3))


def test_later(call: Call) -> None:
    futures = [call.run_async({"x": X * n, "z": Z}, ["y"]) for n in range(20)]
    for n, future in enumerate(futures):
        np.testing.assert_array_equal(future.result(60)["y"], X * n + Z)
    with pytest.raises(InputError, match="missing"):
        call.run_async({"x": X}).result(60)


def test_it_prints_what_it_takes(call: Call) -> None:
    said = repr(call)
    assert "x float32 nx3, z float32 nx3 -> y float32 nx3, d float32 nx3" in said
    assert "pair." in said


def test_metadata(model: Path) -> None:
    told = nanoloom.compile(model, threads=1).metadata()
    assert told["producer_name"] == "a test" and told["version"] == "7"
    assert told["graph_name"] == "pair"


def test_pickled_and_back(call: Call) -> None:
    back = pickle.loads(pickle.dumps(call))
    np.testing.assert_array_equal(back(BOTH)["y"], X + Z)
    assert type(back) is type(call) and len(pickle.dumps(call)) < 10_000


def test_the_folder_and_the_file_may_go(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of a relative path runs sizes that it has not seen, and is pickled,
    from another folder; one in a file also when that is gone."""
    path = nanoloom.compile(model, threads=1).save(tmp_path / "saved.so")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    loaded = nanoloom.load("saved.so", threads=1)
    compiled = nanoloom.compile(os.path.relpath(model), threads=1)
    np.testing.assert_array_equal(loaded(X, Z)["y"], X + Z)
    monkeypatch.chdir(tmp_path / "other")
    for call in (compiled, loaded):
        back = pickle.loads(pickle.dumps(call))
        np.testing.assert_array_equal(back(X, Z)["y"], X + Z)
    path.unlink()
    for call in (compiled, loaded):
        np.testing.assert_array_equal(call(X[:1], Z[:1])["y"], X[:1] + Z[:1])
    assert loaded.manifest["inputs"]


OTHER = """
import pickle, sys, numpy as np
program = pickle.load(open(sys.argv[1], "rb"))
x = np.ones((2, 3), np.float32)
print(program(x, x)["y"].sum(), program.threads, program.dims)
"""


def test_in_another_process(model: Path, tmp_path: Path) -> None:
    program = nanoloom.compile(model, threads=1, dims={"n": 2})
    (tmp_path / "program").write_bytes(pickle.dumps(program))
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(tmp_path / "program")],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["12.0", "1", "{'n':", "2}"], done.stderr


def test_a_model_that_is_another_by_now(model: Path) -> None:
    pickled = pickle.dumps(nanoloom.compile(model, threads=1))
    onnx.save(parse_model(TEXT.replace("Sub", "Mul")), model)
    with pytest.raises(Error, match="is not the model that the program was made of"):
        pickle.loads(pickled)


def test_a_model_without_a_file_travels_itself() -> None:
    for given in (parse_model(TEXT), parse_model(TEXT).SerializeToString()):
        back = pickle.loads(pickle.dumps(nanoloom.compile(given, threads=1)))
        np.testing.assert_array_equal(back(X, Z)["d"], X - Z)


def test_code_for_a_named_cpu_stays_for_it(model: Path) -> None:
    from nanoloom.options import CompileOptions
    from nanoloom.target import by_name

    options = CompileOptions(by_name("riscv64"))
    back = pickle.loads(pickle.dumps(nanoloom.compile(model, options=options)))
    assert back.options == options
