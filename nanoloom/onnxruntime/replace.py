"""`import onnxruntime` gives nanoloom.onnxruntime: for clients that stay as they are.

python -m nanoloom.onnxruntime client.py ARGUMENTS
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path

NAME = "onnxruntime"
OWN = "nanoloom.onnxruntime"
MODULES = (
    "",
    ".capi",
    ".capi._pybind_state",
    ".capi.onnxruntime_pybind11_state",
    ".capi.onnxruntime_inference_collection",
)
# What makes and changes models; clients read names of types from it.
TOOLS = tuple(f"{NAME}.{name}" for name in ("transformers", "quantization", "tools"))
METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


def replace_onnxruntime() -> None:
    """From now on `import onnxruntime` gives nanoloom.onnxruntime, in this process.

    Raises ImportError where ONNX Runtime itself is imported already.
    """
    there = sys.modules.get(NAME)
    own = importlib.import_module(OWN)
    if there is not None and there is not own:
        raise ImportError("onnxruntime is imported already: replace it before that")
    for name in MODULES:
        sys.modules[NAME + name] = importlib.import_module(OWN + name)
    if not any(isinstance(x, Finder) for x in sys.meta_path):
        sys.meta_path.insert(0, Finder())


class Described(Distribution):
    """The package that clients ask for the version of."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        version = importlib.import_module(OWN).__version__
        return METADATA.format(name=NAME, version=version)

    def locate_file(self, path: object) -> object:  # type: ignore[override] - a path
        raise FileNotFoundError(path)


class Finder(DistributionFinder):
    """Finds that package, and the tools of the installed one, which are in Python."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, *_: object
    ) -> ModuleSpec | None:
        del path
        if not fullname.startswith(TOOLS):
            return None
        installed = PathFinder.find_spec(NAME)
        if installed is None:
            return None
        inside = fullname.split(".")[1:-1]
        folders = installed.submodule_search_locations or ()
        places = [str(Path(folder, *inside)) for folder in folders]
        return PathFinder.find_spec(fullname, places)

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        name = NAME if context is None else context.name
        return [Described()] if name == NAME else []
