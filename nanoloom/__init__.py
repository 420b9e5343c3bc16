"""nanoloom turns a neural network into vector code.

    program = nanoloom.compile("model.onnx", threads=2)
    outputs = program({"ids": ids, "mask": mask})
    program.save("model.so")
    nanoloom.load("model.so")
"""

from __future__ import annotations

from nanoloom.errors import Error, InputError, ModelError, Unsupported
from nanoloom.program import Program, compile, load

__version__ = "0.1.0"
__all__ = [
    "Error",
    "InputError",
    "ModelError",
    "Program",
    "Unsupported",
    "compile",
    "load",
]
