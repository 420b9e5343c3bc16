"""ONNX Runtime's names, where its clients look for them."""

from __future__ import annotations

from nanoloom.onnxruntime.described import ModelMetadata, NodeArg
from nanoloom.onnxruntime.errors import (
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoaded,
    NoModel,
    NoSuchFile,
    RuntimeException,
    Unavailable,
)
from nanoloom.onnxruntime.options import (
    ExecutionMode,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from nanoloom.onnxruntime.values import OrtDevice

NotImplemented = Unavailable

__all__ = [
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "Fail",
    "GraphOptimizationLevel",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoaded",
    "ModelMetadata",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotImplemented",
    "OrtDevice",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
]
