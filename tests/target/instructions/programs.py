"""Programs that execute single instructions, on this machine or under an emulator.

    run(instructions, inputs, machine("aarch64+sve:sve=512"), scratch)

A program has its inputs in it, writes what the instructions give to its standard
output, and needs no C library.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nanoloom.binary.objects import emit, emit_assembly
from nanoloom.binary.toolchain import Run, zig_triple
from nanoloom.llvm.intrinsic_names import as_llvm22
from nanoloom.target.instructions.instruction import Instruction
from tests.vector.nanokernel.instruction_meanings import DTYPES

Array = np.ndarray[Any, np.dtype[Any]]
ROOM = 256  # bytes of an operand: no vector is longer
LLVM = {
    "s8": "i8", "u8": "i8", "s16": "i16", "s32": "i32", "f16": "half", "bf16": "bfloat",
    "f32": "float", "f64": "double", "tile": "x86_amx",
}  # fmt: skip
TRIPLES = {
    "x86": "x86_64-unknown-linux-gnu",
    "aarch64": "aarch64-unknown-linux-gnu",
    "riscv": "riscv64-unknown-linux-gnu",
}
# System calls: write(1, out, size), exit(0).
CALLS = {
    "x86": (
        "mov $1, %%eax; mov $1, %%edi; syscall; mov $60, %%eax; mov $0, %%edi; syscall",
        '"S"(out), "d"(size)',
    ),
    "aarch64": (
        "mov x1, %0; mov x2, %1; mov x8, #64; mov x0, #1; svc #0; mov x8, #93; "
        "mov x0, #0; svc #0",
        '"r"(out), "r"(size) : "x0", "x1", "x2", "x8"',
    ),
}
START = """
extern char out[]; extern long size; void execute(void);
void _start(void) {{
  execute();
  __asm__ volatile("{}" : : {});
  __builtin_unreachable();
}}
"""
FEATURES = {"riscv": "+v,+zvl128b"}
# What immediate operands are, where they say what is done.
IMMEDIATES = {"vpternlogd": 0b11001010, "vrange": 0b0101, "fmla": 2}


def family(instruction: Instruction) -> str:
    name = instruction.intrinsic or instruction.function
    for known in TRIPLES:
        if f"llvm.{known}." in name:
            return known
    return {"a": "x86", "z": "riscv", "v": "riscv"}.get(
        instruction.needs[0][0], "aarch64"
    )


def features(instruction: Instruction) -> str:
    own = FEATURES.get(family(instruction), "")
    return ",".join([*filter(None, [own]), *(f"+{x}" for x in instruction.needs)])


def is_vector(type_: str) -> bool:
    return "*" in type_ and not type_.startswith("i1*")


def llvm_type(type_: str, scalable: bool) -> str:
    kind, _, count = type_.partition("*")
    if count.endswith("&"):
        return "ptr"
    one = LLVM.get(kind, kind)
    size = f"vscale x {count}" if scalable else count
    return f"<{size} x {one}>" if count else one


def function(instruction: Instruction, number: int) -> str:
    """A function (inputs, result): inputs lie ROOM bytes apart."""
    lines, given, place = list[str](), list[str](), 0
    scalable = instruction.scalable
    for n, type_ in enumerate(instruction.operands):
        kind = llvm_type(type_, scalable)
        if kind == "x86_amx":
            zero = "call x86_amx @llvm.x86.tilezero.internal(i16 8, i16 64)"
            lines.append(f"%x{n} = {zero}")
            given.append(f"{kind} %x{n}")
        elif is_vector(type_) or type_ in DTYPES or kind == "ptr":
            lines.append(f"%p{n} = getelementptr i8, ptr %in, i64 {ROOM * place}")
            if kind != "ptr":
                lines.append(f"%x{n} = load {kind}, ptr %p{n}, align 1")
            given.append(f"ptr %p{n}" if kind == "ptr" else f"{kind} %x{n}")
            place += 1
        elif type_.startswith("i1*"):
            given.append(f"{kind} splat (i1 true)")
        else:
            given.append(f"{kind} {immediate(instruction, n)}")
    name = instruction.intrinsic or instruction.function
    result = llvm_type(instruction.result, scalable) if instruction.result else "void"
    left = "" if result == "void" else "%r = "
    lines.append(f"{left}call {result} @{name}({', '.join(given)})")
    if result not in ("void", "x86_amx"):
        lines.append(f"store {result} %r, ptr %out, align 1")
    if result == "x86_amx":
        store = "call void @llvm.x86.tilestored64.internal"
        lines.append(f"{store}(i16 8, i16 64, ptr %out, i64 64, x86_amx %r)")
    body = "\n  ".join(lines)
    mode = '"aarch64_pstate_sm_enabled"' if "sme" in instruction.needs else ""
    text = f"define void @f{number}(ptr %in, ptr %out) noinline {mode} {{\n  {body}\n"
    return as_llvm22(f"{text}  ret void\n}}")


def immediate(instruction: Instruction, n: int) -> int:
    """The first one says what is done; others are roundings, masks and sizes."""
    plain = [x for x in instruction.operands if x not in DTYPES and "*" not in x]
    first = instruction.operands.index(plain[0])
    name, type_ = instruction.name, instruction.operands[n]
    if instruction.words:
        return instruction.words[n - len(instruction.operands)]
    if name.startswith(("vrange", "max", "min")) and (n > first or len(plain) == 1):
        return -1 if n == 4 else 4
    known = [v for k, v in IMMEDIATES.items() if name.startswith(k)]
    if known and n == first:
        return known[0]
    return {"i16": 8 if n == 0 else 64}.get(type_, 0)


def assembly(instruction: Instruction) -> str:
    """What LLVM makes of it."""
    text, triple = function(instruction, 0), TRIPLES[family(instruction)]
    return emit_assembly(text, triple=triple, cpu="", features=features(instruction))


def executable(
    instructions: Sequence[Instruction], inputs: Sequence[Sequence[Array]], to: Path
) -> None:
    """A program that runs each on its inputs."""
    (arch,) = {family(x) for x in instructions}
    parts, calls = list[str](), list[str]()
    for number, (x, arrays) in enumerate(zip(instructions, inputs, strict=True)):
        data = b"".join(a.tobytes().ljust(ROOM, b"\0") for a in arrays)
        text = "".join(f"\\{byte:02X}" for byte in data)
        parts.append(f'@in{number} = global [{len(data)} x i8] c"{text}", align 64')
        parts.append(function(x, number))
        at = f"getelementptr (i8, ptr @out, i64 {number * ROOM})"
        calls.append(f"call void @f{number}(ptr @in{number}, ptr {at})")
    size, body = ROOM * len(instructions), "\n  ".join(calls)
    parts.append(f"@out = global [{size} x i8] zeroinitializer, align 64")
    parts.append(f"@size = global i64 {size}")
    parts.append(f"define void @execute() {{\n  {body}\n  ret void\n}}")
    every = ",".join(dict.fromkeys(features(x) for x in instructions))
    made = emit("\n".join(parts), triple=TRIPLES[arch], cpu="", features=every)
    (to / "program.o").write_bytes(made)
    (to / "start.c").write_text(START.format(*CALLS[arch]))
    words = ["cc", "-target", zig_triple(TRIPLES[arch]).replace("gnu", "musl")]
    words += ["-nostdlib", "-static", "-O1", "-o", "program", "start.c", "program.o"]
    Run(words, "linking", to).wait()


def run(
    instructions: Sequence[Instruction],
    inputs: Sequence[Sequence[Array]],
    emulator: Sequence[str],
    to: Path,
    vscale: int = 1,
) -> list[Array]:
    """What each gives."""
    executable(instructions, inputs, to)
    call = [*emulator, str(to / "program")]
    done = subprocess.run(call, capture_output=True, check=True)
    made: list[Array] = []
    for number, x in enumerate(instructions):
        kind, _, count = x.result.partition("*")
        lanes = int(count) * (vscale if x.scalable else 1)
        raw = done.stdout[number * ROOM :]
        made.append(np.frombuffer(raw, DTYPES[kind], lanes))
    return made
