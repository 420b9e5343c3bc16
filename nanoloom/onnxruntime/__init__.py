"""ONNX Runtime's Python interface, over nanoloom.

    import nanoloom.onnxruntime as ort

`replace_onnxruntime()` puts it in the place of `onnxruntime` for other packages
(docs/from-onnxruntime.md).
"""

from __future__ import annotations

from nanoloom.onnxruntime import capi
from nanoloom.onnxruntime.binding import IOBinding
from nanoloom.onnxruntime.described import ModelMetadata, NodeArg
from nanoloom.onnxruntime.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from nanoloom.onnxruntime.replace import replace_onnxruntime
from nanoloom.onnxruntime.session import PROVIDER, InferenceSession
from nanoloom.onnxruntime.values import OrtDevice, OrtValue

__version__ = "1.31.1"  # of ONNX Runtime, whose interface this is
SessionIOBinding = IOBinding

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "capi",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "replace_onnxruntime",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "has_collective_ops",
    "preload_dlls",
    "set_global_thread_pool_sizes",
    "set_seed",
]


def get_available_providers() -> list[str]:
    return [PROVIDER]


def get_all_providers() -> list[str]:
    return [PROVIDER]


def get_device() -> str:
    return "CPU"


def get_version_string() -> str:
    return __version__


def get_build_info() -> str:
    return "nanoloom"


def set_default_logger_severity(severity: int) -> None:
    """Nothing is logged."""
    del severity


def set_default_logger_verbosity(verbosity: int) -> None:
    """Nothing is logged."""
    del verbosity


def set_seed(seed: int) -> None:
    """Random operators take theirs from the model alone."""
    del seed


def set_global_thread_pool_sizes(*sizes: int) -> None:
    """A session's threads are those of its own options."""
    del sizes


def enable_telemetry_events() -> None:
    """Nothing is sent."""


def disable_telemetry_events() -> None:
    """Nothing is sent."""


def preload_dlls(*_: object, **__: object) -> None:
    """Nothing to load: there is no other device than the CPU."""


def has_collective_ops() -> bool:
    return False
