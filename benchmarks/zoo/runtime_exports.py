"""What ONNX Runtime's optimizer and quantizers make of an exporter's file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnxruntime
from onnxruntime import quantization

from benchmarks.zoo.entry import Array, Exported


def optimized(source: Path, target: Path, feeds: dict[str, Array]) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    )
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(source), options)


def dynamic_int8(source: Path, target: Path, feeds: dict[str, Array]) -> None:
    quantization.quantize_dynamic(source, target)


class Once(quantization.CalibrationDataReader):
    def __init__(self, feeds: dict[str, Array]) -> None:
        self.left = iter([feeds])

    def get_next(self) -> dict[str, Array] | None:
        return next(self.left, None)


def static_int8(source: Path, target: Path, feeds: dict[str, Array]) -> None:
    quantization.quantize_static(
        source, target, Once(feeds), quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
    )  # fmt: skip


TOOLS: dict[str, Callable[[Path, Path, dict[str, Array]], None]] = {
    "optimized": optimized, "int8": dynamic_int8, "qdq": static_int8,
}  # fmt: skip


def with_tool(
    make: Callable[[Path], Exported], tool: str
) -> Callable[[Path], Exported]:
    def made(folder: Path) -> Exported:
        found = make(folder)
        target = folder / f"{tool}.onnx"
        TOOLS[tool](found.path, target, dict(found.feeds))
        if tool == "optimized":
            return replace(found, path=target)
        return Exported(target, found.feeds, [])

    return made
