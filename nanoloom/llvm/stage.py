"""The llvm stage: a kernel on vectors and buffers becomes LLVM IR text.

Every phase NAME of a kernel is exported as

    void NAME(void *const *buffers, int64_t begin, int64_t end, void *scratch)

which loads the buffer pointers and runs the tasks begin..end-1.  `scratch` is the
calling thread's memory for temporaries, where the phase has any (vector/scratch.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nanoloom.errors import Error
from nanoloom.llvm.addresses import share_addresses
from nanoloom.llvm.masked import mask_integers
from nanoloom.llvm.pipeline import TO_ADDRESSES, TO_LLVM
from nanoloom.llvm.rolled import bound_copies, keep_rolled
from nanoloom.mlir import function_named, ir, llvm, names, run_pipeline
from nanoloom.vector.math import expand_math
from nanoloom.vector.scratch import lines_of, scratch_arguments
from nanoloom.vector.temporaries import LINE

Phase = tuple[str, int]


def to_llvm(module: ir.Module, phases: Sequence[Phase], name: str) -> str:
    """LLVM IR text of a kernel's phases, exported as NAME_0, NAME_1, ..."""
    signatures = [signature_of(function_named(module, phase)) for phase, _ in phases]
    flatten_empty(module, phases)
    expand_math(module)
    bound_copies(module)
    run_pipeline(module, TO_ADDRESSES, verify=False)
    share_addresses(module)
    run_pipeline(module, TO_LLVM, verify=False)
    mask_integers(module)
    keep_rolled(module)
    require_llvm(module)
    module.operation.verify()
    text = inlined(llvm.translate_module_to_llvmir(module.operation))
    entries = [
        entry(f"{name}_{i}", phase, *signature)
        for i, ((phase, _), signature) in enumerate(
            zip(phases, signatures, strict=True)
        )
    ]
    return without_calls(text + "\n".join(entries))


def inlined(text: str) -> str:
    """Phases become parts of their entries before LLVM optimizes either.

    It would decide so by itself, after it has optimized the phase, and do it again.
    """
    return re.sub(
        r"^define (void @kernel_.*) \{$",
        r"define internal \1 alwaysinline {",
        text,
        flags=re.MULTILINE,
    )


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
    left = {name for name in names(module) if not name.startswith("llvm.")}
    left.discard("builtin.module")
    if left:
        raise Error(f"nothing lowers {' and '.join(sorted(left))} to LLVM IR")


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


def signature_of(function: ir.OpView) -> tuple[int, list[int]]:
    """How many buffers a phase takes, and the bytes of its temporaries.

    Those overlap nothing: their arguments are marked so.
    """
    arguments = list(function.operation.regions[0].blocks[0].arguments)
    rooms = [lines_of(kind) for kind in scratch_arguments(function)]
    buffers = len(arguments) - len(rooms) - len(("begin", "end"))
    if rooms:
        alone = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
        others = [ir.DictAttr.get({})] * (len(arguments) - len(rooms))
        words = ir.ArrayAttr.get([*others, *[alone] * len(rooms)])
        function.operation.attributes["arg_attrs"] = words
    return buffers, rooms


def entry(symbol: str, phase: str, buffers: int, rooms: Sequence[int]) -> str:
    """The exported function around one phase.

    rooms: bytes of the temporaries, one behind the other in scratch memory.
    """
    head = "ptr %buffers, i64 %begin, i64 %end, ptr %scratch"
    lines = [f"define void @{symbol}({head}) {{"]
    for i in range(buffers):
        lines.append(f"  %a{i} = getelementptr ptr, ptr %buffers, i64 {i}")
        lines.append(f"  %p{i} = load ptr, ptr %a{i}")
    for i in range(len(rooms)):
        lines += temporary(i, sum(rooms[:i]))
    given = "".join(f"ptr %p{i}, " for i in range(buffers))
    made = "".join(f", ptr %t{i}" for i in range(len(rooms)))
    lines.append(f"  call void @{phase}({given}i64 %begin, i64 %end{made})")
    return "\n".join([*lines, "  ret void", "}", ""])


def temporary(number: int, offset: int) -> list[str]:
    """The address of a temporary, %tNUMBER, as of one that lies anywhere.

    LLVM would move loads from one over stores to another at a known distance, and keep
    more numbers than there are registers: assembly without a word says nothing of it.
    """
    return [
        f"  %s{number} = getelementptr i8, ptr %scratch, i64 {offset}",
        f'  %t{number} = call ptr asm "", "=r,0"(ptr %s{number})',
        f'  call void @llvm.assume(i1 true) ["align"(ptr %t{number}, i64 {LINE})]',
    ]
