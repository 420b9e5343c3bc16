"""Machine code from LLVM IR text, for every target and from several threads."""

from __future__ import annotations

import struct
import threading
from typing import Any

import pytest

from nanoloom.binary import objects
from nanoloom.binary.elf import Machine
from nanoloom.binary.objects import (
    DEFAULT_OPTIONS,
    CodeOptions,
    emit,
    emit_assembly,
)
from nanoloom.errors import Error
from tests.runtime.native import kernel_ir

# Passes by name instead of the pipeline.
SHORT_OPTIONS = CodeOptions(passes=("sroa", "instruction_combine", "loop_rotate"))
X86 = {"triple": "x86_64-unknown-linux-gnu", "cpu": "x86-64-v3"}
ARM = {
    "triple": "aarch64-unknown-linux-gnu",
    "cpu": "generic",
    "features": "+sve",
}
RISCV = {
    "triple": "riscv64-unknown-linux-gnu",
    "cpu": "generic-rv64",
    "features": "+m,+a,+f,+d,+c,+v",
    "abi": "lp64d",
    "code_model": "medium",
}
VECTORS = """
define void @twice(ptr %p) {
  %x = load <vscale x 4 x float>, ptr %p, align 4
  %y = fmul <vscale x 4 x float> %x, splat (float 0.1)
  store <vscale x 4 x float> %y, ptr %p, align 4
  ret void
}
"""


@pytest.mark.parametrize(("target", "number"), [(X86, 62), (ARM, 183), (RISCV, 243)])
def test_every_target(target: dict[str, str], number: int) -> None:
    code = emit(kernel_ir("add_f32", "fadd"), **target)
    assert Machine.of(code).number == number
    assert b"add_f32" in code
    if target is RISCV:
        double_float_abi = 4
        assert Machine.of(code).flags & 6 == double_float_abi


@pytest.mark.parametrize(("target", "word"), [(ARM, "fmul\tz"), (RISCV, "vfmul")])
def test_scalable_vectors(target: dict[str, str], word: str) -> None:
    assert word in emit_assembly(VECTORS, **target)


def test_features_and_cpu_reach_the_code_generator() -> None:
    text = kernel_ir("add_f32", "fadd")
    assert "vaddss" in emit_assembly(text, **X86)
    plain = emit_assembly(text, triple=X86["triple"], cpu="x86-64")
    assert "\taddss" in plain
    assert "vaddss" in emit_assembly(
        text, triple=X86["triple"], cpu="x86-64", features="+avx"
    )


def test_the_modules_own_triple_does_not_matter() -> None:
    text = 'target triple = "aarch64-unknown-linux-gnu"\n' + kernel_ir("k", "fadd")
    assert Machine.of(emit(text, **X86)) == Machine.of(
        emit(kernel_ir("k", "fadd"), **X86)
    )


def test_vectorizers_are_off_unless_asked_for() -> None:
    text = """
    define void @scale(ptr noalias %p, ptr noalias %q) {
      br label %body
    body:
      %i = phi i64 [ 0, %0 ], [ %n, %body ]
      %a = getelementptr float, ptr %p, i64 %i
      %b = getelementptr float, ptr %q, i64 %i
      %x = load float, ptr %a, align 4
      %y = fmul float %x, 0.1
      store float %y, ptr %b, align 4
      %n = add i64 %i, 1
      %more = icmp ult i64 %n, 4096
      br i1 %more, label %body, label %done
    done:
      ret void
    }"""
    wide = CodeOptions(vectorize_loops=True)
    assert "vmulps" not in emit_assembly(text, **X86)
    assert "vmulps" in emit_assembly(text, **X86, options=wide)
    short = emit_assembly(text, **X86, options=SHORT_OPTIONS)
    assert "vmulss" in short
    assert "vmulps" not in short


@pytest.mark.parametrize("options", [DEFAULT_OPTIONS, SHORT_OPTIONS])
def test_the_same_text_makes_the_same_object(options: CodeOptions) -> None:
    text = kernel_ir("add_f32", "fadd")
    assert emit(text, **X86, options=options) == emit(text, **X86, options=options)


@pytest.mark.parametrize(
    "text",
    [
        "define",
        "define void @f() { ret i32 0 }",
        "define void @f() { %x = add i32 %y, 1 ret void }",
        "define void @f() { br label %a\na:\n %x = add i32 %x, 1\n ret void }",
        "define float @f() { ret float 0x1 }",
        "declare void @f()\ndeclare i32 @f()",
        "\0",
        "ß",
    ],
)
def test_bad_text_raises(text: str) -> None:
    if text == "\0":  # ends the text for LLVM: an empty module, which is a valid one
        assert emit(text, **X86)[:4] == b"\x7fELF"
        return
    with pytest.raises(RuntimeError):
        emit(text, **X86)


def test_unknown_target() -> None:
    with pytest.raises(Error, match="no target 'abacus-unknown-linux-gnu'"):
        emit("", triple="abacus-unknown-linux-gnu", cpu="")


def test_threads_make_what_one_makes() -> None:
    texts = [kernel_ir(f"kernel_{index}", "fadd") for index in range(12)]
    want = [emit(text, **X86) for text in texts]
    got: list[list[bytes]] = [[], [], []]

    def work(results: list[bytes]) -> None:
        results.extend(emit(text, **X86) for text in texts)

    threads = [threading.Thread(target=work, args=(results,)) for results in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [want] * 3


def test_threads_generate_code_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both calls that take long begin only when another thread is in the same call.

    Under one lock for all of LLVM the barriers would break instead.
    """
    calls = objects._Unlocked()
    barrier = threading.Barrier(2, timeout=30)

    def together(call: Any) -> Any:
        def meeting(*arguments: object) -> object:
            barrier.wait()
            return call(*arguments)

        return meeting

    monkeypatch.setattr(calls, "run", together(calls.run))
    monkeypatch.setattr(calls, "generate", together(calls.generate))
    monkeypatch.setattr(objects, "_unlocked", lambda: calls)
    made: list[bytes] = []

    def work() -> None:
        made.append(emit(kernel_ir("add_f32", "fadd"), **X86))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 2
    assert made[0] == made[1]


def test_objects_are_elf_with_position_independent_code() -> None:
    code = emit(kernel_ir("add_f32", "fadd"), **X86)
    relocatable = 1
    assert struct.unpack_from("<H", code, 16) == (relocatable,)
