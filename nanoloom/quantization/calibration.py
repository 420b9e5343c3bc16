"""The range of values on samples, by ONNX Runtime's calibrators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import onnx_ir as ir

from nanoloom.inspect.references import LARGE
from nanoloom.quantization.integer_model import Range
from nanoloom.quantization.log_kept import log_kept
from nanoloom.quantization.samples import Sample

Method = Literal["minmax", "entropy", "percentile"]
METHODS: tuple[str, ...] = get_args(Method)
PERCENTILE = 99.99
Progress = Callable[[str, int, int], None]


def calibrated(
    path: Path,
    values: Sequence[ir.Value],
    samples: Sequence[Sample],
    method: Method,
    progress: Progress,
) -> dict[str, Range]:
    """The range of each value of a model file, by name."""
    with log_kept():
        calibrator = opened(path, values, method)
        for done, sample in enumerate(samples):
            progress("calibrating", done, len(samples))
            calibrator.collect_data(OneSample(dict(sample.arrays)))
        progress("calibrating", len(samples), len(samples))
        found: Mapping[str, Any] = calibrator.compute_data().data
    return {name: range_of(data) for name, data in found.items()}


def range_of(data: Any) -> Range:
    least, most = (float(np.asarray(x).reshape(-1)[0]) for x in data.range_value)
    return Range(least, most)


class OneSample:
    """What a calibrator reads samples from."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.left = [arrays]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self.left.pop() if self.left else None


def opened(path: Path, values: Sequence[ir.Value], method: Method) -> Any:
    """A calibrator of these values alone; the library's own choice is by operators."""
    from onnxruntime.quantization import calibrate

    is_large = sum(each.stat().st_size for each in path.parent.iterdir()) > LARGE
    augmented = str(path.parent / "augmented.onnx")
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "minmax": (calibrate.MinMaxCalibrater, {}),
        "entropy": (calibrate.EntropyCalibrater, {"num_bins": 2048}),
        "percentile": (
            calibrate.PercentileCalibrater,
            {"num_bins": 2048, "percentile": PERCENTILE},
        ),
    }
    kind, options = kinds[method]
    made = kind(
        path,
        augmented_model_path=augmented,
        use_external_data_format=is_large,
        **options,
    )
    every = made.select_tensors_to_calibrate
    names = {value.name for value in values}

    def selected(model: Any) -> tuple[set[str], dict[str, Any]]:
        found, infos = every(model)
        return found & names, infos

    made.select_tensors_to_calibrate = selected
    made.augment_graph()
    made.create_inference_session()
    return made
