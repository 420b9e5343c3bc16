"""AMX: what is marked, the instructions that come of it, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.target import by_name
from nanoloom.vector import passes
from tests.filecheck import check_text
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.kernel_harness import Make, program_of, stage_text
from tests.vector.nanokernel.tile_products import TARGET, product, zeros

PRODUCTS = [
    ("bf16", "bf16", "tdpbf16ps"),
    ("s8", "s8", "tdpbssd"),
    ("s8", "u8", "tdpbsud"),
    ("u8", "s8", "tdpbusd"),
    ("u8", "u8", "tdpbuud"),
]
ALL = (  # of the sum at once
    'depth = 0 : i64, copy_rhs = "", hold_lhs = 0 : i64, unroll = 1 : i64, '
    "convert_lhs = 0 : i64, pin_order = 1 : i64, keep_broadcast_live = 0 : i64, "
    "unfused_mul_add = 0 : i64, "
    "unmasked_fast_path = 0 : i64"
)
Kernel = tuple[Make, tuple[np.ndarray, ...]]


def kernel(m: int, k: int, n: int, left: str, right: str) -> Kernel:
    make = product("mk,kn->mn", zeros(right, k, n), packed=True)
    return make, (zeros(left, m, k),)


def script_of(made: Kernel, target: str = "sapphirerapids") -> str:
    """The Transform script, without the kernel behind it."""
    text = stage_text(program_of(made[0], *made[1]), "schedule", by_name(target))
    return text[: text.index("\n}\n") + 3]


def marked(made: Kernel, monkeypatch: pytest.MonkeyPatch) -> str:
    """The phases on buffers, in front of the tile instructions."""
    seen: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(passes, "lower_matrix_tiles", lambda m, _: seen.append(str(m)))
        stage_text(program_of(made[0], *made[1]), "vector", TARGET)
    (text,) = seen
    return text


def refusal(made: Kernel, script: str, target: str = "sapphirerapids") -> str:
    """What is said about a script, in one sentence."""
    program = program_of(made[0], *made[1])
    with pytest.raises(Error) as found:
        stage_text(program, "llvm", by_name(target), script=script)
    assert "\n" not in str(found.value)
    return str(found.value)


# ---- text ----------------------------------------------------------------------------


def test_a_panel_is_read_by_a_marked_contraction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says what it computes: four bytes of a column lie together."""
    check_text(
        marked(kernel(65, 128, 100, "u8", "s8"), monkeypatch),
        """
    CHECK: #[[PANEL:map[0-9]*]] = affine_map<(d0, d1, d2) -> (0, d2 floordiv 4, d1 * 4 + d2 mod 4)>
    CHECK: scf.for {{.*}} = %arg3 to %arg4
    CHECK: scf.for
    CHECK: memref.subview %arg1[{{.*}}, 0, 0] [1, 32, 128]
    CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[PANEL]], {{.*}}], iterator_types = ["parallel", "parallel", "reduction"]}
    CHECK-SAME: nanoloom.amx = 0 : i64, nanoloom.amx_argument = 1 : i64, nanoloom.amx_depth = 0 : i64
    CHECK-SAME: nanoloom.amx_fresh, nanoloom.amx_high = -1 : i64, nanoloom.amx_lanes = 16 : i64, nanoloom.amx_most_rows = 32 : i64, nanoloom.amx_rows = 32 : i64, nanoloom.amx_sum = 128
    CHECK: arith.extui
    CHECK-NEXT: arith.extsi
    CHECK-NOT: nanoloom.interleave
    """,  # noqa: E501
    )


@pytest.mark.drawn
@pytest.mark.parametrize("m", [96, 65])
@pytest.mark.parametrize("left, right, word", PRODUCTS)
def test_a_step(m: int, left: str, right: str, word: str) -> None:
    """Four loads and four products; nothing of it is on the stack."""
    make, given = kernel(m, 1024, 64, left, right)
    text = stage_text(program_of(make, *given), "asm", TARGET)
    loop = loop_with(text, word)
    steps, rest = divmod(count(loop, "tdp"), 4)
    assert steps >= 1
    assert rest == 0
    assert count(loop, word) == count(loop, "tileloadd") == 4 * steps
    assert count(loop, "tilestored") == count(loop, "tilezero") == 0
    assert touches_stack(loop) == []
    others = {other for _, _, other in PRODUCTS} - {word}
    assert not any(other in text for other in others)


@pytest.mark.parametrize("left, right, word", PRODUCTS)
def test_a_sum_that_ends_within_a_tile_register(
    left: str, right: str, word: str
) -> None:
    """Four registers of sums all the same: the last step's are whole, too."""
    make, given = kernel(96, 16 * 64 + 5, 64, left, right)
    text = stage_text(program_of(make, *given), "asm", TARGET)
    loop = loop_with(text, word)
    steps, rest = divmod(count(loop, word), 4)
    assert steps >= 1
    assert rest == 0
    assert count(loop, "tileloadd") == 4 * steps
    assert touches_stack(loop) == []
    behind = text.count(word) - 4 * steps
    assert behind > 0
    assert behind % 4 == 0


@pytest.mark.parametrize(
    ("left", "right", "least", "other"),
    [("bf16", "bf16", 8, "bf16-halves"), ("u8", "s8", 16, "int8-dot")],
)
def test_short_sums_do_without(left: str, right: str, least: int, other: str) -> None:
    """A step of tile registers costs the same for any length."""
    for depth, family in ((least - 1, other), (least, "amx-"), (least + 1, "amx-")):
        script = script_of(kernel(96, depth, 64, left, right))
        assert f'family = "{family}' in script


# ---- refusals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("depth", "old", "new", "said"),
    [
        (128, "rows = 32", "rows = 33", "vectors = 2 and at most 32 rows"),
        (35, "rows = 32", "rows = 48", "vectors = 2 and at most 32 rows"),
        (128, "vectors = 2", "vectors = 1", "vectors = 2 and at most 32 rows"),
        (128, "vectors = 2", "vectors = 4", "vectors = 2 and at most 32 rows"),
    ],
)
def test_other_tiles(depth: int, old: str, new: str, said: str) -> None:
    made = kernel(65, depth, 100, "s8", "s8")
    script = script_of(made)
    assert f"{old} : i64" in script
    assert said in refusal(made, script.replace(f"{old} : i64", f"{new} : i64"))


def test_a_flat_sum_over_two_dimensions() -> None:
    def make(b: Any, x: Any, w: Any) -> Any:
        return b.einsum("mjk,jkn->mn", x, w, dtype=np.dtype(np.float32))

    made = make, (zeros("bf16", 33, 3, 32), zeros("bf16", 3, 32, 100))
    script = script_of(made)
    chosen = script.split("{rows = ")[1].split("}")[0]
    asked = f'16 : i64, vectors = 2 : i64, packed = 0 : i64, family = "amx-bf16", {ALL}'
    said = refusal(made, script.replace(chosen, asked))
    assert "AMX wants packed = 1 for a sum over several dimensions" in said


@pytest.mark.parametrize(
    ("left", "right", "other", "said"),
    [
        ("s8", "u8", "amx-bf16", "family amx-bf16 does not sum s8 by u8 in i32"),
        ("bf16", "bf16", "amx-int8", "family amx-int8 does not sum bf16 by bf16 in"),
    ],
)
def test_other_numbers(left: str, right: str, other: str, said: str) -> None:
    made = kernel(33, 64, 100, left, right)
    script = script_of(made)
    own = "amx-bf16" if left == "bf16" else "amx-int8"
    assert said in refusal(made, script.replace(own, other))


@pytest.mark.drawn
@pytest.mark.parametrize("target", ["icelake-server", "x86-64-v3", "aarch64"])
@pytest.mark.parametrize("left, right, word", PRODUCTS)
def test_targets_without_tiles(target: str, left: str, right: str, word: str) -> None:
    made = kernel(33, 64, 100, left, right)
    script = script_of(made)
    family = "amx-bf16" if left == "bf16" else "amx-int8"
    said = refusal(made, script, target)
    assert f"{target} has no instruction for family {family} of {left} by" in said
    assert word not in stage_text(program_of(made[0], *made[1]), "asm", by_name(target))


# ---- chunks of the sum ---------------------------------------------------------------


def test_sums_wait_in_a_block_between_chunks() -> None:
    """768 numbers in three: from zero, from the block and to it, and to the result."""
    make, given = kernel(128, 768, 64, "bf16", "bf16")
    text = stage_text(program_of(make, *given), "vector", TARGET)
    check_text(
        text,
        """
    CHECK: [[BLOCK:%.*]] = memref.alloca() {{.*}}: memref<128x32xf32>
    CHECK: scf.for [[ROW:%.*]] = %c0 to %c4
    CHECK-COUNT-4: llvm.x86.tilezero
    CHECK: scf.for {{.*}} = %c0 to %c256 step %c32
    CHECK: memref.prefetch
    CHECK-COUNT-4: llvm.x86.tdpbf16ps
    CHECK: memref.extract_aligned_pointer_as_index [[BLOCK]]
    CHECK-COUNT-4: llvm.x86.tilestored64
    CHECK: scf.for [[ROW:%.*]] = %c0 to %c4
    CHECK: memref.extract_aligned_pointer_as_index [[BLOCK]]
    CHECK-COUNT-4: llvm.x86.tileloadd64
    CHECK: scf.for {{.*}} = %c0 to %c256 step %c32
    CHECK: scf.for [[ROW:%.*]] = %c0 to %c4
    CHECK: scf.for {{.*}} = %c0 to %c256 step %c32
    CHECK: memref.extract_aligned_pointer_as_index {{%arg|%subview}}
    CHECK-COUNT-4: llvm.x86.tilestored64
    """,
    )


@pytest.mark.parametrize(("m", "k"), [(32, 768), (128, 256)])
def test_a_sum_at_once(m: int, k: int) -> None:
    """A single tile of rows, or a panel that the first-level cache holds."""
    make, given = kernel(m, k, 64, "bf16", "bf16")
    text = stage_text(program_of(make, *given), "vector", TARGET)
    assert text.count("llvm.x86.tdpbf16ps") == 4
    assert "memref.alloca" not in text
