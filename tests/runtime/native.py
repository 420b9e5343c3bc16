"""Small programs made by hand for the tests: kernels in LLVM IR, tables, C helpers."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nanoloom.binary.link import Source, compile_c, link_shared
from nanoloom.binary.objects import emit
from nanoloom.binary.program_data import PROGRAM_SOURCES
from nanoloom.binary.shared import (
    RUNTIME_SOURCES,
    runtime_objects,
    write_in_process,
)
from nanoloom.binary.table import Buffer, ProgramTable, Step
from nanoloom.cache import Cache
from nanoloom.interface.tensor import Element, Space, Tensor

TRIPLE = f"{platform.machine()}-unknown-linux-gnu"

# Task i adds or multiplies the elements 3 i .. 3 i + 2: out = left op right.
_LOOP = """
define void @{name}(ptr %buffers, i64 %begin, i64 %end, ptr %scratch) {{
  %left = load ptr, ptr %buffers
  %at1 = getelementptr ptr, ptr %buffers, i64 1
  %right = load ptr, ptr %at1
  %at2 = getelementptr ptr, ptr %buffers, i64 2
  %out = load ptr, ptr %at2
  %first = mul i64 %begin, 3
  %last = mul i64 %end, 3
  br label %head
head:
  %i = phi i64 [ %first, %0 ], [ %next, %body ]
  %more = icmp slt i64 %i, %last
  br i1 %more, label %body, label %done
body:
  %p = getelementptr float, ptr %left, i64 %i
  %q = getelementptr float, ptr %right, i64 %i
  %r = getelementptr float, ptr %out, i64 %i
  %x = load float, ptr %p, align 4
  %y = load float, ptr %q, align 4
  %z = {operation} float %x, %y
  store float %z, ptr %r, align 4
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""


def kernel_ir(name: str, operation: str) -> str:
    """LLVM IR of an elementwise f32 kernel of tasks of three elements."""
    return _LOOP.format(name=name, operation=operation)


@dataclass(frozen=True)
class Block:
    """Parameters that are there already."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def append_to(self, file: BinaryIO) -> None:
        file.write(self.data)


def kernels(triple: str = TRIPLE) -> list[bytes]:
    """The objects of the kernels `add_f32` and `mul_f32`."""
    cpu = "generic-rv64" if triple.startswith("riscv") else "generic"
    more = {"features": "+m,+a,+f,+d,+c", "abi": "lp64d", "code_model": "medium"}
    extra = more if triple.startswith("riscv") else {}
    cpu = "x86-64" if triple.startswith("x86") else cpu
    return [
        emit(kernel_ir(f"{word}_f32", f"f{word}"), triple=triple, cpu=cpu, **extra)
        for word in ("add", "mul")
    ]


def table(tasks: int, parameter_bytes: int = -1) -> ProgramTable:
    """out = (a + b) * parameters, total = out + a; the sum lies in the arena."""
    count = 3 * tasks
    size = 4 * count
    a, b = Buffer(Space.INPUT), Buffer(Space.INPUT, index=1)
    middle, weights = Buffer(Space.ARENA, offset=64), Buffer(Space.PARAMETERS)
    out, total = Buffer(Space.OUTPUT), Buffer(Space.OUTPUT, index=1)
    return ProgramTable(
        steps=(
            Step("add_f32", tasks, (a, b, middle), "layer/add"),
            Step("mul_f32", tasks, (middle, weights, out), "layer/mul"),
            Step("add_f32", tasks, (out, a, total), "layer/total"),
        ),
        arena_bytes=size + 64,
        parameter_bytes=size if parameter_bytes < 0 else parameter_bytes,
        inputs=(_f32("a", count), _f32("b", count)),
        outputs=(_f32("out", count), _f32("total", count)),
    )


def _f32(name: str, count: int) -> Tensor:
    return Tensor(name, Element.F32, (count,))


def expected(
    a: np.ndarray, b: np.ndarray, parameters: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What `table` computes; f32 arithmetic of one operation has one right answer."""
    out = (a + b) * parameters
    return out, out + a


def aligned(values: np.ndarray) -> np.ndarray:
    """A copy that begins on 64 bytes, as a block of parameters must."""
    room = np.zeros(values.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + values.nbytes].view(values.dtype)
    copy[:] = values
    return copy


def in_process(folder: Path, cache: Cache, tasks: int) -> Path:
    """The program of `table` as a library whose parameters lie outside."""
    path = folder / f"program{tasks}.so"
    write_in_process(kernels(), table(tasks), path, triple=TRIPLE, cache=cache)
    return path


def c_library(
    file: Path, folder: Path, cache: Cache, exports: Sequence[str]
) -> ctypes.CDLL:
    """A C file of the tests, linked with the runtime's pool and loaded."""
    source = Source(file.stem, file.read_text("utf-8"))
    made = compile_c([source], triple=TRIPLE, cache=cache)
    objects = zip(RUNTIME_SOURCES, runtime_objects(TRIPLE, cache), strict=True)
    wanted = (*PROGRAM_SOURCES, "threads", "pool", "arena", "cpus")
    runtime = [code for name, code in objects if name in wanted]
    output = folder / f"{file.stem}.so"
    link_shared([*made, *runtime], output, exports=exports, cache=cache)
    return ctypes.CDLL(str(output))
