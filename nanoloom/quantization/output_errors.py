"""How far a quantized model's outputs are from those in floats, on samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from nanoloom.inspect.references import Run, open_reference, save
from nanoloom.quantization.layer_errors import Squares
from nanoloom.quantization.samples import Sample

Array = np.ndarray[Any, np.dtype[Any]]
KEPT = 1 << 30  # bytes of outputs in floats that are kept from one trial to the next


@dataclass
class Right:
    """The outputs in floats, once computed."""

    model: ir.Model
    samples: Sequence[Sample]
    folder: Path
    threads: int
    kept: list[list[Array]] = field(default_factory=list[list[Array]])
    run: Run | None = None
    bytes: int = 0

    def of(self, index: int) -> list[Array]:
        """Those of a sample."""
        if index < len(self.kept):
            return self.kept[index]
        if self.run is None:
            path = save(self.model, self.folder)
            self.run = open_reference("ort", path, self.threads)
        found = self.run(self.samples[index].arrays)
        self.bytes += sum(array.nbytes for array in found)
        if index == len(self.kept) and self.bytes <= KEPT:
            self.kept.append(found)
        return found

    def errors(self, model: ir.Model) -> dict[str, float]:
        """The relative error of each output; of integers, the part that differs."""
        run = open_reference("ort", save(model, self.folder), self.threads)
        names = [value.name or "" for value in model.graph.outputs]
        found = {name: Squares() for name in names}
        for index, sample in enumerate(self.samples):
            right = self.of(index)
            for name, ours, exact in zip(names, run(sample.arrays), right, strict=True):
                compared(found[name], ours, exact)
        return {name: squares.relative for name, squares in found.items()}


def compared(squares: Squares, got: Array, right: Array) -> None:
    """Add what differs.  Shapes that depend on data may differ: that is no number."""
    if got.shape != right.shape:
        squares.error = float("inf")
    elif right.dtype.kind in "fc":
        squares.add(got, right)
    else:
        squares.error += float((got != right).sum())
        squares.size += right.size
