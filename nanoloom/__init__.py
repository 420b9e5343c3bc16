"""nanoloom turns a neural network into vector code.

program = nanoloom.compile("model.onnx", threads=2)
outputs = program({"ids": ids, "mask": mask})
program.save("model.so")
nanoloom.load("model.so")

What comes from no model is written with `nanoloom.notation`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nanoloom.errors import (
    Cancelled,
    Error,
    InputError,
    InternalError,
    ModelError,
    ModelWarning,
    TimedOut,
    Unsupported,
)

if TYPE_CHECKING:
    from nanoloom.api.loaded import load
    from nanoloom.api.program import Program
    from nanoloom.compile_program import compile
    from nanoloom.custom_operators import operator
    from nanoloom.notation import computation
    from nanoloom.quantization.quantize import quantize
    from nanoloom.runtime.limits import Cancellation

__version__ = "0.1.0"
__all__ = [
    "Cancellation",
    "Cancelled",
    "Error",
    "InputError",
    "InternalError",
    "ModelError",
    "ModelWarning",
    "Program",
    "TimedOut",
    "Unsupported",
    "compile",
    "computation",
    "load",
    "operator",
    "quantize",
]


# What brings numpy with it is imported when it is used.
_HOMES = {
    "Cancellation": "runtime.limits",
    "Program": "api.program",
    "compile": "compile_program",
    "computation": "notation",
    "load": "api.loaded",
    "operator": "custom_operators",
    "quantize": "quantization.quantize",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'nanoloom' has no attribute {name!r}")
    try:
        home = import_module(f"nanoloom.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("nanoloom."):
            raise
        reason = "this is nanoloom-runtime, which runs what is compiled"
        hint = "pip install nanoloom brings the compiler"
        raise AttributeError(f"nanoloom.{name}: {reason}; {hint}") from None
    return getattr(home, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
