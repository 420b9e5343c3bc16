"""The llvm stage: a kernel on vectors and buffers becomes LLVM IR text.

Every phase NAME of a kernel is exported as

    void NAME(void *const *buffers, int64_t begin, int64_t end)

which loads the buffer pointers and runs the tasks begin..end-1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nanoloom.errors import Error
from nanoloom.llvm.masked import mask_integers
from nanoloom.llvm.pipeline import TO_LLVM
from nanoloom.llvm.rolled import keep_rolled
from nanoloom.mlir import ir, llvm, operations, run_pipeline
from nanoloom.vector.math import expand_math

Phase = tuple[str, int]


def to_llvm(module: ir.Module, phases: Sequence[Phase], name: str) -> str:
    """LLVM IR text of a kernel's phases, exported as NAME_0, NAME_1, ..."""
    counts = [arguments_of(module, phase) for phase, _ in phases]
    flatten_empty(module, phases)
    expand_math(module)
    run_pipeline(module, TO_LLVM)
    mask_integers(module)
    keep_rolled(module)
    require_llvm(module)
    text = llvm.translate_module_to_llvmir(module.operation)
    text = text.replace("define void @kernel_", "define internal void @kernel_")
    entries = [
        entry(f"{name}_{i}", phase, count)
        for i, ((phase, _), count) in enumerate(zip(phases, counts, strict=True))
    ]
    return without_calls(text + "\n".join(entries))


def without_calls(text: str) -> str:
    """Functions with tile registers copy by themselves.

    LLVM would call memcpy for a row of a tile, and a call costs all tile registers and
    their configuration.
    """
    if "x86_amx" not in text:
        return text
    words = '"no-builtin-memcpy" "no-builtin-memset"'
    return re.sub(r"^(define .*) \{$", rf"\1 {words} {{", text, flags=re.MULTILINE)


def require_llvm(module: ir.Module) -> None:
    """Error if an operation has no lowering: the translation would end the process."""
    left = operations(module, lambda op: not op.operation.name.startswith("llvm."))
    names = {op.operation.name for op in left} - {"builtin.module"}
    if names:
        raise Error(f"nothing lowers {' and '.join(sorted(names))} to LLVM IR")


def flatten_empty(module: ir.Module, phases: Sequence[Phase]) -> None:
    """Buffers without elements as memref<0x...>: one of [3, 0] has no bare pointer."""
    for phase, _ in phases:
        function = function_named(module, phase)
        arguments = list(function.operation.regions[0].blocks[0].arguments)
        for argument in arguments:
            kind = argument.type
            empty = isinstance(kind, ir.MemRefType) and 0 in kind.shape
            if empty and not list(argument.uses):
                argument.set_type(ir.MemRefType.get([0], kind.element_type))
        signature = ir.FunctionType.get([a.type for a in arguments], [])
        function.operation.attributes["function_type"] = ir.TypeAttr.get(signature)


def arguments_of(module: ir.Module, phase: str) -> int:
    """How many buffers a phase takes; its last two arguments are begin and end."""
    block = function_named(module, phase).operation.regions[0].blocks[0]
    return len(list(block.arguments)) - 2


def function_named(module: ir.Module, name: str) -> ir.OpView:
    for op in module.body.operations:
        if op.operation.attributes["sym_name"].value == name:  # type: ignore[attr-defined]
            return op
    raise AssertionError(f"no function {name}")


def entry(symbol: str, phase: str, buffers: int) -> str:
    """The exported function around one phase.

    Buffers do not overlap except where they are equal inputs, so `noalias` holds for
    what is written.
    """
    lines = [f"define void @{symbol}(ptr %buffers, i64 %begin, i64 %end) {{"]
    for i in range(buffers):
        lines.append(f"  %a{i} = getelementptr ptr, ptr %buffers, i64 {i}")
        lines.append(f"  %p{i} = load ptr, ptr %a{i}")
    given = "".join(f"ptr %p{i}, " for i in range(buffers))
    lines.append(f"  call void @{phase}({given}i64 %begin, i64 %end)")
    return "\n".join([*lines, "  ret void", "}", ""])
