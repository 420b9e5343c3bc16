"""Runs a model through graph and linalg only, as plain scalar loops.

The slow and simple way to an answer: no schedule, no vector, no fusion.  Tests of
operator lowerings use it, so that a wrong number is the lowering's own fault.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping

import numpy as np
import onnx
import onnx_ir
from torch_mlir.dialects import torch as _torch  # noqa: F401 - refback passes

from nanoloom.errors import DataDependent
from nanoloom.graph.stage import bind_values, optimize
from nanoloom.interface.data_dependent_outputs import counted, trimmed
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import LinalgModule, lower
from tests.native_code import Engine

Feeds = Mapping[str, np.ndarray]
PIPELINE = (
    # Not every CPU computes with bf16 or rounds to it, and the engine cannot.
    "func.func(arith-emulate-unsupported-floats{source-types=bf16 target-type=f32},"
    "arith-expand{include-bf16=true})",
    "canonicalize",
    "cse",
    "one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map}",
    "buffer-results-to-out-params{modify-public-functions=1}",
    "func.func(refback-munge-memref-copy,convert-linalg-to-loops)",
    "buffer-deallocation-pipeline",
    "canonicalize",
    "expand-strided-metadata",
    "lower-affine",
    "convert-scf-to-cf",
    "convert-math-to-llvm",
    "convert-math-to-libm",
    "convert-vector-to-llvm",
    "convert-to-llvm",
    "reconcile-unrealized-casts",
)


def descriptor(array: np.ndarray) -> ctypes.Structure:
    rank = array.ndim

    class Memref(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            ("shape", ctypes.c_int64 * rank),
            ("strides", ctypes.c_int64 * rank),
        ]

    strides = [s // array.itemsize for s in array.strides]
    pointer = array.ctypes.data
    return Memref(
        pointer,
        pointer,
        0,
        (ctypes.c_int64 * rank)(*array.shape),
        (ctypes.c_int64 * rank)(*strides),
    )


def evaluate(model: onnx.ModelProto | onnx_ir.Model, feeds: Feeds) -> list[np.ndarray]:
    """The outputs of a model with static shapes (or shapes taken from the feeds).

    Inputs whose values decide about shapes are bound to them, as a first call does.
    """
    bound: dict[str, np.ndarray] = {}
    while True:
        given = isinstance(model, onnx_ir.Model)
        graph = model.clone() if given else onnx_ir.from_proto(model)
        for value in graph.graph.inputs:
            if value.name in feeds:
                value.shape = onnx_ir.Shape(feeds[value.name].shape)
        bind_values(graph, bound)
        try:
            optimize(graph, OPERATORS.keys())
            with mlir.context():
                return run(lower(graph), feeds)
        except DataDependent as error:
            more = {name: feeds[name] for name in error.inputs if name not in bound}
            if not more:
                raise
            bound |= more


def compiled(model: onnx.ModelProto) -> Callable[[Feeds], list[np.ndarray]]:
    """A model of static shapes, made once: a function of its inputs."""
    graph = onnx_ir.from_proto(model)
    optimize(graph, OPERATORS.keys())
    with mlir.context():
        return made(lower(graph))


def run(lowered: LinalgModule, feeds: Feeds) -> list[np.ndarray]:
    return made(lowered)(feeds)


def made(lowered: LinalgModule) -> Callable[[Feeds], list[np.ndarray]]:
    """The module's code; outputs are cut to what counts of them."""
    lowered.module.body.operations[0].attributes["llvm.emit_c_interface"] = (
        ir.UnitAttr.get()
    )
    mlir.run_pipeline(lowered.module, PIPELINE, verify=False)
    lowered.module.operation.verify()
    engine = Engine(lowered.module, opt_level=0)  # most run once, and small
    parameters = [np.ascontiguousarray(p.array()) for p in lowered.parameters]

    def called(feeds: Feeds) -> list[np.ndarray]:
        inputs = [
            np.ascontiguousarray(feeds[x.name]).reshape(x.shape) for x in lowered.inputs
        ]
        outputs = [np.empty(x.shape, x.dtype) for x in lowered.outputs]
        arguments = [descriptor(x) for x in (*inputs, *parameters, *outputs)]
        engine.invoke("main", *arguments)
        names = [x.name for x in lowered.outputs]
        found = trimmed(dict(zip(names, outputs, strict=True)), counted(names))
        return list(found.values())

    return called
