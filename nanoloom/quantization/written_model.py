"""A model as a file, whole or not at all, large weights beside it."""

from __future__ import annotations

import os
from pathlib import Path

import onnx_ir as ir

from nanoloom.binary.output_files import scratch_beside
from nanoloom.inspect.references import LARGE


def write(model: ir.Model, path: Path) -> None:
    """Take the place of `path`; raises Error, and what stood there stays."""
    path = path.resolve()
    beside = f"{path.name}.data"
    values = model.graph.initializers.values()
    size = sum(x.const_value.nbytes for x in values if x.const_value is not None)
    with scratch_beside(path) as folder:
        whole = folder / path.name
        # The model's own arrays stay where they are: it may be written again.
        ir.save(model, whole, external_data=beside if size > LARGE else None)
        if size > LARGE:
            os.replace(folder / beside, path.with_name(beside))
        os.replace(whole, path)
