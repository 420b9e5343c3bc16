"""A conformance case through the whole pipeline, from ONNX to the loaded library."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

import nanoloom
from nanoloom.cache import Cache

THREADS = 2  # the kernels' tasks are shared out, as in real use


class Pipeline:
    """Compiles and runs models; equal kernels of different cases are compiled once."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    def __call__(
        self, model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]
    ) -> list[np.ndarray]:
        """The outputs of a model, in its order.  Raises what nanoloom raises."""
        program = nanoloom.compile(model, threads=THREADS, cache=self.cache)
        made = program(feeds)
        return [made[x.name] for x in program.outputs]
