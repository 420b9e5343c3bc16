"""Images of any height and width in files: the same one for each, on three machines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.c_libraries import lend

# Stride 2, 3x3 (of rows and columns that tiles of 4 do not divide), depthwise, a pool,
# 1x1, and what went around two layers.
NETWORK = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[1, 3, height, width] x) => (float[1, 12, 1, 1] mean, float[1, 8, h, w] map)
{
    c0 = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, stem, bias)
    r0 = Relu(c0)
    c1 = Conv<pads = [1, 1, 1, 1], group = 8>(r0, depthwise)
    c2 = Conv<pads = [1, 1, 1, 1]>(c1, dense)
    map = Add(c2, r0)
    p0 = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(map)
    c3 = Conv(p0, pointwise)
    r3 = Relu(c3)
    mean = GlobalAveragePool(r3)
}
"""
WEIGHTS = {
    "stem": (8, 3, 3, 3),
    "bias": (8,),
    "depthwise": (8, 1, 3, 3),
    "dense": (8, 8, 3, 3),
    "pointwise": (12, 8, 1, 1),
}
SIZES = ((9, 14), (33, 20), (40, 71))
MACHINES = {
    "x86-64-v3": ("x86_64", ("",)),
    "aarch64": ("aarch64", ("qemu-aarch64",)),
    "riscv64+v": (
        "riscv64",
        ("qemu-riscv64 -cpu rv64,v=true,vlen=128",
         "qemu-riscv64 -cpu rv64,v=true,vlen=256"),
    ),
}  # fmt: skip


def network() -> onnx.ModelProto:
    random, made = np.random.default_rng(5), parser.parse_model(NETWORK)
    for name, shape in WEIGHTS.items():
        numbers = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        weight = numbers.astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(weight, name))
    return made


def image(height: int, width: int) -> np.ndarray:
    random = np.random.default_rng(height * width)
    return random.standard_normal((1, 3, height, width)).astype(np.float32)


def require_right(
    made: onnx.ModelProto, x: np.ndarray, outputs: dict[str, np.ndarray]
) -> None:
    """Both outputs are those of the reference, of sums of 72 products of about 1."""
    wanted = ReferenceEvaluator(made).run(None, {"x": x})
    for name, right in zip(("mean", "map"), map(np.asarray, wanted), strict=True):
        assert outputs[name].shape == right.shape
        assert np.abs(outputs[name] - right).max() <= 2e-5 < np.abs(right).max() / 100


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("target", MACHINES)
def test_an_executable(tmp_path: Path, target: str) -> None:
    arch, emulators = MACHINES[target]
    cache, made = Cache(tmp_path / "cache"), network()
    lend(arch, cache)
    options = CompileOptions(by_name(target))
    program = nanoloom.compile(made, options=options, cache=cache)
    file = program.save(tmp_path / "network", form="executable")
    for number, size in enumerate(SIZES):
        x = image(*size)
        np.save(tmp_path / "x.npy", x)
        folder = tmp_path / f"made{number}"
        folder.mkdir()
        machine = emulators[number % len(emulators)].split()
        words = [*machine, file, tmp_path / "x.npy", "--threads", "2", "-o", folder]
        subprocess.run(words, check=True, capture_output=True)
        found = {name: np.load(folder / f"{name}.npy") for name in ("mean", "map")}
        require_right(made, x, found)


def test_a_library(tmp_path: Path) -> None:
    made = network()
    program = nanoloom.compile(made, threads=2, cache=Cache(tmp_path / "cache"))
    loaded = nanoloom.load(program.save(tmp_path / "network.so"), threads=2)
    for size in SIZES:
        x = image(*size)
        found = loaded({"x": x})
        require_right(made, x, {name: found[name] for name in ("mean", "map")})
        right = ReferenceEvaluator(made).run(None, {"x": image(*size[::-1])})[0]
        assert np.abs(found["mean"] - np.asarray(right)).max() > 1e-3
