"""Modules of other packages that are seldom used, loaded when something asks for them.

onnx_ir computes with the names of dimensions by sympy, which nanoloom leaves to
nanoloom/dynamic/: loading it took a third of a second in front of each compilation.
"""

from __future__ import annotations

import sys
from importlib import import_module
from threading import Lock
from types import ModuleType

# The second one takes functions of the first when it is loaded itself.
SELDOM = "sympy", "onnx_ir._symbolic_shapes"
_taking = Lock()


class Later(ModuleType):
    """What stands for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> object:
        with _taking:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def load_later() -> None:
    """For a process of nanoloom's own: others may look into `sys.modules`."""
    for name in SELDOM:
        sys.modules.setdefault(name, Later(name))


def load_onnx_ir() -> None:
    """onnx_ir, in a process of others: they find what it leaves for later as always."""
    if "onnx_ir" in sys.modules:
        return
    placed = {name: Later(name) for name in SELDOM if name not in sys.modules}
    sys.modules.update(placed)
    try:
        import_module("onnx_ir")
    finally:
        for name, later in placed.items():
            if sys.modules.get(name) is later:
                del sys.modules[name]
