"""Many modules become objects by one process: the bytes that llvmlite makes of each."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from nanoloom.binary import clang
from nanoloom.binary.objects import Machine, emit
from nanoloom.errors import Error
from tests.binary.test_objects import ARM, RISCV, VECTORS, X86
from tests.runtime.native import kernel_ir

AVX512 = {"triple": "x86_64-unknown-linux-gnu", "cpu": "znver4"}
POWER = {"triple": "powerpc64le-unknown-linux-gnu", "cpu": "pwr9"}
# Rows of numbers in vectors, the last one masked.
ROWS = """
define internal void @kernel_{name}(ptr %p, ptr %q) alwaysinline {{
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %n, %body ]
  %more = icmp slt i64 %i, {steps}
  br i1 %more, label %body, label %rest
body:
  %at = getelementptr float, ptr %p, i64 %i
  %x = load <16 x float>, ptr %at, align 4
  %y = call <16 x float> @llvm.{function}.v16f32(<16 x float> %x)
  %to = getelementptr float, ptr %q, i64 %i
  store <16 x float> %y, ptr %to, align 4
  %n = add i64 %i, 16
  br label %head
rest:
  %last = getelementptr float, ptr %q, i64 %i
  %c = insertelement <16 x i64> poison, i64 {count}, i32 0
  %s = shufflevector <16 x i64> %c, <16 x i64> poison, <16 x i32> zeroinitializer
  %m = icmp ult <16 x i64> <{lanes}>, %s
  call void @llvm.masked.store.v16f32.p0(
    <16 x float> splat (float 0.1), ptr align 4 %last, <16 x i1> %m)
  ret void
}}
declare <16 x float> @llvm.{function}.v16f32(<16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, <16 x i1>)
define void @{name}_0(ptr %b, i64 %begin, i64 %end, ptr %scratch) {{
  %a = load ptr, ptr %b
  %c = getelementptr ptr, ptr %b, i64 1
  %d = load ptr, ptr %c
  call void @kernel_{name}(ptr %a, ptr %d)
  ret void
}}
"""


def rows(name: str, steps: int, count: int, function: str) -> str:
    lanes = ", ".join(f"i64 {n}" for n in range(16))
    text = ROWS.format(
        name=name, steps=steps, count=count, lanes=lanes, function=function
    )
    return text.replace("(\n    <", "(<")


def drawn(seed: int) -> list[str]:
    """Modules with and without masks, of more than a lane."""
    draw = np.random.default_rng(seed)
    made = [kernel_ir(f"plain_{n}", w) for n, w in enumerate(("fadd", "fmul"))]
    for n in range(3):
        function = ("sqrt", "fabs", "floor")[draw.integers(3)]
        steps, count = int(draw.integers(1, 9)) * 16, int(draw.integers(2, 16))
        made.append(rows(f"rows_{n}", steps, count, function))
    return made


@pytest.mark.parametrize("machine", [X86, AVX512, ARM, RISCV, POWER])
def test_the_same_objects(machine: dict[str, str], tmp_path: Path) -> None:
    texts, given = drawn(len(machine["cpu"])), cast("Machine", machine)
    if machine in (ARM, RISCV):
        texts.append(VECTORS)
    made = clang.objects_of(texts, given, tmp_path)
    assert made == [emit(text, **given) for text in texts]
    assert not any(tmp_path.iterdir())


def test_what_is_mended_is_left(tmp_path: Path) -> None:
    """A store of one lane, behind the optimizer."""
    texts = [kernel_ir("plain", "fadd"), rows("one", 32, 1, "sqrt")]
    given = cast("Machine", AVX512)
    made = clang.objects_of(texts, given, tmp_path)
    assert made == [emit(texts[0], **given), None]


@pytest.mark.parametrize("wrong", ["define", "define void @f() { ret i32 0 }"])
def test_what_does_not_compile_is_left(wrong: str, tmp_path: Path) -> None:
    texts = [kernel_ir("plain", "fadd"), wrong]
    assert clang.objects_of(texts, cast("Machine", X86), tmp_path) == [None, None]


def test_another_release_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clang, "release", lambda: (1, 0))
    texts = [kernel_ir("plain", "fadd")]
    assert clang.objects_of(texts, cast("Machine", X86), tmp_path) == [None]


def test_no_clang_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise Error("there is none")

    monkeypatch.setattr(clang, "zig", none)
    texts = [kernel_ir("plain", "fadd")]
    assert clang.objects_of(texts, cast("Machine", X86), tmp_path) == [None]
    assert clang.objects_of(texts, cast("Machine", X86), tmp_path / "gone") == [None]
