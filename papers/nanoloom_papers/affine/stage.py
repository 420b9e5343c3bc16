"""The affine path: a kernel on tensors becomes vectors through loops of MLIR's dialect.

    linalg -> buffers -> affine loops -> reductions -> lanes -> multiply-adds -> loops

In:  a kernel on tensors, without a schedule.
Out: what the vector stage gives, one phase of one task: loops, vectors and scalars.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nanoloom.ir.mlir import ir, named, run_pipeline
from nanoloom.schedule.library.decisions import STACK_BYTES
from nanoloom.target.facts import Target
from nanoloom.vector.body_indices import write_out_places
from nanoloom.vector.emit_loops import ROLLED
from nanoloom.vector.passes import TO_BUFFERS, emulate_small_floats, return_nothing
from nanoloom.vector.scratch_memory import place_temporaries, scratch_bytes
from nanoloom.vector.stage import Vectorized
from nanoloom.vector.tasks import split_into_phases
from nanoloom.vector.temporaries import bound_temporaries
from nanoloom.vector.vector_copies import copies_to_generics
from nanoloom_papers.affine.factors import Factors
from nanoloom_papers.affine.in_memory import read_again
from nanoloom_papers.affine.nests import Way, lower, nests
from nanoloom_papers.affine.products import put_together, take_apart
from nanoloom_papers.affine.strategies import StrategyName, Unrolling

TO_AFFINE = (
    "func.func(convert-linalg-to-affine-loops)",
    "canonicalize",  # places are written in the accesses themselves
    "cse",
)
FROM_AFFINE = (
    "canonicalize",  # places of steps that were jammed
    "cse",  # what they read in common is read once
    "lower-affine",
    "canonicalize",
    "cse",
)

WAYS: Mapping[StrategyName, Way] = MappingProxyType({
    # Sums in registers, vectors along what lies one behind the other.
    "affine": Way("all", True, ("mlir", "nanoloom"), True),
    # As the loops are; LLVM vectorizes what it can.
    "plain": Way(),
    # MLIR's vectorizer with MLIR's own reductions: multiply-adds are none to it.
    "oml": Way("all", True, ("mlir",), False),
    # Rows of the right operand times a number of the left, added to the result in
    # memory every few steps.
    "onnx-mlir": Way("others than products", False, ("mlir", "nanoloom"), True),
})  # fmt: skip
FUSED_BEFORE: tuple[StrategyName, ...] = ("plain", "oml")


def through_affine(
    module: ir.Module, strategy: StrategyName, unrolling: Unrolling, target: Target
) -> Vectorized:
    """Lower a kernel by one of WAYS."""
    phases = to_loops(module)
    to_vectors(module, strategy, Factors.of(target, unrolling), fuses=target.fuses)
    if strategy == "onnx-mlir":
        read_again(module)
    run_pipeline(module, FROM_AFFINE)
    keep_rolled(module)
    place_temporaries(module, STACK_BYTES)
    emulate_small_floats(module, target)
    module.operation.verify()
    return Vectorized(tuple(phases), (), scratch_bytes(module, phases))


def to_loops(module: ir.Module) -> list[tuple[str, int]]:
    """A kernel on tensors as affine loops on buffers; gives its only phase."""
    run_pipeline(module, TO_BUFFERS, verify=False)
    return_nothing(module)
    copies_to_generics(module, {})  # loops like all others
    phases = split_into_phases(module)
    bound_temporaries(module, 1)
    write_out_places(module)
    run_pipeline(module, TO_AFFINE)
    return phases


def to_vectors(
    module: ir.Module, strategy: StrategyName, factors: Factors, *, fuses: bool
) -> None:
    """Every nest of affine loops in a module, as a strategy makes it.

    fuses: whether the target has multiply-adds: they are functions to others.
    """
    if fuses:
        (put_together if strategy in FUSED_BEFORE else take_apart)(module)
    for nest in nests(module):
        lower(nest, WAYS[strategy], factors)
    if fuses:
        put_together(module)


def keep_rolled(module: ir.Module) -> None:
    """Have LLVM leave sums of products as the factors say.

    Where all steps are few it would write them out, and load the rows in front of the
    loop over columns: more vectors than there are registers.
    """
    word = ir.Attribute.parse(ROLLED)
    for loop in named(module, "scf.for"):
        inside = list(loop.operation.regions[0].blocks[0].operations)
        fused = (op for op in inside if op.operation.name == "math.fma")
        if any(isinstance(op.results[0].type, ir.VectorType) for op in fused):
            loop.operation.attributes["loop_annotation"] = word
