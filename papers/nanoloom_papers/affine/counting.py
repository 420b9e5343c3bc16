"""Reductions of a kernel's loops, by nanoloom and by MLIR, in the same loops.

The loops are those of a compiler that adds up in registers and with multiply-adds.
"""

from __future__ import annotations

from time import perf_counter

from nanoloom.ir.mlir import ir, named, run_pipeline
from nanoloom_papers.affine.carry import carry
from nanoloom_papers.affine.detect import reduction_map, reductions
from nanoloom_papers.affine.nests import nests
from nanoloom_papers.affine.products import put_together
from nanoloom_papers.affine.stage import to_loops

# MLIR's matcher has no pass of its own here; this one writes down what it finds.  What
# it makes of the other loops does not verify for minima and maxima of integers.
UPSTREAM = ("func.func(affine-parallelize{parallel-reductions=1})",)


def counts(module: ir.Module) -> tuple[int, int]:
    """Of a kernel on tensors: reductions in innermost loops, and MLIR's among them."""
    to_loops(module)
    put_together(module)
    innermost = [carry(nest[-1]) for nest in nests(module)]
    found = sum(len(reductions(loop)) for loop in innermost)
    return found, by_mlir(module)


def detection_seconds(module: ir.Module) -> float:
    """What the reduction map of a kernel on tensors takes, once it is loops."""
    to_loops(module)
    put_together(module)
    start = perf_counter()
    reduction_map(module)
    return perf_counter() - start


def counts_of_loops(module: ir.Module) -> tuple[int, int]:
    """The same of affine loops as they are."""
    found = sum(len(each) for _, each in reduction_map(module))
    return found, by_mlir(module)


def by_mlir(module: ir.Module) -> int:
    """How many reductions MLIR's own matcher finds in a module; it is changed."""
    run_pipeline(module, UPSTREAM, verify=False)
    loops = named(module, "affine.parallel")
    return sum(len(list(loop.operation.attributes["reductions"])) for loop in loops)  # type: ignore[call-overload]
