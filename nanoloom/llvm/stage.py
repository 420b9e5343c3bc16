"""The llvm stage: a kernel on vectors and buffers becomes LLVM IR text.

Every phase NAME of a kernel is exported as

    void NAME(void *const *buffers, int64_t begin, int64_t end, void *scratch)
    int64_t NAME_tasks(const int64_t *sizes)
    int64_t NAME_scratch(const int64_t *sizes)

which loads the buffer pointers and runs the tasks begin..end-1.  `scratch` is the
calling thread's memory for temporaries, where the phase has any
(vector/scratch_memory.py).  The others are there where sizes decide how many tasks it
has, and how many bytes its temporaries take.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from nanoloom.dynamic.dynamic_kernel import ARGUMENT
from nanoloom.errors import Error
from nanoloom.ir.mlir import function_named, ir, llvm, names, run_pipeline, sign
from nanoloom.llvm import masked_bf16
from nanoloom.llvm.intrinsic_names import as_llvm22
from nanoloom.llvm.masked_bf16 import mask_integers
from nanoloom.llvm.pipeline import TO_ADDRESSES, TO_LLVM
from nanoloom.llvm.scalable_half_moves import has_small_floats, move_halves_as_integers
from nanoloom.llvm.shared_addresses import share_addresses
from nanoloom.llvm.unroll_limits import PRODUCTS, bound_loops, keep_rolled
from nanoloom.llvm.vector_length import MASK, use_vector_lengths
from nanoloom.vector.dynamic_scratch import Room, rooms_of
from nanoloom.vector.math import expand_math
from nanoloom.vector.scratch_memory import SCRATCH, lines_of, scratch_arguments
from nanoloom.vector.tasks import COUNTED, TASKS
from nanoloom.vector.temporaries import LINE

Phase = tuple[str, int]
# What is rewritten within LLVM's dialect, in order, and where there is any: a look for
# each through all operations would take longer than the work.
MENDED = (
    (mask_integers, {masked_bf16.LOAD, masked_bf16.STORE}),
    (use_vector_lengths, {MASK}),
    (keep_rolled, {PRODUCTS}),
)


def to_llvm(module: ir.Module, phases: Sequence[Phase], name: str) -> str:
    """LLVM IR text of a kernel's phases, exported as NAME_0, NAME_1, ..."""
    signatures = [signature_of(function_named(module, phase)) for phase, _ in phases]
    flatten_empty(module, phases)
    expand_math(module)
    bound_loops(module)
    run_pipeline(module, TO_ADDRESSES, verify=False)
    share_addresses(module)
    run_pipeline(module, TO_LLVM, verify=False)
    made = names(module)
    for mend, mended in MENDED:
        if not made.isdisjoint(mended):
            mend(module)
    require_llvm(made)
    module.operation.verify()
    counting = counts_tasks(module, phases, name)
    text = translated(module)
    if has_small_floats(text):
        move_halves_as_integers(module)
        text = translated(module)
    text = inlined(text)
    entries: list[str] = []
    for i, ((phase, _), signature) in enumerate(zip(phases, signatures, strict=True)):
        entries.append(entry(f"{name}_{i}", phase, signature))
        if signature.grown:
            entries.append(asks_scratch(f"{name}_{i}", signature))
    return as_llvm22(without_calls(text + "\n".join([*entries, *counting])))


def translated(module: ir.Module) -> str:
    return llvm.translate_module_to_llvmir(module.operation)


def counts_tasks(module: ir.Module, phases: Sequence[Phase], name: str) -> list[str]:
    """Functions NAME_0_tasks(sizes) of the phases whose sizes decide about tasks."""
    made: list[str] = []
    for i, (phase, tasks) in enumerate(phases):
        if tasks == COUNTED:
            function = function_named(module, phase + TASKS).operation
            count = len(function.regions[0].blocks[0].arguments)
            place = function.attributes[ARGUMENT].value  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
            given = ", ".join(
                "ptr %sizes" if n == place else "ptr null" for n in range(count)
            )
            made += [
                f"define i64 @{name}_{i}{TASKS}(ptr %sizes) {{",
                f"  %n = call i64 @{phase}{TASKS}({given})",
                "  ret i64 %n",
                "}",
            ]
    return made


def inlined(text: str) -> str:
    """Phases become parts of their entries before LLVM optimizes either.

    It would decide so by itself, after it has optimized the phase, and do it again.
    """
    return re.sub(
        r"^define ((?:void|i64) @kernel_.*) \{$",
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


def require_llvm(made: Set[str]) -> None:
    """Error if an operation has no lowering: the translation would end the process."""
    left = {name for name in made if not name.startswith("llvm.")}
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
        sign(function, [])


@dataclass(frozen=True)
class Signature:
    """How many buffers a phase takes, and what its temporaries take.

    grown: of those that grow with sizes, which stand first.  rooms: bytes of the
    others.  sizes: which buffer the kernel's sizes are, None without any.
    """

    buffers: int
    grown: tuple[Room, ...]
    rooms: tuple[int, ...]
    sizes: int | None


def signature_of(function: ir.OpView) -> Signature:
    """Temporaries overlap nothing: their arguments are marked so."""
    arguments = list(function.operation.regions[0].blocks[0].arguments)
    grown, kinds = rooms_of(function), scratch_arguments(function)
    rooms = [lines_of(kind) for kind in kinds[len(grown) :]]
    buffers = len(arguments) - len(kinds) - len(("begin", "end"))
    if kinds:
        alone = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
        others = [ir.DictAttr.get({})] * (len(arguments) - len(kinds))
        words = ir.ArrayAttr.get([*others, *[alone] * len(kinds)])
        function.operation.attributes["arg_attrs"] = words
    words = function.operation.attributes
    sizes = words[ARGUMENT].value if ARGUMENT in words else None  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    return Signature(buffers, tuple(grown), tuple(rooms), sizes)


def entry(symbol: str, phase: str, of: Signature) -> str:
    """The exported function around one phase.

    Temporaries lie one behind the other in scratch memory.
    """
    head = "ptr %buffers, i64 %begin, i64 %end, ptr %scratch"
    lines = [f"define void @{symbol}({head}) {{"]
    for i in range(of.buffers):
        lines.append(f"  %a{i} = getelementptr ptr, ptr %buffers, i64 {i}")
        lines.append(f"  %p{i} = load ptr, ptr %a{i}")
    for i in range(len(of.rooms)):
        lines += temporary(f"t{i}", str(sum(of.rooms[:i])))
    lines += room_sizes(of, f"%p{of.sizes}")
    for i in range(len(of.grown)):
        lines += temporary(f"g{i}", f"%end{i}")
    given = "".join(f"ptr %p{i}, " for i in range(of.buffers))
    made = "".join(f", ptr %g{i}" for i in range(len(of.grown)))
    made += "".join(f", ptr %t{i}" for i in range(len(of.rooms)))
    lines.append(f"  call void @{phase}({given}i64 %begin, i64 %end{made})")
    return "\n".join([*lines, "  ret void", "}", ""])


def room_sizes(of: Signature, sizes: str) -> list[str]:
    """%end0, %end1, ...: where each temporary that grows begins, and where all end."""
    lines = [f"  %end0 = add i64 0, {sum(of.rooms)}"] if of.grown else []
    for i, room in enumerate(of.grown):
        now = str(room.bytes)
        for k, number in enumerate(room.sizes):
            name = f"{i}.{k}"
            lines += [
                f"  %where{name} = getelementptr i64, ptr {sizes}, i64 {number}",
                f"  %size{name} = load i64, ptr %where{name}",
                # Bytes of 2 n + 1 rows are those of 3 n, which is no bound of none.
                f"  %none{name} = icmp eq i64 %size{name}, 0",
                f"  %some{name} = select i1 %none{name}, i64 1, i64 %size{name}",
                f"  %bytes{name} = mul i64 {now}, %some{name}",
            ]
            now = f"%bytes{name}"
        lines += [
            f"  %up{i} = add i64 {now}, {LINE - 1}",
            f"  %lines{i} = and i64 %up{i}, {-LINE}",
            f"  %end{i + 1} = add i64 %end{i}, %lines{i}",
        ]
    return lines


def asks_scratch(symbol: str, of: Signature) -> str:
    """A function SYMBOL_scratch(sizes): bytes that temporaries take in each thread."""
    lines = [f"define i64 @{symbol}{SCRATCH}(ptr %sizes) {{"]
    lines += room_sizes(of, "%sizes")
    return "\n".join([*lines, f"  ret i64 %end{len(of.grown)}", "}", ""])


def temporary(name: str, offset: str) -> list[str]:
    """The address of a temporary, %NAME, as of one that lies anywhere.

    LLVM would move loads from one over stores to another at a known distance, and keep
    more numbers than there are registers: assembly without a word says nothing of it.
    """
    return [
        f"  %s.{name} = getelementptr i8, ptr %scratch, i64 {offset}",
        f'  %{name} = call ptr asm "", "=r,0"(ptr %s.{name})',
        f'  call void @llvm.assume(i1 true) ["align"(ptr %{name}, i64 {LINE})]',
    ]
