"""Weights of 4 or 8 bits in blocks, the numbers around them in floats: MatMulNBits."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes

from nanoloom.frontend.onnx import load
from nanoloom.frontend.problems import Problem
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.inspect.references import save
from nanoloom.quantization.candidates import (
    ASKED,
    NO_CONSTANT,
    NOT_FLOAT32,
    PRODUCTS,
    constant,
    number,
)
from nanoloom.quantization.log_kept import log_kept

BITS = (4, 8)
BLOCKS = (16, 32, 64, 128, 256)
IR_VERSION = 10
OTHERS = "only the weights of matrix products are quantized in blocks"


def with_products(model: ir.Model) -> ir.Model:
    """A copy with MatMul in the place of each Gemm that is a product and a bias."""
    made = model.clone()
    passes.LiftConstantsToInitializersPass(lift_all_constants=True)(made)
    for node in list(made.graph):
        if is_tensor_op(node, {"Gemm"}) and constant(node.inputs[1]) is not None:
            take_apart(made.graph, node)
    passes.RemoveUnusedNodesPass()(made)
    passes.ShapeInferencePass()(made)
    return made


def take_apart(graph: ir.Graph, node: ir.Node) -> None:
    """alpha = beta = 1: x B + c, in two nodes, B as it is multiplied."""
    factors = {number(node, name, 1) for name in ("alpha", "beta")}
    weight = constant(node.inputs[1])
    if weight is None or weight.dtype != ir.DataType.FLOAT:
        return
    if factors != {1.0} or number(node, "transA", 0):
        return
    right = node.inputs[1]
    if number(node, "transB", 0):
        name = f"{node.inputs[1].name}/transposed"  # pyright: ignore[reportOptionalMemberAccess]
        right = graph.initializers.get(name)
        if right is None:
            tensor = ir.tensor(weight.numpy().T.copy(), name=name)
            right = ir.Value(name=name, const_value=tensor)
            right.shape, right.dtype = tensor.shape, tensor.dtype
            graph.register_initializer(right)
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    product = ir.node("MatMul", [node.inputs[0], right], name=node.name)
    made, out = [product], node.outputs[0]
    if bias is not None:
        product.outputs[0].name = f"{out.name}/product"
        product.outputs[0].dtype = weight.dtype
        product.outputs[0].shape = out.shape
        made.append(ir.node("Add", [product.outputs[0], bias], name=f"{node.name}/Add"))
    last = made[-1].outputs[0]
    name, shape, kind = out.name, out.shape, out.dtype
    ir.convenience.replace_nodes_and_values(graph, node, [node], made, [out], [last])
    last.name, last.shape, last.dtype = name, shape, kind or weight.dtype


def weight_candidates(
    graph: ir.Graph, kept: Collection[str] = ()
) -> tuple[dict[str, ir.Node], list[Problem]]:
    """Products whose weights go into blocks, and those that stay, with the reason."""
    layers: dict[str, ir.Node] = {}
    floats: list[Problem] = []
    for node in graph:
        if is_tensor_op(node, PRODUCTS):
            why = ASKED if node.name in kept else reason(node)
            if why:
                floats.append(Problem(node.name or "", why, "", node.op_type))
            else:
                layers[node.name or ""] = node
    return layers, floats


def reason(node: ir.Node) -> str:
    """Why a weight stays as it is, "" if it need not."""
    weight = constant(node.inputs[1])
    if weight is None:
        return NO_CONSTANT
    if node.op_type != "MatMul":
        return OTHERS
    if weight.dtype != ir.DataType.FLOAT:
        return NOT_FLOAT32
    return "" if len(weight.shape) == 2 and weight.size else OTHERS


def weight_only_model(
    model: ir.Model, chosen: Collection[str], bits: int, block: int, folder: Path
) -> ir.Model:
    """The model with the weights of these nodes in blocks, by ONNX Runtime's tool."""
    with log_kept():
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        excluded = [node.name or "" for node in model.graph if node.name not in chosen]
        tool = MatMulNBitsQuantizer(
            onnx.load(save(model, folder)),
            bits=bits,
            block_size=block,
            is_symmetric=True,
            nodes_to_exclude=excluded,
        )
        tool.process()
        made = tool.model.model
    made.ir_version = max(made.ir_version, IR_VERSION)
    return load(made, expands=False)


def both_weights(
    model: ir.Model, quantized: ir.Model, chosen: Collection[str]
) -> tuple[ir.Model, dict[str, tuple[ir.Value, ir.Value]]]:
    """A model with both forms of each product, and the value of each, by node."""
    made = model.clone()
    made.opset_imports["com.microsoft"] = 1
    forms = {node.outputs[0].name: node for node in quantized.graph}
    found: dict[str, tuple[ir.Value, ir.Value]] = {}
    for node in list(made.graph):
        if node.name not in chosen:
            continue
        form = forms[node.outputs[0].name]
        weights = [taken(made.graph, x) for x in form.inputs[1:] if x is not None]
        inputs = [node.inputs[0], *weights]
        copy = ir.node(form.op_type, inputs, domain=form.domain, name=form.name)
        for attribute in form.attributes.values():
            copy.attributes.add(attribute)
        copy.outputs[0].name = f"{node.outputs[0].name}/in blocks"
        made.graph.insert_after(node, copy)
        found[node.name or ""] = node.outputs[0], copy.outputs[0]
    return made, found


def taken(graph: ir.Graph, value: ir.Value) -> ir.Value:
    """A weight of another graph in this one."""
    name = value.name or ""
    if name not in graph.initializers:
        made = ir.Value(name=name, const_value=value.const_value)
        made.shape, made.dtype = value.shape, value.dtype
        graph.register_initializer(made)
    return graph.initializers[name]
