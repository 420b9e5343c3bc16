"""nanoloom-runtime: with numpy alone it runs what the compiler wrote, with its errors.

The wheel is unpacked into a folder; a process finds that, numpy, and no other package.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nanoloom
from tests.sources import ROOT

MOST_BYTES = 3 << 20  # of what is installed
FILES = 60

# Arguments: folders for sys.path, the library, a .npy file, and where y goes.
PROGRAM = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
import numpy as np
import nanoloom
program = nanoloom.load(sys.argv[2], threads=2)
made = program({"x": np.load(sys.argv[3])})
np.save(sys.argv[4], made["y"])
others = {m.split(".")[0] for m, x in sys.modules.items() if
          "site-packages" in (getattr(x, "__file__", None) or "")}
print(json.dumps({"others": sorted(others), "manifest": program.manifest}))
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both wheels."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, ROOT / "wheels/build.py", folder]
    subprocess.run(build, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def installed(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Folders with nanoloom-runtime, and with numpy."""
    folder = tmp_path_factory.mktemp("installed")
    (wheel,) = wheels.glob("nanoloom_runtime-*.whl")
    with ZipFile(wheel) as packed:
        packed.extractall(folder / "runtime")
    beside = folder / "site-packages"
    beside.mkdir()
    home = Path(np.__file__).parent.parent
    for name in ("numpy", "numpy.libs"):
        if (home / name).exists():
            (beside / name).symlink_to(home / name)
    return [str(folder / "runtime"), str(beside)]


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    weights = np.random.default_rng(3).standard_normal((16, 8)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "runtime",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run with nothing that is installed."""
    command = [sys.executable, "-I", "-S", "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def tried(installed: list[str], statement: str) -> str:
    """What a statement raises under nanoloom-runtime: type and text."""
    begin = "import json, sys; sys.path[:0] = json.loads(sys.argv[1]); import nanoloom"
    program = f"{begin}\ntry:\n    {statement}\nexcept Exception as error:\n"
    made = python(
        f"{program}    print(type(error).__name__, error)", json.dumps(installed)
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_programs_run_with_numpy_alone(
    installed: list[str], model: onnx.ModelProto, tmp_path: Path
) -> None:
    program = nanoloom.compile(model.SerializeToString(), cache=tmp_path / "cache")
    path = program.save(tmp_path / "model.so")
    x = np.random.default_rng(5).standard_normal((7, 16)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    files = [str(tmp_path / name) for name in ("model.so", "x.npy", "y.npy")]
    made = python(PROGRAM, json.dumps(installed), *files)
    assert made.returncode == 0, made.stderr
    said = json.loads(made.stdout)
    assert said["others"] == ["numpy"]
    assert said["manifest"] == nanoloom.load(path).manifest
    assert said["manifest"]["inputs"] == [
        {"name": "x", "element": "f32", "shape": ["n", 16]}
    ]
    assert np.array_equal(np.load(files[2]), program({"x": x})["y"])


def test_it_says_the_same_of_mistakes(
    installed: list[str], model: onnx.ModelProto, tmp_path: Path
) -> None:
    """Wrong shapes; a flipped byte, which BLAKE3 does not find here; no compiler."""
    path = tmp_path / "model.so"
    nanoloom.compile(model.SerializeToString(), cache=tmp_path / "cache").save(path)
    wrong = f"nanoloom.load({str(path)!r})({{'x': [[1.0] * 15]}})"
    assert "InputError input x: is float32 1x15" in tried(installed, wrong)
    content = bytearray(path.read_bytes())
    for place in (100, len(content) // 2, len(content) - 1):
        content[place] ^= 4
        path.write_bytes(content)
        load = f"nanoloom.load({str(path)!r})"
        assert f"Error {path}: is damaged: it holds" in tried(installed, load)
        content[place] ^= 4
    said = tried(installed, "nanoloom.compile('model.onnx')")
    assert said == (
        "AttributeError nanoloom.compile: this is nanoloom-runtime, which runs what is "
        "compiled; pip install nanoloom brings the compiler\n"
    )


def test_bfloat16_asks_for_its_package(installed: list[str], tmp_path: Path) -> None:
    kind = TensorProto.BFLOAT16
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "halves",
        [helper.make_tensor_value_info("x", kind, [4])],
        [helper.make_tensor_value_info("y", kind, [4])],
    )
    opset = helper.make_opsetid("", 17)
    given = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    path = tmp_path / "halves.so"
    nanoloom.compile(given.SerializeToString(), cache=tmp_path / "cache").save(path)
    said = tried(installed, f"nanoloom.load({str(path)!r})")
    assert "an input or output is of bfloat16" in said
    assert "pip install ml_dtypes" in said
    halves = np.ones(4, ml_dtypes.bfloat16)
    assert (nanoloom.load(path)({"x": halves})["y"] == 2 * halves).all()


def test_both_wheels_are_what_they_say(wheels: Path, tmp_path: Path) -> None:
    """The runtime is small, part of the compiler, and the same when built again."""
    (part,) = wheels.glob("nanoloom_runtime-*.whl")
    (whole,) = wheels.glob("nanoloom-*.whl")
    with ZipFile(part) as small, ZipFile(whole) as large:
        own = [x for x in small.infolist() if x.filename.startswith("nanoloom/")]
        assert sum(x.file_size for x in small.infolist()) < MOST_BYTES
        assert 0 < len(own) < FILES
        for each in own:
            assert small.read(each) == large.read(each.filename)
        assert "nanoloom/runtime/program.c" in large.namelist()
        (metadata,) = (x for x in small.namelist() if x.endswith("METADATA"))
        text = small.read(metadata).decode()
        required = [x for x in text.splitlines() if x.startswith("Requires-Dist")]
        assert [x for x in required if "extra" not in x] == [
            "Requires-Dist: numpy<3,>=2.1"
        ]
    again = tmp_path / "again"
    build = [sys.executable, ROOT / "wheels/build.py", again]
    subprocess.run(build, check=True, capture_output=True)
    for wheel in (part, whole):
        assert (again / wheel.name).read_bytes() == wheel.read_bytes()
