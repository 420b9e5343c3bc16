"""Quantized matrix products as exporters write them, and what they are in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.linalg.bounds import sample

UNIT = 2.0**-24  # half the distance of float32 numbers, relative


@dataclass(frozen=True)
class Product:
    """One product between DequantizeLinear and QuantizeLinear.

    form: MatMul, Gemm, transB (Gemm), or turned (a Transpose of the weight).
    bias: none, float (Add or Gemm's C), int32 (dequantized).  out: its type or "".
    """

    left: str = "uint8"
    right: str = "int8"
    each: bool = False
    zeros: bool = True
    form: str = "MatMul"
    bias: str = "none"
    relu: bool = False
    out: str = ""
    sizes: tuple[int, ...] = (5, 37, 19)


@dataclass(frozen=True)
class Arrays:
    """The stored integers, scales and zero points of a product, all of numpy."""

    a: np.ndarray
    w: np.ndarray
    a_scale: np.ndarray
    w_scale: np.ndarray
    a_zero: np.ndarray
    w_zero: np.ndarray
    c: np.ndarray
    c_scale: np.ndarray
    y_scale: np.ndarray
    y_zero: np.ndarray


def arrays(case: Product, seed: int = 1) -> Arrays:
    *lead, k, n = case.sizes
    each = (n,) if case.each else ()
    high = 200 if case.zeros else 0
    a_scale = sample(seed, (), "float32", 0.01, 0.03)
    w_scale = sample(seed + 1, each, "float32", 0.004, 0.01)
    c = sample(seed + 2, (n,), "int32", -3000, 3000)
    if case.bias != "int32":
        c = sample(seed + 2, (n,), "float32", -1, 1)
    return Arrays(
        sample(seed + 3, (*lead, k), case.left, -128, 255),
        sample(seed + 4, (k, n), case.right, -128, 255),
        a_scale,
        w_scale,
        sample(seed + 5, (), case.left, -high, high),
        sample(seed + 6, each, case.right, -high, high),
        c,
        (a_scale * w_scale).astype(np.float32),
        np.asarray(0.03 * k**0.5, np.float32),
        sample(seed + 7, (), case.out or "int8", -9, 99),
    )


def node(op: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), [output], name=output, **attributes)


def model(case: Product, t: Arrays) -> onnx.ModelProto:
    """The model: input a, output y."""
    swapped = case.form in ("transB", "turned")
    axis = {"axis": 0 if swapped else 1} if case.each else {}
    nodes = [
        node("DequantizeLinear", ["a", "a_scale", "a_zero"], "left"),
        node("DequantizeLinear", ["w", "w_scale", "w_zero"], "stored", **axis),
    ]
    right = "stored"
    if case.form == "turned":
        nodes.append(node("Transpose", [right], "right", perm=[1, 0]))
        right = "right"
    if case.bias == "int32":
        each = {"axis": 0} if case.each else {}
        nodes.append(node("DequantizeLinear", ["c", "c_scale"], "bias", **each))
    bias = {"none": [], "float": ["c"], "int32": ["bias"]}[case.bias]
    if case.form in ("Gemm", "transB"):
        turn = {"transB": 1} if case.form == "transB" else {}
        nodes.append(node("Gemm", ["left", right, *bias], "v", **turn))
    else:
        nodes.append(node("MatMul", ["left", right], "p"))
        nodes += [node("Add", [*bias, "p"], "v")] if bias else []
    nodes += [node("Relu", [nodes[-1].output[0]], "r")] if case.relu else []
    if case.out:
        last = nodes[-1].output[0]
        nodes.append(node("QuantizeLinear", [last, "y_scale", "y_zero"], "q"))
    nodes[-1].output[0] = "y"
    held = {name: getattr(t, name) for name in t.__dataclass_fields__ if name != "a"}
    held["w"] = np.ascontiguousarray(t.w.T) if swapped else t.w
    used = {name for n in nodes for name in n.input}
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("a", element(t.a), t.a.shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(x, name) for name, x in held.items() if name in used],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def element(x: np.ndarray) -> int:
    return helper.np_dtype_to_tensor_dtype(x.dtype)


def exact(case: Product, t: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """The model in float64, and how far a float32 result may be from it.

    The integer sum is exact: rounded are its conversion, the factor, their product,
    the bias and the last addition.
    """
    left = t.a.astype(np.int64) - t.a_zero
    right = t.w.astype(np.int64) - t.w_zero
    product = (left @ right) * (t.a_scale.astype(np.float64) * t.w_scale)
    bias = np.zeros(()) if case.bias == "none" else t.c.astype(np.float64)
    if case.bias == "int32":
        bias = bias * t.c_scale.astype(np.float64)
    value = product + bias
    bound = 1.001 * UNIT * (3 * abs(product) + abs(bias) + abs(value))
    value = np.maximum(value, 0) if case.relu else value
    if not case.out:
        return value, bound
    limits = np.iinfo(case.out)
    whole = np.rint(value / t.y_scale.astype(np.float64)) + t.y_zero
    return np.clip(whole, limits.min, limits.max).astype(case.out), np.zeros(())
