"""Temporaries: of constant size, and where their rows begin."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.reductions.softmax import normalized
from nanoloom.target import by_name
from nanoloom.vector.temporaries import bound_temporaries
from tests.filecheck import check_text
from tests.kernels.attention_programs import Attention, attention_program
from tests.linalg.bounds import dtype_of
from tests.vector.kernel_harness import program_of, stage_text

TARGET = by_name("sapphirerapids")


def bounded(kind: str, uses: str, sizes: str = "%n, %k") -> str:
    """A tile of a loop with one temporary."""
    with mlir.context():
        module = ir.Module.parse(f"""
        #id = affine_map<(i, j) -> (i, j)>
        func.func @f(%m: index, %k: index) {{
          %c0 = arith.constant 0 : index
          %c32 = arith.constant 32 : index
          %x = arith.constant 1.0 : f32
          scf.for %i = %c0 to %m step %c32 {{
            %n = affine.min affine_map<(i)[m] -> (m - i, 32)>(%i)[%m]
            %t = memref.alloc({sizes}) {{alignment = 64 : i64}} : {kind}
            {uses}
          }}
          return
        }}""")
        bound_temporaries(module)
        module.operation.verify()
        return str(module)


def generic(name: str, kind: str) -> str:
    return f"""
    linalg.generic {{indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}}
        outs({name} : {kind}) {{
      ^bb0(%o: f32):
        linalg.yield %x : f32
    }}"""


def test_a_tile_of_bounded_rows() -> None:
    check_text(
        bounded("memref<?x20xf32>", generic("%t", "memref<?x20xf32>"), "%n"),
        """
    CHECK: [[N:%.*]] = affine.min
    CHECK: [[ROOM:%.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x20xf32>
    CHECK: [[PART:%.*]] = memref.subview [[ROOM]][0, 0] {{\\[}}[[N]], 20] [1, 1]
    CHECK-SAME: to memref<?x20xf32, strided<[20, 1]>>
    CHECK: outs([[PART]] : memref<?x20xf32, strided<[20, 1]>>)
    """,
    )


def test_rows_begin_with_a_cache_line() -> None:
    """So do those of its parts."""
    old = "strided<[100, 1], offset: ?>"
    part = "%p = memref.subview %t[%i, 16] [8, 4] [1, 1] : memref<?x100xf32>"
    uses = f"{part} to memref<8x4xf32, {old}>" + generic(
        "%p", f"memref<8x4xf32, {old}>"
    )
    check_text(
        bounded("memref<?x100xf32>", uses, "%n"),
        """
    CHECK: memref.alloc() {alignment = 64 : i64} : memref<32x112xf32>
    CHECK: memref.subview {{.*}} to memref<?x100xf32, strided<[112, 1]>>
    CHECK: [[PART:%.*]] = memref.subview {{.*}}[%arg2, 16] [8, 4] [1, 1]
    CHECK-SAME: to memref<8x4xf32, strided<[112, 1], offset: ?>>
    CHECK: outs([[PART]] : memref<8x4xf32, strided<[112, 1], offset: ?>>)
    """,
    )


def test_parts_at_a_constant_place() -> None:
    kind = "memref<8x4xf32, strided<[100, 1], offset: 216>>"
    part = f"%p = memref.subview %t[2, 16] [8, 4] [1, 1] : memref<?x100xf32> to {kind}"
    text = bounded("memref<?x100xf32>", part + generic("%p", kind), "%n")
    assert "memref<8x4xf32, strided<[112, 1], offset: 240>>" in text


@pytest.mark.parametrize(
    ("place", "old", "within", "new"),
    [("2", "216", "317", "353"), ("%i", "?", "?", "?")],
)
def test_parts_of_parts(place: str, old: str, within: str, new: str) -> None:
    """Their places add up; one that is not known stays so."""
    outer = f"memref<8x4xf32, strided<[100, 1], offset: {old}>>"
    inner = f"memref<7x2xf32, strided<[100, 1], offset: {within}>>"
    uses = f"""
    %p = memref.subview %t[{place}, 16] [8, 4] [1, 1] : memref<?x100xf32> to {outer}
    %q = memref.subview %p[1, 1] [7, 2] [1, 1] : {outer} to {inner}
    {generic("%q", inner)}"""
    text = bounded("memref<?x100xf32>", uses, "%n")
    assert f"memref<7x2xf32, strided<[112, 1], offset: {new}>>" in text


def test_rows_that_have_to_follow_each_other() -> None:
    flat = "memref.collapse_shape %t [[0, 1]] : memref<?x100xf32> into memref<?xf32>"
    check_text(
        bounded("memref<?x100xf32>", f"%p = {flat}", "%n"),
        """
    CHECK: [[N:%.*]] = affine.min
    CHECK: [[ROOM:%.*]] = memref.alloc() {alignment = 64 : i64} : memref<12800xi8>
    CHECK: [[PART:%.*]] = memref.view [[ROOM]][{{.*}}]{{\\[}}[[N]]] : {{.*}} to memref<?x100xf32>
    CHECK: memref.collapse_shape [[PART]]
    """,  # noqa: E501
    )


@pytest.mark.parametrize("columns", [16, 33, 128])
def test_known_extents_stay(columns: int) -> None:
    """Short rows, and those that end with a line."""
    kind = f"memref<8x{columns}xf32>"
    text = bounded(kind, generic("%t", kind), "")
    assert f"memref.alloc() {{alignment = 64 : i64}} : {kind}" in text
    assert "memref.subview" not in text


def test_an_unknown_extent_stays() -> None:
    text = bounded("memref<?x?xf32>", generic("%t", "memref<?x?xf32>"))
    assert "memref.alloc(%" in text


@pytest.mark.parametrize(
    ("end", "vscale", "room"), [(517, 16, 64), (40, 16, 40), (517, 1, 4), (517, 0, 0)]
)
def test_vectors_as_wide_as_the_machine_says(end: int, vscale: int, room: int) -> None:
    """The widest, or up to the end of the rows; 3 of them without gaps."""
    with mlir.context():
        module = ir.Module.parse(f"""
        func.func @f(%x: f32) {{
          %c0 = arith.constant 0 : index
          %c4 = arith.constant 4 : index
          %end = arith.constant {end} : index
          %vscale = vector.vscale
          %step = arith.muli %vscale, %c4 : index
          scf.for %i = %c0 to %end step %step {{
            %n = affine.min affine_map<(i)[s] -> ({end} - i, s)>(%i)[%step]
            %t = memref.alloc(%n) {{alignment = 64 : i64}} : memref<3x?xf32>
            memref.store %x, %t[%c0, %c0] : memref<3x?xf32>
          }}
          return
        }}""")
        bound_temporaries(module, vscale)
        module.operation.verify()
        text = str(module)
    if vscale > 1:
        assert (
            f"memref.alloc() {{alignment = 64 : i64}} : memref<{3 * room * 4}xi8>"
            in (text)
        )
        assert "memref.view" in text
    else:
        found = f"memref<3x{room}xf32>" if room else "memref.alloc(%"
        assert found in text


# ---- kernels -------------------------------------------------------------------------


def test_nothing_is_allocated_in_a_tile() -> None:
    """Rows and columns of a product end within tiles, and it has an epilogue."""
    bf16, f32 = dtype_of("bfloat16"), np.dtype(np.float32)
    weight, bias = np.zeros((64, 100), bf16), np.zeros((100,), f32)

    def make(b: Builder, x: Tensor) -> Tensor:
        made = b.einsum("mk,kn->mn", x, b.constant(weight), dtype=f32)
        return b.elementwise(lambda s, t: s + t, made, b.constant(bias))

    program = program_of(make, np.zeros((65, 64), bf16))
    text = stage_text(program, "vector", TARGET)
    assert "tdpbf16ps" in text
    assert "memref.alloc(" not in text


@pytest.mark.parametrize("bf16", [True, False])
def test_attention_has_its_scores_in_scratch_memory(bf16: bool) -> None:
    given = Attention((2,), 197, 197, 64)
    program = attention_program(given.make, *given.inputs(), bf16=bf16)
    number = [k.root for k in program.kernels.values()].index("contractions")
    text = stage_text(program, "vector", TARGET, number)
    assert "memref.alloc(" not in text
    made = re.search(r": index, (%arg\d+: memref<.*>)\) \{", text)
    rooms = re.findall(r"memref<([^>]+)>", made[1] if made else "")
    assert f"1x{128 if bf16 else 56}x208xf32" in rooms
    assert not any("197" in room for room in rooms)


def test_tiles_are_copied_without_calls() -> None:
    """Scores that softmax reads as the product left them: each tile is copied."""
    given = Attention((2,), 197, 197, 64)

    def make(b: Builder, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = b.einsum("amk,ank->amn", q, k)
        return given.weigh(b, normalized(b, scores, [2], scores.dtype), v)

    program = attention_program(make, *given.inputs(), bf16=True)
    number = [k.root for k in program.kernels.values()].index("contractions")
    text = stage_text(program, "asm", TARGET, number)
    assert "tdpbf16ps" in text
    assert "call" not in text
