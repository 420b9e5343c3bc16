"""The example of "Scalable Vectorisation in Linalg", step by step, as files.

y = alpha * (a + b) of any length: tiled by [4], vectorized under masks, lowered, and
assembly for SVE and RVV; then the same with the last round peeled off before, and
nanoloom's own code of every form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.target import by_name
from nanoloom.target.facts import Target
from nanoloom.workers.messages import Stage
from nanoloom_papers.reproduce.scalable_mlir import (
    ANY,
    LOOP,
    TO_BUFFERS,
    assembly,
    llvm_text,
    lower,
    match,
    passed,
    script,
    transformed,
)

# Of each architecture: the target, and what the files are called by.
TARGETS = {"sve": "armv9-sve2", "rvv": "rv64gcv"}
EXAMPLE = """#map = affine_map<(d0) -> (d0)>
func.func @example(%a: tensor<?xf32>, %b: tensor<?xf32>, %y: tensor<?xf32>,
                   %alpha: f32) -> tensor<?xf32> {
  %0 = linalg.generic {indexing_maps = [#map, #map, #map],
                       iterator_types = ["parallel"]}
      ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%one: f32, %other: f32, %out: f32):
    %1 = arith.addf %one, %other : f32
    %2 = arith.mulf %alpha, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""
GENERIC = match("op", "linalg.generic")
TILE = script(
    GENERIC,
    "%tiled, %loop = transform.structured.tile_using_for %op tile_sizes [[4]] "
    f": ({ANY}) -> ({ANY}, {ANY})",
)
PEEL = script(
    match("loop", "scf.for", LOOP),
    f"%main, %rest = transform.loop.peel %loop : ({LOOP}) -> ({ANY}, {ANY})",
)
VECTORIZE = script(
    GENERIC,
    f"transform.foreach %op : {ANY} {{",
    f"^bb0(%each: {ANY}):",
    f"  transform.structured.vectorize %each vector_sizes [[4]] : {ANY}",
    "}",
)
CLEAN = ("canonicalize", "cse")


@dataclass(frozen=True)
class Example:
    """A job: MLIR's files of the example.  peeled: the main loop without masks."""

    peeled: bool = False

    def run(self, stage: Stage) -> dict[str, str]:
        del stage
        with mlir.context():
            return steps(self.peeled)


def steps(peeled: bool) -> dict[str, str]:
    """Files by name, in the order of the steps."""
    module = ir.Module.parse(EXAMPLE)
    name = "peeled" if peeled else "masked"
    made = {"example.mlir": str(module), "tile.mlir": TILE, "vectorize.mlir": VECTORIZE}
    transformed(module, TILE)
    passed(module, ("cse",))
    made["tiled.mlir"] = str(module)
    if peeled:
        made["peel.mlir"] = PEEL
        transformed(module, PEEL)
        passed(module, CLEAN)
        made["tiled-peeled.mlir"] = str(module)
    transformed(module, VECTORIZE)
    passed(module, ("cse",))
    made[f"vectorized-{name}.mlir"] = str(module)
    passed(module, TO_BUFFERS)
    lower(module)
    made[f"lowered-{name}.mlir"] = str(module)
    for short, target in TARGETS.items():
        made |= last_steps(str(module), f"{name}-{short}", by_name(target))
    return made


def last_steps(text: str, name: str, target: Target) -> dict[str, str]:
    """LLVM's IR and the assembly."""
    lowered = llvm_text(ir.Module.parse(text), target)
    return {f"{name}.ll": lowered, f"{name}.s": assembly(lowered, target)}


def of_form(target: Target, form: str) -> Target:
    """A target whose loops over vectors have another form."""
    return replace(target, vector=replace(target.vector, form=form))
