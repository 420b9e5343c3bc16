"""Windows over each channel of images of any size: planes stay where they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.options import CompileOptions
from nanoloom.target import Target
from tests.dynamic.compared import session
from tests.dynamic.test_borders import called
from tests.vector.kernel_harness import shared_cache, targets

CHANNELS = 5
SIZES = ((1, 33, 47), (3, 19, 70), (2, 70, 21), (1, 64, 96))


def windows(seed: int) -> tuple[onnx.ModelProto, int]:
    """One or two layers that compute each channel by itself, and an activation; the
    largest number that is made of one of at most 1."""
    random = np.random.default_rng(seed)
    body, after, weights, most = "", "x", dict[str, np.ndarray](), 1
    for layer, name in enumerate("vw"[: 1 + seed % 2]):
        before, after = "xcd"[layer : layer + 2]
        kernel, steps = random.integers(2, 6, 2), random.integers(1, 3, 2).tolist()
        pads = random.integers(0, np.tile(kernel // 2 + 1, 2)).tolist()
        words = f"kernel_shape = {kernel.tolist()}, pads = {pads}, strides = {steps}"
        if (seed + layer) % 3:
            shape = (CHANNELS, 1, *kernel)
            weights[name] = random.integers(-3, 4, shape).astype(np.float32)
            body += f"{after} = Conv<group = {CHANNELS}, {words}>({before}, {name}) "
            most *= 3 * int(np.prod(kernel))
        else:
            body += f"{after} = MaxPool<{words}>({before}) "
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 20]> windows (float[n, {CHANNELS}, h, w]'
        f" x) => (float[n, {CHANNELS}, a, b] y) {{ {body} y = Relu({after}) }}"
    )
    made = [onnx.numpy_helper.from_array(w, name) for name, w in weights.items()]
    model.graph.initializer.extend(made)
    return model, most


@pytest.mark.drawn(one_in=4)
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_numbers(seed: int, target: Target) -> None:
    """Whole numbers, exact: at sizes that divide nothing, of any batch."""
    model, most = windows(seed)
    options = CompileOptions(target)
    program = nanoloom.compile(model, threads=1, options=options, cache=shared_cache())
    peer = session(model)
    for batch, high, wide in SIZES:
        shape = (batch, CHANNELS, high, wide)
        x = np.random.default_rng(high).integers(-4, 5, shape).astype(np.float32)
        right = np.asarray(peer.run(None, {"x": x})[0])
        got = program({"x": x})["y"]
        assert got.shape == right.shape
        assert (got == right).all() and 0 < np.abs(right).max() <= 4 * most
    assert not program.open.reason


def test_nothing_is_turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel reads the image as it lies, without its border."""
    kernels = called(monkeypatch)
    model = onnx.parser.parse_model(f"""
    <ir_version: 10, opset_import: ["": 20]>
    windows (float[1, {CHANNELS}, h, w] x) => (float[1, {CHANNELS}, h, w] y)
    {{
        y = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)
    }}
    """)
    x = np.random.default_rng(1).standard_normal((1, CHANNELS, 9, 41), np.float32)
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    right = np.asarray(session(model).run(None, {"x": x})[0])
    assert (program({"x": x})["y"] == right).all()
    assert len(kernels) == 1
