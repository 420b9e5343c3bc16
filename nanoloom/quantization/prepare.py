"""A model before it is quantized: looked at, constants folded, norms within filters.

ONNX Runtime's basic optimizations do that, as its quantization tools want it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import onnx_ir as ir
import onnx_ir.passes.common as passes

from nanoloom.errors import Error, Unsupported
from nanoloom.frontend.onnx import load
from nanoloom.inspect.references import LARGE, answering, save
from nanoloom.quantization.candidates import PRODUCTS

QUANTIZED = frozenset(
    [
        "QuantizeLinear",
        "DequantizeLinear",
        "DynamicQuantizeLinear",
        "MatMulInteger",
        "ConvInteger",
        "QLinearMatMul",
        "QLinearConv",
        "MatMulNBits",
        "QGemm",
        "QAttention",
        "DynamicQuantizeMatMul",
        "DynamicQuantizeLSTM",
        "MatMulIntegerToFloat",
        "GatherBlockQuantized",
        "MatMulBnb4",
    ]
)
HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
PER_CHANNEL = 13  # the opset whose DequantizeLinear has an axis
FUSED = "/MatMulAddFusion"  # behind the name of a product that took in its bias
INSTALL = "pip install 'nanoloom[quantize]'"


def require_tools() -> None:
    """Raise Error if there is nothing to calibrate with."""
    from importlib.util import find_spec

    if find_spec("onnxruntime") is None:
        raise Error("quantizing needs ONNX Runtime's tools", hint=INSTALL)


def prepared(model: ir.Model, where: str, folder: Path) -> tuple[ir.Model, Path]:
    """The model as its layers are quantized, and the file of it in a folder.

    Raises Unsupported for one that is quantized already, or of 16-bit floats.
    """
    require_floats(model, where)
    model = modern(model, where, folder)
    path = optimized(save(model, folder), folder)
    made = load(path, expands=False)
    restore_names(made, {node.name for node in model.graph})
    passes.ShapeInferencePass()(made)
    return made, save(made, folder)


def restore_names(model: ir.Model, known: Collection[str | None]) -> None:
    """Nodes are called as in the user's file, and no opset is there without use."""
    for node in model.graph:
        before = (node.name or "").removesuffix(FUSED)
        if before in known:
            node.name = before
    used = {node.domain for node in model.graph.all_nodes()} | {""}
    for domain in [*model.opset_imports]:
        if domain not in used:
            del model.opset_imports[domain]


def require_floats(model: ir.Model, where: str) -> None:
    """Raise Unsupported for a model that is quantized, or of 16-bit floats."""
    for node in model.graph.all_nodes():
        if node.op_type in QUANTIZED:
            raise Unsupported(
                f"is quantized already: node {node.name} is {node.op_type}",
                where=where,
                hint="give the model in floats that it was made of",
            )
    for node in model.graph.all_nodes():
        kinds = {x.dtype for x in node.inputs if x is not None}
        if node.op_type in PRODUCTS and kinds & {*HALVES}:
            raise Unsupported(
                f"computes in {node.inputs[0].dtype.name.lower()}"  # pyright: ignore[reportOptionalMemberAccess]
                f" (node {node.name}), which is not quantized",
                where=where,
                hint="export it in float32: 8 bits are made of that",
            )


def modern(model: ir.Model, where: str, folder: Path) -> ir.Model:
    """The model in an opset that has scales for channels."""
    version = model.opset_imports.get("", PER_CHANNEL)
    if version >= PER_CHANNEL:
        return model
    import onnx

    hint = f"export it with opset {PER_CHANNEL} or later"
    try:
        proto = onnx.load(save(model, folder))
        return load(onnx.version_converter.convert_version(proto, PER_CHANNEL))
    except Exception as error:  # the converter raises what it likes
        reason = f"is of opset {version}, which has no scales for channels"
        raise Unsupported(reason, where=where, hint=hint) from error


def optimized(path: Path, folder: Path) -> Path:
    """What ONNX Runtime's basic optimizations make of a file."""
    import onnxruntime

    made = folder / "optimized.onnx"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(made)
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    )
    if sum(each.stat().st_size for each in folder.iterdir()) > LARGE:
        key = "session.optimized_model_external_initializers_file_name"
        options.add_session_config_entry(key, "optimized.weights")
    answering(
        "ONNX Runtime",
        lambda: onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"],
            disabled_optimizers=["ConstantSharing"],
        ),
    )  # fmt: skip
    return made
