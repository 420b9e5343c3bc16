"""Temporaries: which lie on the stack and which in scratch memory."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nanoloom.ir import mlir
from nanoloom.ir.mlir import function_named, ir
from nanoloom.linalg.reductions.softmax import normalized
from nanoloom.schedule.library.decisions import STACK_BYTES
from nanoloom.target import by_name
from nanoloom.vector.scratch_memory import (
    place_temporaries,
    scratch_arguments,
    scratch_bytes,
)
from tests.filecheck import check_text
from tests.vector.kernel_harness import backwards, executable, program_of, stage_text

TARGET = by_name("sapphirerapids")


def placed(body: str) -> ir.Module:
    """A phase with temporaries, behind place_temporaries; a context is current."""
    module = ir.Module.parse(f"""
        func.func @kernel_0(%a: memref<8xf32>, %begin: index, %end: index) {{
          %c1 = arith.constant 1 : index
          %x = arith.constant 1.0 : f32
          scf.for %i = %begin to %end step %c1 {{
            {body}
          }}
          return
        }}""")
    place_temporaries(module, STACK_BYTES)
    module.operation.verify()
    return module


def use(name: str, kind: str) -> str:
    return f"memref.store %x, {name}[%i] : {kind}"


def temporary(name: str, kind: str) -> str:
    return f"{name} = memref.alloc() : {kind}\n{use(name, kind)}"


def test_the_smallest_lie_on_the_stack() -> None:
    """Outside of all loops; two fit and the third does not."""
    half, more = (
        f"memref<{STACK_BYTES // 8}xf32>",
        f"memref<{STACK_BYTES // 8 + 1}xf32>",
    )
    body = [temporary("%l", more), temporary("%t", half), temporary("%s", half)]
    with mlir.context():
        module = placed("\n".join(body))
        check_text(
            str(module),
            f"""
    CHECK: func.func @kernel_0({{{{.*}}}}, [[LARGE:%arg3]]: {more}) {{
    CHECK-COUNT-2: memref.alloca() {{alignment = 64 : i64}} : {half}
    CHECK: scf.for
    CHECK: memref.store {{{{.*}}}}, [[LARGE]]
    CHECK-NOT: memref.alloc
    """,
        )
        assert scratch_bytes(module, [("kernel_0", 1)]) == (STACK_BYTES // 2 + 64,)


def test_each_begins_with_a_line_of_cache() -> None:
    body = [temporary(f"%t{i}", f"memref<{20000 + i}xi8>") for i in range(3)]
    store = [line.replace("store %x", "store %y") for line in body]
    with mlir.context():
        module = placed("%y = arith.constant 1 : i8\n" + "\n".join(store))
        kinds = scratch_arguments(function_named(module, "kernel_0"))
        assert [kind.shape for kind in kinds] == [[20000], [20001], [20002]]
        assert scratch_bytes(module, [("kernel_0", 1)]) == (3 * 20032,)


def test_what_lives_from_one_turn_to_the_next_is_refused() -> None:
    """Its memory would be that of the next turn's."""
    kind = "memref<8xf32>"
    with mlir.context(), pytest.raises(AssertionError):
        placed(f"""
            %r = scf.for %j = %begin to %end step %c1 iter_args(%t = %a) -> ({kind}) {{
              {temporary("%n", kind)}
              scf.yield %n : {kind}
            }}""")


def test_what_a_branch_gives_is_placed() -> None:
    with mlir.context():
        module = placed(f"""
            %first = arith.cmpi eq, %i, %begin : index
            %r = scf.if %first -> (memref<8xf32>) {{
              {temporary("%n", "memref<8xf32>")}
              scf.yield %n : memref<8xf32>
            }} else {{
              scf.yield %a : memref<8xf32>
            }}
            {use("%r", "memref<8xf32>")}""")
        assert "memref.alloca" in str(module).split("scf.for")[0]


# ---- kernels -------------------------------------------------------------------------


def long_rows(columns: int) -> str:
    program = program_of(
        lambda b, x: normalized(b, x, [1], x.dtype), ((4, columns), "float32")
    )
    return stage_text(program, "vector", TARGET)


def test_a_row_beyond_the_stack() -> None:
    columns = STACK_BYTES // 4 + 16
    on_stack = "memref.alloca() {alignment = 64 : i64} : memref<1x%dxf32>"
    assert on_stack % (columns // 2) in long_rows(columns // 2)
    assert f", %arg4: memref<1x{columns}xf32>)" in long_rows(columns)


def test_temporaries_of_a_thread_may_hold_anything() -> None:
    """Each task writes what it reads; the harness gives memory full of NaN."""
    x = np.linspace(-4, 4, 6 * 9000, dtype=np.float32).reshape(6, 9000)
    program = program_of(lambda b, v: normalized(b, v, [1], v.dtype), x)
    made = executable(program, by_name("x86-64-v3"))
    assert any(step.scratch_bytes for step in made.made.table.steps)
    (got,) = made(x, order=backwards)
    assert np.isfinite(got).all()
    assert re.search("malloc|free", long_rows(9000)) is None
