"""A program for one set of shapes, as the cache keeps it, loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nanoloom.runtime.library import Instance, Library
from nanoloom.runtime.parameters import Weights, load_parameters

Array = np.ndarray[Any, np.dtype[Any]]
LIBRARY = "program.so"  # in its folder, beside the parameters


class Variant:
    """The program in a folder of the cache, which has its name; on threads of its own.

    Code, threads and memory go when nobody refers to it.
    """

    def __init__(self, folder: Path, threads: int, weights: Weights) -> None:
        self.name = folder.name
        self.library = Library(folder / LIBRARY)
        block = None
        if self.library.parameter_bytes:
            block = load_parameters(folder, weights)
        self.instance: Instance = self.library.create(threads, block)
        self.inputs = [x.name for x in self.library.inputs]
        self.outputs = [x.name for x in self.library.outputs]

    def __call__(
        self, inputs: Mapping[str, Array], nanoseconds: Array | None = None
    ) -> dict[str, Array]:
        given = [inputs[name] for name in self.inputs]
        made = self.library.new_outputs()
        self.instance.run(given, made, nanoseconds=nanoseconds)
        return dict(zip(self.outputs, made, strict=True))
