"""Upstream MLIR's own way from linalg to scalable vectors, and to assembly.

The Transform dialect tiles and vectorizes, the passes of the distribution lower; what
comes of it goes through nanoloom's bridge to LLVM.  Nothing here is nanoloom's vector
code: it stands beside it.
"""

from __future__ import annotations

from nanoloom.binary.objects import emit_assembly
from nanoloom.errors import Error
from nanoloom.ir.mlir import interpreter, ir, llvm, names, run_pipeline
from nanoloom.schedule.transform_writer import ANY
from nanoloom.target.facts import Target
from nanoloom.vector.transform_ops import entry_of, step_error
from nanoloom.workers.compile_kernel import machine_of

LOOP = '!transform.op<"scf.for">'
TO_BUFFERS = (
    "one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map}",
    "canonicalize",
    "cse",
)
CONTRACTIONS = (  # sums of products first, before what they are made of is lowered
    "vector.reduction_to_contract",
    "vector.transfer_permutation_patterns",
)
# Masks to the operations they stand around, sums and products to what LLVM has.
LOWERED = (
    "vector.lower_masked_transfers",
    "vector.transfer_permutation_patterns",
    "vector.reorder_multi_reduction_dims lowering_strategy = innerreduction",
    "vector.multi_reduction_flattening lowering_strategy = innerreduction",
    "vector.multi_reduction_unrolling lowering_strategy = innerreduction",
    "vector.lower_contraction lowering_strategy = outerproduct",
    "vector.lower_outerproduct",
    "vector.lower_transpose",
    "vector.lower_gather",
    "vector.lower_interleave",
    "vector.lower_masks",
    "vector.materialize_masks",
    "canonicalization",
)
TO_LLVM = (
    "func.func(convert-vector-to-scf{full-unroll=true})",
    "lower-affine",
    "expand-strided-metadata",
    "lower-affine",
    "convert-scf-to-cf",
    "convert-vector-to-llvm{SVE}",
    "convert-to-llvm",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
)
SVE = "enable-arm-sve=1"
CAST = "builtin.unrealized_conversion_cast"
TRANSLATED = ("llvm.", "arm_sve.intr.")


def script(*steps: str) -> str:
    """A Transform script with these steps on %m."""
    body = "\n".join(f"    {step}" for step in steps)
    return (
        "module attributes {transform.with_named_sequence} {\n"
        f"  transform.named_sequence @__transform_main(%m: {ANY} "
        f"{{transform.consumed}}) {{\n{body}\n    transform.yield\n  }}\n}}\n"
    )


def match(name: str, operation: str, kind: str = ANY) -> str:
    """A step that finds operations."""
    return (
        f'%{name} = transform.structured.match ops{{["{operation}"]}} '
        f"in %m : ({ANY}) -> {kind}"
    )


def transformed(module: ir.Module, text: str) -> None:
    """Apply a script; Error with MLIR's first words where it fails."""
    try:
        sequence = ir.Module.parse(text)
        interpreter.apply_named_sequence(module, entry_of(sequence), sequence)
    except (ir.MLIRError, ValueError) as error:
        raise step_error(str(error)) from None


def passed(module: ir.Module, passes: tuple[str, ...]) -> None:
    """Run passes; Error with MLIR's first words where one fails."""
    try:
        run_pipeline(module, passes, verify=False)
        module.operation.verify()
    except (ir.MLIRError, RuntimeError) as error:
        raise Error(first_words(str(error))) from None


def first_words(text: str) -> str:
    """What a diagnostic says first."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if "error:" in line] or lines
    told = found[0].rpartition("error: ")[2] if found else ""
    return told.partition(": ")[2] if told.startswith('"-"') else told


def lower(module: ir.Module) -> None:
    """Masked transfers, sums and products become what LLVM's dialect has."""
    for group in (CONTRACTIONS, LOWERED):
        patterns = "\n".join(f"transform.apply_patterns.{name}" for name in group)
        step = f"transform.apply_patterns to %f {{ {patterns} }} : {ANY}"
        transformed(module, script(match("f", "func.func"), step))


def llvm_text(module: ir.Module, target: Target) -> str:
    """LLVM's IR; with SVE MLIR makes masks by that one's own instruction."""
    words = f"{{{SVE}}}" if target.has("sve") else ""
    passed(module, tuple(each.replace("{SVE}", words) for each in TO_LLVM))
    require_llvm(module)
    return llvm.translate_module_to_llvmir(module.operation)


def require_llvm(module: ir.Module) -> None:
    """Error for what is not LLVM's: the translation would end the process."""
    left = {name for name in names(module) if not name.startswith(TRANSLATED)}
    left.discard("builtin.module")
    if left:
        own = sorted(left - {CAST, "func.func"}) or ["the function's arguments"]
        raise Error(f"nothing lowers {' and '.join(own)}")


def assembly(text: str, target: Target) -> str:
    return emit_assembly(text, **machine_of(target))
