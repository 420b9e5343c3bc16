"""Table I and Figure 7: reductions that nanoloom finds, and MLIR's own matcher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import onnx

from nanoloom.compiler import Report, partition_model
from nanoloom.frontend.onnx import load
from nanoloom.options import CompileOptions
from nanoloom.target.facts import Target
from nanoloom.workers.batch import Batch
from nanoloom.workers.pool import pool
from nanoloom_papers.affine.reduction_jobs import CountReductions
from nanoloom_papers.reproduce.oml_models import Layer
from nanoloom_papers.reproduce.oml_results import FOUND, TABLE, Result

# What a step makes of the carried %m and of %x and %y in memory: %n.
STEPS: Mapping[str, Sequence[str]] = MappingProxyType({
    "arith.addf": ("%n = arith.addf %m, %x : f32",),
    "arith.mulf": ("%n = arith.mulf %m, %x : f32",),
    "math.fma": ("%n = math.fma %x, %y, %m : f32",),
    "arith.mulf, arith.addf": (
        "%p = arith.mulf %x, %y : f32",
        "%n = arith.addf %m, %p : f32",
    ),
    "arith.maxnumf": ("%n = arith.maxnumf %m, %x : f32",),
    "arith.maximumf": ("%n = arith.maximumf %m, %x : f32",),
    "arith.minnumf": ("%n = arith.minnumf %m, %x : f32",),
    "arith.minimumf": ("%n = arith.minimumf %m, %x : f32",),
    "arith.cmpf, arith.select": (
        "%c = arith.cmpf ogt, %x, %m : f32",
        "%n = arith.select %c, %x, %m : f32",
    ),
    "math.absf, arith.maximumf": (
        "%a = math.absf %x : f32",
        "%n = arith.maximumf %m, %a : f32",
    ),
})  # fmt: skip
LOOP = """func.func @sum(%A: memref<8xf32>, %B: memref<8xf32>, %begin: f32) -> f32 {{
  %s = affine.for %i = 0 to 8 iter_args(%m = %begin) -> (f32) {{
    %x = affine.load %A[%i] : memref<8xf32>
    %y = affine.load %B[%i] : memref<8xf32>
    {step}
    affine.yield %n : f32
  }}
  return %s : f32
}}
"""


def kinds() -> list[Result]:
    """Table I: of a loop for each kind, whether its reduction is found."""
    with Batch[tuple[int, int]](pool(), 1, lambda _: None) as batch:
        for name, step in STEPS.items():
            text = LOOP.format(step="\n    ".join(step))
            batch.ask(name, CountReductions(text, of_loops=True))
        found = batch.answers()
    return [
        Result(TABLE, name, "", contender, "found", value)
        for name, (own, theirs) in found.items()
        for contender, value in (("loops", 1), ("nanoloom", own), ("mlir", theirs))
    ]


def found_in(layer: Layer, model: onnx.ModelProto, target: Target) -> Iterator[Result]:
    """Figure 7: the reductions of all kernels, as often as they are called."""
    program = partition_model(load(model), CompileOptions(target), Report())
    with Batch[tuple[int, int]](pool(), 1, lambda _: None) as batch:
        for kernel in program.kernels.values():
            batch.ask(kernel.name, CountReductions(kernel.text))
        found = batch.answers()
    pairs = [found[call.kernel] for call in program.calls]
    for place, contender in enumerate(("nanoloom", "mlir")):
        count = sum(pair[place] for pair in pairs)
        yield Result(FOUND, layer.name, layer.size, contender, "reductions", count)
