"""The models that two versions are compared with, a kind each.

Convolutions, recurrent layers and products are those of the benchmarks of these names.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx

from benchmarks import layers, recurrences
from benchmarks.gemm import ODD, WEIGHTS
from benchmarks.models import seeded_inputs
from benchmarks.models.quantized import parts
from benchmarks.systems import Task
from benchmarks.whole_models import model_file
from nanoloom_papers.reproduce.chain_models import feeds, onnx_model
from nanoloom_papers.reproduce.chains import draw, gemm

KINDS = ("layers", "recurrences", "gemm", "models")
ROWS = (1, 16, 128)  # of the products


def tasks_of(kind: str, models: Sequence[str], folder: Path) -> Iterator[Task]:
    """Models with inputs; each file is written when it is asked for.

    models: of the kind of that name.
    """
    if kind == "layers":
        for layer in layers.known_layers():
            shape = (1, layer.channels, layer.high, layer.wide)
            inputs = {"x": np.random.default_rng(1).standard_normal(shape, np.float32)}
            path = saved(layers.model_of(layer), folder)
            yield Task(f"{layer.kind} {layer}", path, inputs)
    elif kind == "recurrences":
        yield from recurrences.tasks(Namespace(quick=False, only=""), folder)
    elif kind == "gemm":
        shapes = [(m, k, n) for k, n in WEIGHTS for m in ROWS]
        for arithmetic in ("f32", "int8"):
            for shape in (*shapes, ODD):
                chain = gemm(*shape, arithmetic)
                numbers = draw(chain)
                path = saved(onnx_model(chain, numbers), folder)
                name = f"{arithmetic} {chain.size}"
                yield Task(name, path, feeds(chain, numbers), arithmetic)
    else:
        for name in models:
            base, form = parts(name)
            inputs = seeded_inputs(base)
            precision = "int8" if form else "f32"
            yield Task(name, model_file(name, folder), inputs, precision)


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "task.onnx"
    onnx.save(model, path)
    return path
