"""Loops as text around a body, and the reductions that are found in them."""

from __future__ import annotations

from nanoloom.ir.mlir import context, ir, named, run_pipeline
from nanoloom_papers.affine.report import Loop, Reduction, describe

UPSTREAM = "affine-super-vectorize{virtual-vector-size=4 vectorize-reductions=true}"


def carrying(body: str, kind: str = "f32") -> str:
    """A loop that carries %m from %init, in `body` the new value %n is made of it.

    %x is an element of %A, %y one of %B; %j an index around the loop.
    """
    return f"""
func.func @f(%A: memref<8x{kind}>, %B: memref<8x{kind}>, %init: {kind}) {{
  affine.for %j = 0 to 4 {{
    %r = affine.for %k = 0 to 8 iter_args(%m = %init) -> {kind} {{
      %x = affine.load %A[%k] : memref<8x{kind}>
      %y = affine.load %B[%k] : memref<8x{kind}>
      {body}
      affine.yield %n : {kind}
    }}
    affine.store %r, %A[%j] : memref<8x{kind}>
  }}
  return
}}
"""


def updating(body: str, before: str = "") -> str:
    """A loop over %k in one over %i and %j, whose `body` does what it likes to %C."""
    return f"""
func.func @f(%A: memref<4x8xf32>, %C: memref<4x6xf32>, %D: memref<4x6xf32>,
             %at: memref<8xindex>, %n: index) {{
  affine.for %i = 0 to 4 {{
    affine.for %j = 0 to 6 {{
      {before}
      affine.for %k = 0 to 8 {{
        %x = affine.load %A[%i, %k] : memref<4x8xf32>
        {body}
      }}
    }}
  }}
  return
}}
"""


def loops(text: str) -> dict[str, Loop]:
    """The loops of a module by the names of their indices."""
    with context():
        return {loop.name: loop for loop in describe(ir.Module.parse(text), text)}


def found(text: str, loop: str = "%k") -> tuple[Reduction, ...]:
    return loops(text)[loop].reductions


def only(text: str, loop: str = "%k") -> Reduction:
    (reduction,) = found(text, loop)
    return reduction


def upstream(text: str) -> int:
    """How many reductions MLIR's own matcher finds, for the vectors made of them."""
    with context():
        module = ir.Module.parse(text)
        run_pipeline(module, (f"func.func({UPSTREAM})",))
        return len(named(module, "vector.reduction"))
