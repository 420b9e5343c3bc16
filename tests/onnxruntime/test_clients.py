"""The same client gets the same of ONNX Runtime and of nanoloom.onnxruntime."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import nanoloom.onnxruntime
from nanoloom.onnxruntime import replace
from nanoloom.onnxruntime.capi import onnxruntime_pybind11_state as state
from tests.onnxruntime import clients

# What differs, and why: an operator that nobody knows is no invalid graph here.
UNKNOWN = {"InvalidGraph": "NotImplemented", "Fail": "NotImplemented"}

CLIENT = """
import importlib.metadata, importlib.util, sys
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
import numpy as np
session = ort.InferenceSession(sys.argv[1])
print(session.run(["d"], {"x": np.ones((1, 3), "f"), "z": np.ones((1, 3), "f")})[0])
print(ort.__name__, importlib.metadata.version("onnxruntime") == ort.__version__)
print(importlib.util.find_spec("onnxruntime") is not None)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NANOLOOM_CACHE", str(tmp_path / "cache"))


def both(client: Any, folder: Path) -> tuple[Any, Any]:
    return client(onnxruntime, folder), client(nanoloom.onnxruntime, folder)


@pytest.mark.parametrize("client", [clients.runs, clients.bound, clients.weighted])
def test_arrays_are_the_same(client: Any, tmp_path: Path) -> None:
    """Sums and differences of small integers are exact."""
    theirs, ours = both(client, tmp_path)
    assert len(theirs) == len(ours) > 4
    for one, other in zip(theirs, ours, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@pytest.mark.parametrize("client", [clients.described, clients.later])
def test_what_is_said_is_the_same(client: Any, tmp_path: Path) -> None:
    theirs, ours = both(client, tmp_path)
    assert theirs == ours


def test_mistakes_have_the_same_classes(tmp_path: Path) -> None:
    theirs, ours = both(clients.mistakes, tmp_path)
    theirs[-1] = UNKNOWN.get(theirs[-1], theirs[-1])
    assert theirs == ours
    assert issubclass(state.InvalidArgument, Exception)


def test_another_provider_is_named(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="CUDAExecutionProvider' is not here"):
        nanoloom.onnxruntime.InferenceSession(
            clients.pair(tmp_path), providers=["CUDAExecutionProvider"]
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nanoloom.onnxruntime.InferenceSession(
            clients.pair(tmp_path), providers=["CPUExecutionProvider"]
        )


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("optimized_model_filepath", "o.onnx", "no optimized ONNX model is written"),
        ("enable_profiling", True, "no profile is written here"),
    ],
)
def test_what_there_is_not_is_refused(
    option: str, value: Any, said: str, tmp_path: Path
) -> None:
    options = nanoloom.onnxruntime.SessionOptions()
    setattr(options, option, value)
    with pytest.raises(state.NotImplemented, match=said):
        nanoloom.onnxruntime.InferenceSession(clients.pair(tmp_path), options)


def test_dimensions_are_bound_and_libraries_loaded(tmp_path: Path) -> None:
    options = nanoloom.onnxruntime.SessionOptions()
    options.add_free_dimension_override_by_name("n", 4)
    session = nanoloom.onnxruntime.InferenceSession(clients.pair(tmp_path), options)
    feeds = {"x": clients.X, "z": clients.Z}
    made = session.run(["d"], feeds)
    with pytest.raises(state.InvalidArgument, match="dimension n is 2 here and 4"):
        session.run(None, {name: array[:2] for name, array in feeds.items()})
    program = nanoloom.compile(clients.pair(tmp_path))
    path = program.save(tmp_path / "pair.so")
    again = nanoloom.onnxruntime.InferenceSession(str(path))
    assert np.array_equal(again.run(["d"], feeds)[0], made[0])


def test_all_names_in_c_are_in_one_module() -> None:
    """Those that there are of them, as clients import them from there."""
    theirs = importlib.import_module("onnxruntime.capi._pybind_state")
    ours = importlib.import_module("nanoloom.onnxruntime.capi._pybind_state")
    whole = vars(nanoloom.onnxruntime) | vars(state)
    wanted = {name for name in vars(theirs).keys() & whole if not name.startswith("_")}
    assert len(wanted) > 20
    assert [x for x in sorted(wanted) if not hasattr(ours, x)] == []
    assert "nanoloom.onnxruntime.capi._pybind_state" in {
        f"nanoloom.onnxruntime{name}" for name in replace.MODULES
    }


def test_clients_stay_as_they_are(tmp_path: Path) -> None:
    """A script that imports onnxruntime, run with nanoloom in its place; what it runs
    is compiled before."""
    clients.runs(nanoloom.onnxruntime, tmp_path)
    client = tmp_path / "client.py"
    client.write_text(CLIENT)
    command = [sys.executable, "-m", "nanoloom.onnxruntime", str(client)]
    made = subprocess.run(
        [*command, clients.pair(tmp_path)], capture_output=True, text=True, check=True
    )
    assert made.stdout.splitlines() == [
        "[[0. 0. 0.]]",
        "nanoloom.onnxruntime True",
        "True",
    ]
    failed = subprocess.run(
        [*command[:-1], str(tmp_path / "none.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 1
    assert (
        "none.py: no such file; usage: python -m nanoloom.onnxruntime" in failed.stderr
    )


TOOLS = """
import onnxruntime
from onnxruntime.quantization import QuantType

session = onnxruntime.InferenceSession(__import__("sys").argv[1])
print(onnxruntime.InferenceSession.__module__, QuantType.QInt8.name)
print(session._model_path == __import__("sys").argv[1])
"""


def test_tools_are_those_of_the_installed_package(tmp_path: Path) -> None:
    """They are Python, and see nanoloom's sessions."""
    client = tmp_path / "client.py"
    client.write_text(TOOLS)
    command = [sys.executable, "-m", "nanoloom.onnxruntime", str(client)]
    made = subprocess.run(
        [*command, clients.pair(tmp_path)], capture_output=True, text=True, check=True
    )
    assert made.stdout.splitlines() == [
        "nanoloom.onnxruntime.session QInt8",
        "True",
    ]
