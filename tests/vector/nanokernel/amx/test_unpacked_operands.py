"""Flat operands for AMX: where their rows are woven, and what comes of it."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import cycle

import numpy as np
import onnx_ir
import pytest

from nanoloom.errors import Error
from nanoloom.graph.stage import optimize
from nanoloom.ir import mlir
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import lower
from nanoloom.target.facts import Cache
from nanoloom.vector import passes
from nanoloom.vector.nanokernel.amx import unpacked_operands
from tests.filecheck import check_text
from tests.kernels.attention_programs import Attention, attention_program, exact
from tests.linalg.single import model_of
from tests.vector.assembly import count, inner_loops, touches_stack
from tests.vector.kernel_harness import (
    backwards,
    cut,
    executable,
    program_of,
    stage_text,
)
from tests.vector.nanokernel.tile_products import (
    EACH,
    SIGNS,
    TARGET,
    compare,
    machine,
    numbers,
    product,
    script_of,
    zeros,
)

BF16_SIZES = [  # rows, depth, columns
    (33, 130, 17), (65, 34, 100), (197, 64, 32), (33, 3, 31), (17, 17, 100),
    (128, 31, 5), (128, 197, 64),
    (20, 801, 33), (65, 300, 40), (130, 545, 64),  # rings and chunks
]  # fmt: skip
BYTES = [  # each pair of signs, then other sizes with pairs in turns
    *(((33, 65, 20), signs) for signs in SIGNS),
    *zip(
        [(33, 132, 17), (65, 128, 100), (33, 3, 100), (17, 4, 31), (70, 835, 33)],
        cycle(SIGNS),
    ),
]
SHUFFLES = ("vperm", "vpunpck")


def text_of(stage: str, m: int, k: int, n: int, name: str = "bf16") -> str:
    right = zeros(name, k, n)
    make = product("mk,kn->mn", right, packed=False)
    return stage_text(program_of(make, zeros(name, m, k), right), stage, TARGET)


def shuffles(lines: list[str]) -> int:
    return sum(count(lines, word) for word in SHUFFLES)


# ---- text ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [64, 96, 100])
def test_the_operand_is_read_as_it_lies(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two numbers tell whether it is woven: the loop over rows comes back to it."""
    seen: list[str] = []
    monkeypatch.setattr(passes, "lower_matrix_tiles", lambda m, _: seen.append(str(m)))
    text_of("vector", 65, 64, n)
    check_text(
        seen[0],
        """
    CHECK: #[[RIGHT:map[0-9]*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
    CHECK: scf.for {{.*}} = %arg3 to %arg4
    CHECK: scf.for [[ROWS:%[a-z0-9]+]] = %c0 to %c65 step %c32
    CHECK: linalg.generic {indexing_maps = [{{[^,]*}}, #[[RIGHT]],
    CHECK-SAME: ins({{[^,]*}}, {{[^,]*}}, [[ROWS]], %c0 :
    CHECK-SAME: nanoloom.amx = 0 : i64, nanoloom.amx_depth = 0 : i64
    CHECK-SAME: nanoloom.amx_fresh, {{.*}}nanoloom.amx_places = 1
    """,
    )


def test_a_step_is_woven_while_the_one_before_it_is_multiplied() -> None:
    """By the first tile of rows: the others find the block as it leaves it."""
    check_text(
        text_of("vector", 128, 128, 64),
        """
    CHECK: [[BLOCK:%.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x64xbf16>
    CHECK: scf.for {{.*}} = %arg3 to %arg4
    CHECK: scf.for [[ROWS:%[a-z0-9]+]] = %c0 to %c128 step %c32
    CHECK: [[FIRST:%.*]] = arith.cmpi eq, [[ROWS]], %c0
    CHECK: scf.if [[FIRST]] {
    CHECK: scf.for {{.*}} = %c0 to %c16 step %c1 {
    CHECK: vector.store {{.*}}, [[BLOCK]]
    CHECK: scf.for {{.*}} = %c0 to %c96 step %c32
    CHECK-COUNT-3: llvm.x86.tileloadd64
    CHECK: llvm.x86.tdpbf16ps
    CHECK-COUNT-4: vector.store {{.*}}, [[BLOCK]]
    CHECK: llvm.x86.tdpbf16ps
    CHECK-COUNT-4: vector.store {{.*}}, [[BLOCK]]
    CHECK: llvm.x86.tileloadd64
    CHECK: llvm.x86.tdpbf16ps
    CHECK-COUNT-4: vector.store {{.*}}, [[BLOCK]]
    CHECK: llvm.x86.tdpbf16ps
    CHECK-COUNT-4: vector.store {{.*}}, [[BLOCK]]
    CHECK: scf.yield
    CHECK-NOT: vector.store
    CHECK-COUNT-4: llvm.x86.tdpbf16ps
    CHECK: } else {
    CHECK-NOT: vector.store
    CHECK: scf.for {{.*}} = %c0 to %c128 step %c32
    CHECK-COUNT-4: llvm.x86.tdpbf16ps
    """,
    )


def test_each_chunk_is_woven_by_its_first_tile() -> None:
    """Into the same block, which holds a chunk of 256 numbers."""
    text = text_of("vector", 128, 768, 64)
    assert "memref<128x64xbf16>" in text
    assert "scf.if" not in text
    check_text(
        text,
        """
    CHECK: scf.for {{.*}} = %c0 to %c224 step %c32
    CHECK: scf.for [[ROW:%.*]] = %c1 to %c4 step %c1
    CHECK: scf.for {{.*}} = %c0 to %c256 step %c32
    CHECK: scf.for {{.*}} = %c0 to %c224 step %c32
    CHECK: scf.for [[ROW:%.*]] = %c1 to %c4 step %c1
    CHECK: scf.for {{.*}} = %c0 to %c256 step %c32
    CHECK: scf.for {{.*}} = %c0 to %c224 step %c32
    CHECK: scf.for [[ROW:%.*]] = %c1 to %c4 step %c1
    CHECK: scf.for {{.*}} = %c0 to %c256 step %c32
    """,
    )


@pytest.mark.parametrize(("m", "most"), [(32, 1 << 18), (128, 1 << 13)])
def test_a_block_of_two_steps(
    m: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no other tile reads what is woven, or there is too much of it."""
    monkeypatch.setattr(Cache, "reach", property(lambda _: most))
    text = text_of("vector", m, 256, 64)
    assert re.findall(r"alloca\(\) \{.*: memref<(\d+x\d+)xbf16>", text) == ["32x64"]
    assert "arith.remui" in text
    assert "scf.if" not in text


def test_who_weaves_is_said_by_the_script() -> None:
    """Without a word each tile weaves its own; in front of a product none can."""
    make = product("mk,kn->mn", zeros("bf16", 256, 64), packed=False)
    given = zeros("bf16", 128, 256), zeros("bf16", 256, 64)
    program, script = program_of(make, *given), script_of(make, TARGET, *given)
    assert script.count('copy_rhs = "between"') == 1
    plain = script.replace('copy_rhs = "between"', 'copy_rhs = ""')
    text = stage_text(program, "vector", TARGET, script=plain)
    assert re.findall(r"alloca\(\) \{.*: memref<(\d+x\d+)xbf16>", text) == ["32x64"]
    assert "scf.if" not in text
    other = script.replace('copy_rhs = "between"', 'copy_rhs = "front"')
    with pytest.raises(Error, match="family amx-bf16 does it the other way"):
        stage_text(program, "vector", TARGET, script=other)


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("name", "word", "depth"), [("bf16", "tdpbf16ps", 32), ("u8", "tdpbuud", 64)]
)
@pytest.mark.parametrize("m, n", [(96, 64), (65, 100)])
def test_the_loop(m: int, n: int, name: str, word: str, depth: int) -> None:
    """Shuffles stand between all products of one loop, and in no loop of their own."""
    loops = inner_loops(text_of("asm", m, 4 * depth, n, name))
    weaving, *others = sorted(loops, key=shuffles, reverse=True)
    assert count(weaving, word) == count(weaving, "tileloadd") == 4
    assert count(weaving, "tilestored") == 0
    products = [place for place, line in enumerate(weaving) if line.startswith(word)]
    for begin, end in zip(products, [*products[1:], len(weaving)], strict=True):
        assert shuffles(weaving[begin:end]) >= 8
    assert shuffles(weaving) <= 16 * 4  # of 16 groups
    assert [x for x in touches_stack(weaving) if x.endswith("mm") and "vmov" in x] == []
    assert sum(map(shuffles, others)) == 0
    assert any(count(loop, word) for loop in others)


# ---- numbers -------------------------------------------------------------------------


@pytest.mark.drawn(one_in=3)
@EACH
@pytest.mark.parametrize("m, k, n", BF16_SIZES)
def test_bf16(
    variant: str, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = numbers(m, "bf16", m, k), numbers(n, "bf16", k, n)
    compare("mk,kn->mn", left, right, machine(variant, monkeypatch), packed=False)


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize(("size", "signs"), BYTES)
def test_bytes(
    variant: str,
    size: tuple[int, int, int],
    signs: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m, k, n = size
    left, right = numbers(m, signs[0], m, k), numbers(n, signs[1], k, n)
    compare("mk,kn->mn", left, right, machine(variant, monkeypatch), packed=False)


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("name", ["bf16", "s8"])
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("bhmk,bhkn->bhmn", (2, 3, 19, 12), (2, 3, 12, 33)),
        ("bmk,bkn->bmn", (2, 40, 197), (2, 197, 33)),
        ("bmk,bkn->bmn", (3, 70, 67), (3, 67, 65)),
    ],
)
def test_batches(
    variant: str,
    name: str,
    equation: str,
    left: tuple[int, ...],
    right: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = numbers(1, name, *left), numbers(2, name, *right)
    compare(equation, one, other, machine(variant, monkeypatch), packed=False)


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("left, right", SIGNS)
def test_zero_points(
    variant: str, left: str, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MatMulInteger of two activations, exact."""
    x, w = numbers(1, left, 70, 131), numbers(2, right, 131, 50)
    a, c = numbers(3, left, 70), numbers(4, right, 50)
    model, feeds = model_of("MatMulInteger", [x, w, a, c], {}, version=10)
    graph = onnx_ir.from_proto(model)
    optimize(graph, OPERATORS.keys())
    with mlir.context():
        program = cut(lower(graph))
    target = machine(variant, monkeypatch)
    scripts = [
        stage_text(program, "schedule", target, number)
        for number in range(len(program.kernels))
    ]
    assert 'packed = 0 : i64, family = "amx-int8"' in "".join(scripts)
    (got,) = executable(program, target)(*feeds.values(), order=backwards)
    wide = x.astype(np.int64) - a[:, None], w.astype(np.int64) - c
    assert (got == wide[0] @ wide[1]).all()


@pytest.mark.drawn(one_in=3)
@EACH
@pytest.mark.parametrize(
    ("rows", "keys", "size"),
    [
        (128, 100, 64),
        (70, 33, 9),
        (64, 1100, 70),
        (70, 130, 300),
        (70, 21, 40),  # keys narrower than a tile
    ],
)
def test_attention(
    variant: str, rows: int, keys: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several tiles of columns share a block with its rows; or it has no room."""
    given = Attention((2,), rows, keys, size, masked=True)
    inputs = given.inputs()
    program = attention_program(given.make, *inputs, bf16=True)
    made = executable(program, machine(variant, monkeypatch))
    (got,) = made(*inputs, order=backwards)
    wanted, bound = exact(given, *inputs, bf16=True)
    assert (abs(got - wanted) <= bound).all()
    assert not (abs(np.roll(got, 1, -1) - wanted) <= bound).all()


@EACH
@pytest.mark.parametrize("m", [20, 65])
def test_a_small_block(variant: str, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tile of rows weaves anew where a block has no room for all."""
    monkeypatch.setattr(Cache, "reach", property(lambda _: 1 << 12))
    target = replace(machine(variant, monkeypatch), name="little-room")
    left, right = numbers(1, "bf16", m, 197), numbers(2, "bf16", 197, 33)
    compare("mk,kn->mn", left, right, target, packed=False)


@EACH
@pytest.mark.parametrize("name", ["bf16", "s8"])
def test_rows_in_another_order_fail(
    variant: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = replace(machine(variant, monkeypatch), name=f"woven-wrong-{name}")
    woven = unpacked_operands.interleaved_panel
    monkeypatch.setattr(
        unpacked_operands, "interleaved_panel", lambda rows: woven(rows[::-1])
    )
    left, right = numbers(1, name, 33, 64), numbers(2, name, 64, 17)
    with pytest.raises(AssertionError):
        compare("mk,kn->mn", left, right, target, packed=False)
