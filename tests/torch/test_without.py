"""PyTorch is an extra: nothing of it is imported before something of it is given."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from nanoloom.cli.main import main
from nanoloom.errors import Error, InputError
from nanoloom.frontend.torch import given
from nanoloom.frontend.torch.given import is_archive, is_exported, is_module
from tests.sources import ROOT

USUAL = """
import sys
import numpy as np, onnx
import nanoloom
model = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y)'
    "{ y = Relu(x) }"
)
program = nanoloom.compile(model, cache=sys.argv[1])
assert program({"x": np.array([-1, 2], np.float32)})["y"].tolist() == [0, 2]
found = {name.split(".")[0] for name in sys.modules}
assert not found & {"torch", "onnxscript"}, found
"""


def test_an_onnx_model_imports_nothing_of_torch(tmp_path: Path) -> None:
    command = [sys.executable, "-c", USUAL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert not done.returncode, done.stderr


def archive(path: Path) -> Path:
    """What torch.export.save begins with."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("model/archive_format", "pt2")
    return path


def test_an_archive_is_told_from_other_zip_files(tmp_path: Path) -> None:
    assert is_archive(archive(tmp_path / "a.pt2"))
    with zipfile.ZipFile(tmp_path / "b.pt", "w") as file:
        file.writestr("model/data.pkl", "")
    assert not is_archive(tmp_path / "b.pt")
    assert not is_archive(tmp_path / "nothing.pt2")


def test_without_torch_a_sentence_says_what_to_install(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = archive(tmp_path / "model.pt2")

    def found(name: str) -> object:
        return None if name == "torch" else find_spec(name)

    monkeypatch.setattr(given, "find_spec", found)
    with pytest.raises(Error) as refusal:
        given.read_archive(path)
    wanted = (
        f"{path}: is a program of PyTorch, which is not installed;"
        " pip install 'nanoloom[torch]'"
    )
    assert str(refusal.value) == wanted
    assert main(["run", str(path), "--cache", str(tmp_path / "cache")]) == 1
    assert wanted in capfd.readouterr().err


def test_modules_are_told_by_name() -> None:
    class Module:
        pass

    Module.__module__ = "torch.nn.modules.module"

    class Net(Module):
        pass

    assert is_module(Net())
    assert not is_module(object())
    assert not is_exported(Net())


def test_arguments_of_torch_are_refused_for_other_models(tmp_path: Path) -> None:
    import nanoloom

    with pytest.raises(InputError) as refusal:
        nanoloom.compile("model.onnx", (1,), cache=tmp_path)  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert str(refusal.value) == (
        "example_inputs, dynamic_shapes and via are for a module of PyTorch, and this"
        " is a str"
    )


def test_the_backend_is_an_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (target,) = project["entry-points"]["torch_dynamo_backends"].values()
    module, _, name = target.partition(":")
    path = ROOT / (module.replace(".", "/") + ".py")
    assert f"\ndef {name}(" in path.read_text("utf-8")
    assert project["optional-dependencies"]["torch"]
