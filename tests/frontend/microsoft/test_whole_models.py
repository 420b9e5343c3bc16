"""Models as ONNX Runtime's optimizers and quantizers save them, against itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers.optimizer import optimize_model

import nanoloom
from nanoloom.errors import Unsupported
from nanoloom.frontend.onnx import load
from tests.frontend.microsoft import networks
from tests.frontend.microsoft.single import by_runtime
from tests.linalg.harness import evaluate

Feeds = dict[str, np.ndarray]
Level = onnxruntime.GraphOptimizationLevel
BEHIND_QUANTIZED = 0.02  # one step of an output, where a rounding falls the other way


def feeds_of(name: str) -> Feeds:
    random = np.random.default_rng(3)
    if name == "convnet":
        return {"x": random.standard_normal((2, 3, 12, 10)).astype(np.float32)}
    mask = np.ones((2, 9), np.int64)
    mask[1, 6:] = 0
    ids, kinds = (
        random.integers(0, networks.WORDS, (2, 9)),
        random.integers(0, 2, (2, 9)),
    )
    return {"ids": ids, "mask": mask, "kinds": kinds}


def saved(name: str, folder: Path) -> Path:
    path = folder / f"{name}.onnx"
    onnx.save(getattr(networks, name)(), path)
    return path


def optimized(path: Path, level: Level) -> Path:
    """As a session saves it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level
    made = path.with_name(f"{path.stem}-{level.name}.onnx")
    options.optimized_model_filepath = str(made)
    onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return made


def own_operators(path: Path) -> set[str]:
    nodes = onnx.load(path).graph.node
    return {node.op_type for node in nodes if node.domain == "com.microsoft"}


def check(path: Path, feeds: Feeds, *, wanted: set[str], step: float = 0) -> None:
    """It holds these operators, and nanoloom gives what ONNX Runtime gives.

    step: of quantized numbers; those of floats differ by roundings.
    """
    assert wanted <= own_operators(path), own_operators(path)
    proto = onnx.load(path)
    (theirs,) = by_runtime(proto, feeds)
    (ours,) = evaluate(load(proto), feeds)
    assert ours.shape == theirs.shape
    bound = max(step, 2e-5) * abs(theirs).max()
    assert abs(ours - theirs).max() <= bound
    assert abs(np.roll(ours, 1, -1) - theirs).max() > bound


class Samples(CalibrationDataReader):
    def __init__(self, feeds: Feeds) -> None:
        self.samples: Iterator[Feeds] = iter([feeds])

    def get_next(self) -> Any:
        return next(self.samples, None)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("encoder", {"BiasGelu", "FusedMatMul"}),
        ("convnet", {"FusedConv", "QuickGelu"}),
    ],
)
def test_extended(tmp_path: Path, name: str, wanted: set[str]) -> None:
    path = optimized(saved(name, tmp_path), Level.ORT_ENABLE_EXTENDED)
    check(path, feeds_of(name), wanted=wanted)


def test_layouts_of_a_machine_are_refused(tmp_path: Path) -> None:
    path = optimized(saved("convnet", tmp_path), Level.ORT_ENABLE_ALL)
    domains = {node.domain for node in onnx.load(path).graph.node}
    if "com.microsoft.nchwc" not in domains:  # a machine whose order is ONNX's
        check(path, feeds_of("convnet"), wanted=set())
        return
    with pytest.raises(Unsupported, match="graph optimization level extended or lower"):
        evaluate(load(path), feeds_of("convnet"))


def test_the_optimizer_of_transformers(tmp_path: Path) -> None:
    path = tmp_path / "optimized.onnx"
    sizes = {"num_heads": networks.HEADS, "hidden_size": networks.WIDTH}
    made = optimize_model(str(saved("encoder", tmp_path)), "bert", opt_level=0, **sizes)
    made.save_model_to_file(str(path))
    check(path, feeds_of("encoder"), wanted={"BiasGelu", "SkipLayerNormalization"})


@pytest.mark.parametrize("name", ["encoder", "convnet"])
def test_quantized_as_it_runs(tmp_path: Path, name: str) -> None:
    path = tmp_path / "dynamic.onnx"
    quantize_dynamic(saved(name, tmp_path), path, weight_type=QuantType.QInt8)
    made = optimized(path, Level.ORT_ENABLE_EXTENDED)
    wanted = {"DynamicQuantizeMatMul"}
    check(made, feeds_of(name), wanted=wanted, step=BEHIND_QUANTIZED)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["encoder", "convnet"])
@pytest.mark.parametrize("kind", [QuantType.QUInt8, QuantType.QInt8])
@pytest.mark.parametrize("form", [QuantFormat.QOperator, QuantFormat.QDQ])
def test_quantized(
    tmp_path: Path, name: str, kind: QuantType, form: QuantFormat
) -> None:
    """Weights of 7 bits: without VNNI, ONNX Runtime's sums of two products saturate."""
    path, feeds = tmp_path / "quantized.onnx", feeds_of(name)
    quantize_static(
        saved(name, tmp_path), path, Samples(feeds), quant_format=form,
        activation_type=kind, weight_type=QuantType.QInt8, per_channel=True,
        reduce_range=True,
    )  # fmt: skip
    if form == QuantFormat.QDQ:
        path = optimized(path, Level.ORT_ENABLE_EXTENDED)
    wanted = {"QLinearSoftmax"} | ({"QGemm"} if name == "convnet" else set())
    check(path, feeds, wanted=wanted, step=BEHIND_QUANTIZED)


@pytest.mark.parametrize("bits", [4, 8])
def test_weights_in_blocks(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "blocks.onnx"
    proto = onnx.load(saved("encoder", tmp_path))
    made = MatMulNBitsQuantizer(proto, bits=bits, block_size=16, is_symmetric=bits == 4)
    made.process()
    made.model.save_model_to_file(str(path))
    check(path, feeds_of("encoder"), wanted={"MatMulNBits"})


def test_one_compiled(tmp_path: Path) -> None:
    """By all stages, for any sizes: calls of two."""
    path = optimized(saved("encoder", tmp_path), Level.ORT_ENABLE_EXTENDED)
    program, feeds = nanoloom.compile(path), feeds_of("encoder")
    for count in (9, 5):
        given = {name: np.ascontiguousarray(x[:, :count]) for name, x in feeds.items()}
        (theirs,) = by_runtime(onnx.load(path), given)
        ours = program(given)["y"]
        assert abs(ours - theirs).max() <= 2e-5 * abs(theirs).max()
