"""Models of the table in 8 bits, as ONNX Runtime's quantizer writes them.

    NAME-int8           QuantizeLinear, DequantizeLinear around every matrix product;
                        a scale for each column of a weight
    NAME-int8-tensor    the same with one scale for each weight
    NAME-int8-dynamic   DynamicQuantizeLinear and MatMulInteger

Activations are uint8, weights int8.  All dimensions are fixed at the usual sizes.  Of
networks of images the convolutions, sums, pools and joins are quantized as well.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray
from onnxruntime import quantization
from onnxruntime.tools.onnx_model_utils import make_dim_param_fixed

from benchmarks.models.table import find, seeded_inputs

PRODUCTS = ["MatMul", "Gemm"]
IMAGE_AXES = 4  # batch, channels, height, width
CALIBRATION = 4  # inputs that the ranges of activations are taken from


@dataclass(frozen=True)
class Form:
    """How a model is quantized: ranges known before or not, scales by column or not."""

    dynamic: bool = False
    by_column: bool = True


FORMS: Mapping[str, Form] = {
    "-int8": Form(),
    "-int8-tensor": Form(by_column=False),
    "-int8-dynamic": Form(dynamic=True),
}


def parts(name: str) -> tuple[str, Form | None]:
    """The float model's name, and the form if the name ends in one of FORMS."""
    for suffix, form in FORMS.items():
        if name.endswith(suffix):
            return name.removesuffix(suffix), form
    return name, None


class Calibration:
    """Seeded inputs one after another, then None: what the quantizer asks for."""

    def __init__(self, name: str, small: bool, seed: int) -> None:
        seeds = range(seed + 1, seed + 1 + CALIBRATION)
        self.left: Iterator[dict[str, NDArray[Any]]] = iter(
            [seeded_inputs(name, small, s) for s in seeds]
        )

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        return next(self.left, None)


def write_quantized(
    name: str, path: Path, opset: int = 17, small: bool = False, seed: int = 0
) -> Path:
    """Write the quantized model `name` (NAME-int8 ...) to `path` and return `path`.

    Raises InputError for an unknown name, ModelError if the float model is not right.
    """
    from benchmarks.models.export import write  # needs PyTorch

    base, _ = parts(name)
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "float.onnx"
        write(base, given, opset, small, seed=seed)
        return quantize(given, name, path, small, seed)


def quantize(given: Path, name: str, path: Path, small: bool, seed: int = 0) -> Path:
    """Quantize the file `given` of a float model as `name` says, into `path`."""
    base, form = parts(name)
    assert form is not None, name
    with tempfile.TemporaryDirectory() as folder:
        fixed = Path(folder) / "fixed.onnx"
        onnx.save(with_fixed_sizes(given, base, small), fixed)
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)  # of a model that was not preprocessed
        try:
            kinds = operators(base)
            run_quantizer(fixed, path, form, Calibration(base, small, seed), kinds)
        finally:
            logging.disable(before)
    return path


def with_fixed_sizes(path: Path, name: str, small: bool) -> onnx.ModelProto:
    """The model with the usual sizes for its symbolic dimensions."""
    proto = onnx.load(path)
    for word, size in find(name).variant(small).sizes.items():
        make_dim_param_fixed(proto.graph, word, size)
    return proto


def operators(name: str) -> list[str] | None:
    """Which operators are quantized; None for all that the quantizer knows."""
    pixels = any(len(x.dims) == IMAGE_AXES for x in find(name).full.inputs)
    return None if pixels else PRODUCTS


def run_quantizer(
    given: Path,
    path: Path,
    form: Form,
    calibration: Calibration,
    wanted: list[str] | None,
) -> None:
    kinds = quantization.QuantType
    if form.dynamic:
        quantization.quantize_dynamic(
            given,
            path,
            op_types_to_quantize=wanted,
            per_channel=form.by_column,
            weight_type=kinds.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
        return
    quantization.quantize_static(
        given,
        path,
        calibration,  # type: ignore[arg-type]  # it needs get_next and nothing else
        quant_format=quantization.QuantFormat.QDQ,
        op_types_to_quantize=wanted,
        per_channel=form.by_column,
        activation_type=kinds.QUInt8,
        weight_type=kinds.QInt8,
    )
