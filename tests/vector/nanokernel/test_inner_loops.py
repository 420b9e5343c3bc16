"""The inner loops of the families for narrow numbers: these instructions, no others."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nanoloom.target import by_name
from tests.kernels.attention_programs import Attention, attention_program
from tests.linalg.bounds import dtype_of
from tests.vector.assembly import inner_loops, touches_stack
from tests.vector.kernel_harness import program_of, stage_text

SIZES = [(96, 256, 256), (31, 97, 127), (8, 768, 768)]
TYPES = {
    "bf16": "bfloat16", "f16": "float16", "s8": "int8", "u8": "uint8",
}  # fmt: skip


def inner_loop(
    sizes: tuple[int, int, int],
    left: str,
    right: str,
    target: str,
    word: str,
    flat: bool = False,
) -> tuple[list[str], int, int]:
    """The loop with most of an instruction, and the rows and vectors of its tile.

    flat: the right operand is an activation.
    """
    m, k, n = sizes
    weight = np.zeros((k, n), dtype_of(TYPES[right]))
    sums = np.dtype(np.int32 if left[1:] == "8" else np.float32)

    def make(b: Any, x: Any, *given: Any) -> Any:
        w = given[0] if given else b.constant(weight)
        return b.einsum("mk,kn->mn", x, w, dtype=sums)

    given = [np.zeros((m, k), dtype_of(TYPES[left])), *([weight] if flat else [])]
    program = program_of(make, *given)
    script = stage_text(program, "schedule", by_name(target))
    rows, vectors = re.search(r"rows = (\d+).*vectors = (\d+)", script).groups()  # type: ignore[union-attr]
    text = stage_text(program, "asm", by_name(target))
    return loop_with(text, word), int(rows), int(vectors)


def loop_with(text: str, word: str) -> list[str]:
    """The inner loop with most of an instruction, its prefix (VEX) taken away."""
    loops = [[line.removeprefix("{vex}\t") for line in x] for x in inner_loops(text)]
    found = max(loops, key=lambda loop: count(loop, word))
    assert count(found, word), f"no inner loop has {word}"
    return found


def count(loop: list[str], word: str) -> int:
    return sum(line.startswith(word) for line in loop)


def vector_work(loop: list[str]) -> list[str]:
    return [line for line in loop if re.search(r"[xyz]mm|\bv\d", line)]


@pytest.mark.drawn
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(
    ("target", "left", "right", "word"),
    [
        ("znver4", "bf16", "bf16", "vdpbf16ps"),
        ("znver5", "bf16", "bf16", "vdpbf16ps"),
        ("icelake-server", "u8", "s8", "vpdpbusd"),
        ("graniterapids+avx10.2", "f16", "f16", "vdpphps"),
        ("znver5", "s8", "u8", "vpdpbusd"),
        ("alderlake", "u8", "s8", "vpdpbusd"),
        ("sierraforest", "s8", "s8", "vpdpbssd"),
        ("arrowlake-s", "s8", "u8", "vpdpbsud"),
        ("arrowlake-s", "u8", "s8", "vpdpb"),
        ("arrowlake-s", "u8", "u8", "vpdpbuud"),
    ],
)
def test_dot_products(
    target: str, left: str, right: str, word: str, sizes: tuple[int, int, int]
) -> None:
    """A step: rows x vectors dot products, vectors loads, rows broadcasts, no more."""
    loop, rows, vectors = inner_loop(sizes, left, right, target, word)
    steps, rest = divmod(count(loop, word), rows * vectors)
    assert steps >= 1
    assert rest == 0
    assert spills(loop) == []
    loads = count(loop, "vmovdq") + count(loop, "vmovup") + count(loop, "vmovap")
    broadcasts = count(loop, "vpbroadcastd") + count(loop, "vbroadcastss")
    assert loads == steps * vectors
    assert broadcasts == steps * rows
    assert len(vector_work(loop)) == steps * (rows * vectors + rows + vectors)


@pytest.mark.drawn
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("target", ["icelake-server", "alderlake"])
@pytest.mark.parametrize("left, right", [("s8", "s8"), ("u8", "u8")])
def test_alike_signs(
    left: str, right: str, target: str, sizes: tuple[int, int, int]
) -> None:
    """One instruction more a row: its sign bits; the sums' correction is not here."""
    loop, rows, vectors = inner_loop(sizes, left, right, target, "vpdpbusd")
    steps, rest = divmod(count(loop, "vpdpbusd"), rows * vectors)
    assert rest == 0
    assert spills(loop) == []
    assert count(loop, "vpxor") == steps * rows
    assert len(vector_work(loop)) <= steps * (rows * vectors + 2 * rows + vectors)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("target", ["sierraforest", "arrowlake-s"])
def test_loads_that_convert(target: str, sizes: tuple[int, int, int]) -> None:
    loop, rows, vectors = inner_loop(sizes, "bf16", "bf16", target, "vfmadd")
    steps, rest = divmod(count(loop, "vfmadd"), 2 * rows * vectors)
    assert rest == 0
    assert count(loop, "vcvtneebf162ps") == steps * vectors
    assert count(loop, "vcvtneobf162ps") == steps * vectors
    assert count(loop, "vbcstnebf162ps") == steps * 2 * rows
    assert touches_stack(loop) == []
    wanted = 2 * (rows * vectors + rows + vectors)
    assert len(vector_work(loop)) == steps * wanted


FLAT_SIZES = [(24, 256, 256), (31, 97, 127), (8, 768, 768), (1, 768, 768)]


@pytest.mark.drawn
@pytest.mark.parametrize("sizes", FLAT_SIZES, ids=str)
@pytest.mark.parametrize("target", ["sierraforest", "arrowlake-s"])
def test_flat_loads_that_convert(target: str, sizes: tuple[int, int, int]) -> None:
    """Half the vectors are of even columns, half of odd ones: nothing is masked."""
    loop, rows, vectors = inner_loop(sizes, "bf16", "bf16", target, "vfmadd", flat=True)
    steps, rest = divmod(count(loop, "vfmadd"), rows * vectors)
    assert steps >= 1
    assert rest == 0
    assert 2 * count(loop, "vcvtneebf162ps") == steps * vectors
    assert 2 * count(loop, "vcvtneobf162ps") == steps * vectors
    assert count(loop, "vbcstnebf162ps") == steps * rows
    assert touches_stack(loop) == []
    assert len(vector_work(loop)) == steps * (rows * vectors + rows + vectors)


@pytest.mark.drawn
@pytest.mark.parametrize("sizes", FLAT_SIZES, ids=str)
@pytest.mark.parametrize("target", ["x86-64-v3", "alderlake", "skylake-avx512"])
def test_flat_halves(target: str, sizes: tuple[int, int, int]) -> None:
    """A pair of vectors: a load, a shift and a mask."""
    loop, rows, vectors = inner_loop(sizes, "bf16", "bf16", target, "vfmadd", flat=True)
    steps, rest = divmod(count(loop, "vfmadd"), rows * vectors)
    assert steps >= 1
    assert rest == 0
    assert 2 * count(loop, "vpslld") == steps * vectors
    assert count(loop, "vpmovzx") == 0
    assert spills(loop) == []
    most = rows * vectors + rows + vectors + vectors // 2
    assert steps * rows * vectors < len(vector_work(loop)) <= steps * most


@pytest.mark.parametrize(
    ("target", "word", "row"),
    [
        ("arrowlake-s", "vcvtneebf162ps", "vbcstnebf162ps"),
        ("x86-64-v3", "vpslld\t$16", "vbroadcastss"),
        ("skylake-avx512", "vpslld\t$16", "vbroadcastss"),
    ],
)
def test_attention_in_bf16(target: str, word: str, row: str) -> None:
    """Both products read flat operands: keys that were turned, values as they lie."""
    given = Attention((2,), 128, 128, 64)
    program = attention_program(given.make, *given.inputs(), bf16=True)
    number = [k.root for k in program.kernels.values()].index("contractions")
    text = stage_text(program, "asm", by_name(target), number)
    loops = [x for x in inner_loops(text) if count(x, word) and count(x, row)]
    assert len(loops) == 2
    assert all(spills(loop) == [] for loop in loops)


IN_PARTS = [
    ("skylake-avx512", "bf16", "bf16", "vfmadd", 2, 3),
    ("x86-64-v3", "bf16", "bf16", "vfmadd", 2, 3),
    ("skylake-avx512", "s8", "s8", "vpmaddwd", 2, 1),
    ("x86-64-v3", "u8", "s8", "vpmaddwd", 2, 1),
    ("x86-64-v3", "f16", "f16", "vfmadd", 1, 1),
    ("skylake-avx512", "f16", "f16", "vfmadd", 1, 1),
]
OTHERWISE = SIZES[0], *IN_PARTS[3]  # many rows of bytes: test_inner_products.py


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("sizes", "target", "left", "right", "word", "a_product", "a_vector"),
    [
        (sizes, *case)
        for sizes in (SIZES[0], SIZES[2])
        for case in IN_PARTS
        if (sizes, *case) != OTHERWISE
    ],
)
def test_in_parts(
    sizes: tuple[int, int, int],
    target: str,
    left: str,
    right: str,
    word: str,
    a_product: int,
    a_vector: int,
) -> None:
    """Rows cost their broadcasts alone: they were widened in front of the loop."""
    loop, rows, vectors = inner_loop(sizes, left, right, target, word)
    parts = 2 if word == "vfmadd" and a_product == 2 else 1
    steps, rest = divmod(count(loop, word), parts * rows * vectors)
    assert rest == 0
    most = a_product * rows * vectors + parts * rows + a_vector * vectors
    assert steps * rows * vectors < len(vector_work(loop)) <= steps * most + 1
    assert spills(loop) == []


@pytest.mark.parametrize(
    ("sizes", "target"),
    [
        ((16, 256, 256), "x86-64-v3"),
        ((1, 768, 768), "x86-64-v3"),
        ((96, 256, 256), "skylake-avx512"),
        ((31, 97, 127), "skylake-avx512"),
        ((4, 768, 768), "skylake-avx512"),
    ],
)
def test_two_activations(sizes: tuple[int, int, int], target: str) -> None:
    """Rows as they lie; without mask registers a mask takes a vector's place."""
    m, k, n = sizes
    product = program_of(
        lambda b, x, w: b.einsum("mk,kn->mn", x, w),
        ((m, k), "float32"),
        ((k, n), "float32"),
    )
    loop = loop_with(stage_text(product, "asm", by_name(target)), "vfmadd")
    assert vector_work(touches_stack(loop)) == []


def spills(loop: list[str]) -> list[str]:
    """Vectors on the stack but for broadcasts: the widened rows lie there."""
    words = ("vbroadcastss", "vpbroadcastd")
    return [
        line
        for line in vector_work(touches_stack(loop))
        if not line.startswith(words) and "{1to" not in line
    ]


@pytest.mark.parametrize(
    ("target", "left", "right", "word"),
    [
        ("neoverse-v1", "bf16", "bf16", "bfdot"),
        ("neoverse-v1", "u8", "s8", "usdot"),
        ("apple-m1", "s8", "s8", "sdot"),
        ("apple-m1", "u8", "u8", "udot"),
    ],
)
def test_arm(target: str, left: str, right: str, word: str) -> None:
    loop, rows, vectors = inner_loop(SIZES[0], left, right, target, word)
    assert count(loop, word) % (rows * vectors) == 0
    assert touches_stack(loop) == []
