"""An empty torchvision: timm imports it for what prepares images, which nobody calls.

The real one does not import beside the build of PyTorch that is for CPUs alone.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar


class Nothing(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return made(name)


def made(name: str) -> Any:
    return Nothing(name, (), {"__init__": lambda self, *a, **k: None})


class Empty(ModuleType):
    __path__: ClassVar[list[str]] = []
    __version__ = "0.28.0"  # transformers asks whether it is old

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return made(name)


class Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name.split(".")[0] != "torchvision":
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return None


def install() -> None:
    sys.meta_path.append(Finder())
