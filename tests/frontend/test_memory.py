"""Weights stay on disk: what loading and packing a large model takes in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
from onnx import TensorProto

from tests.frontend import models

COUNT, ROWS, COLUMNS = 25, 1000, 1000  # 25 weights of 4 MB: 100 MB
WEIGHT = ROWS * COLUMNS * 4

SCRIPT = """
import sys
from pathlib import Path
from nanoloom.frontend.mapped_tensors import release
from nanoloom.frontend.onnx import load

def peak():
    # Not ru_maxrss: a new process starts with its parent's.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024

load(sys.argv[2])
start = peak()
model = load(sys.argv[1])
loaded = peak()
total = 0.0
for value in model.graph.initializers.values():
    total += float(value.const_value.numpy().sum(dtype="float64"))
    release(value.const_value)
read = peak()
kept = [value.const_value.numpy().sum() for value in model.graph.initializers.values()]
print(loaded - start, read - start, peak() - start, total)
"""


def write_large(path: Path, weights: Path | None = None) -> None:
    """A chain of products; the numbers are zeros with a one at the start of each."""
    nodes = [
        onnx.helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"])
        for i in range(COUNT)
    ]
    data = b"\x00\x00\x80\x3f" + bytes(WEIGHT - 4)
    tensors = []
    for i in range(COUNT):
        tensor = TensorProto(
            name=f"w{i}", data_type=TensorProto.FLOAT, dims=[ROWS, COLUMNS]
        )
        if weights is None:
            tensor.raw_data = data
        else:
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=weights.name)
            tensor.external_data.add(key="offset", value=str(i * WEIGHT))
        tensors.append(tensor)
    if weights is not None:
        with weights.open("wb") as file:
            for _ in range(COUNT):
                file.write(data)
    sides = [models.value(name, [1, ROWS]) for name in ("v0", f"v{COUNT}")]
    model = models.model(nodes, sides[:1], sides[1:], tensors)
    path.write_bytes(model.SerializeToString())


def measure(path: Path, small: Path) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), str(small)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [float(word) for word in done.stdout.split()]


def check(path: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.onnx"
    small.write_bytes(models.linear().SerializeToString())
    loaded, read, without_release, total = measure(path, small)
    assert total == COUNT  # all of it was read
    assert loaded < 8e6
    assert read < 5 * WEIGHT  # a weight at a time, not all 25
    assert without_release > 15 * WEIGHT  # the measurement does see mapped pages


def test_weights_inside_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    write_large(path)
    assert path.stat().st_size > COUNT * WEIGHT
    check(path, tmp_path)


def test_weights_beside_the_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    write_large(path, tmp_path / "weights.bin")
    check(path, tmp_path)
