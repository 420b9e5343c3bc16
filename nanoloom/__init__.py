"""nanoloom turns a neural network into vector code.

program = nanoloom.compile("model.onnx", threads=2)
outputs = program({"ids": ids, "mask": mask})
program.save("model.so")
nanoloom.load("model.so")

What comes from no model is written with `nanoloom.notation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanoloom.errors import (
    Error,
    InputError,
    InternalError,
    ModelError,
    ModelWarning,
    Unsupported,
)

if TYPE_CHECKING:
    from nanoloom.compile_program import compile
    from nanoloom.loaded import load
    from nanoloom.notation import computation
    from nanoloom.program import Program
    from nanoloom.quantization.quantize import quantize

__version__ = "0.1.0"
__all__ = [
    "Error",
    "InputError",
    "InternalError",
    "ModelError",
    "ModelWarning",
    "Program",
    "Unsupported",
    "compile",
    "computation",
    "load",
    "quantize",
]


def __getattr__(name: str) -> object:
    """What brings numpy with it is imported when it is used."""
    if name not in __all__:
        raise AttributeError(f"module 'nanoloom' has no attribute {name!r}")
    if name == "quantize":
        from nanoloom.quantization.quantize import quantize

        return quantize
    from nanoloom import compile_program, loaded, notation, program

    own = {"load": loaded, "computation": notation, "compile": compile_program}
    return getattr(own.get(name, program), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
