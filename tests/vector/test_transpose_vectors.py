"""Transposes: every permutation, odd sizes, squares turned in registers."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from onnx import parser

import nanoloom
from nanoloom.errors import Error
from nanoloom.kernels.program import Program
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Schedule, TransposeInRegisters, Vectorize
from nanoloom.target import by_name
from nanoloom.vector.register_transpose import interleave_lanes
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.nest.nests import matmul
from tests.vector.assembly import inner_loops, touches_stack
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    backwards,
    program_of,
    run,
    shared_cache,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)


def turned(order: tuple[int, ...]) -> Any:
    return lambda b, x: b.transpose(x, list(order))


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_rank_3(order: tuple[int, ...]) -> None:
    x = sample(1, (17, 33, 19), "float32")
    got = run(turned(order), x, order=backwards)
    assert (got == x.transpose(order)).all()
    assert not (got == np.roll(x.transpose(order), 1)).all()


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_rank_4(order: tuple[int, ...]) -> None:
    x = sample(2, (3, 18, 7, 21), "float32")
    got = run(turned(order), x, order=backwards)
    assert (got == x.transpose(order)).all()
    assert not (got == np.roll(x.transpose(order), 1)).all()


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize(
    "name", ["float64", "float16", "bfloat16", "int8", "int64", "bool"]
)
def test_types(target: Any, name: str) -> None:
    x = sample(3, (67, 35), name, -99, 99)
    assert (run(turned((1, 0)), x, target=target) == x.T).all()


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1),
        (1, 31),
        (31, 1),
        (16, 16),
        (15, 17),
        (97, 16),
        (33, 64),
        (7, 30),
        (70, 3),
    ],
    ids=str,
)
def test_sizes(target: Any, shape: tuple[int, ...]) -> None:
    x = sample(4, shape, "float32")
    assert (run(turned((1, 0)), x, target=target, order=backwards) == x.T).all()


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["float32", "int8", "float64"])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((301, 333), (1, 0)),
        ((259, 3, 130), (2, 1, 0)),
        ((5, 70, 6), (0, 2, 1)),
        ((3, 130, 66), (0, 2, 1)),
    ],
    ids=str,
)
def test_blocks_of_squares(
    name: str, shape: tuple[int, ...], order: tuple[int, ...]
) -> None:
    """Tasks that are no whole squares, in several dimensions."""
    x = sample(10, shape, name, -99, 99)
    assert (run(turned(order), x, order=backwards) == x.transpose(order)).all()


@pytest.mark.parametrize(
    ("shape", "order", "tiles"),
    [
        ((1024, 1024), (1, 0), "[64, 128]"),
        ((1000, 960), (1, 0), "[16, 512]"),  # beyond the second-level cache
        ((700, 700), (1, 0), "[64, 128]"),
        ((64, 3000), (1, 0), "[16, 64]"),  # short rows, lines read once
        ((200, 150), (1, 0), "[64, 200]"),
        ((8, 1024, 64), (0, 2, 1), "[1, 8, 1024]"),  # rows of pages
        ((64, 9, 50), (2, 1, 0), "[50, 1, 64]"),
        ((50, 8, 8), (0, 2, 1), "[50, 8, 8]"),
        ((224, 224, 3), (2, 0, 1), "[3, 8, 224]"),  # few columns: more of the others
        ((3, 224, 224), (1, 2, 0), "[8, 224, 3]"),
        ((5000, 3), (1, 0), "[3, 5000]"),
        ((3, 9000), (1, 0), "[2688, 3]"),
        ((128, 12, 64), (1, 0, 2), "[1, 128, 0]"),  # rows stay whole
    ],
    ids=str,
)
def test_a_task_has_whole_squares(
    shape: tuple[int, ...], order: tuple[int, ...], tiles: str
) -> None:
    """However long a row of the result is: a few rows of it have no squares."""
    program = program_of(turned(order), (shape, "float32"))
    text = stage_text(program, "schedule", by_name("sapphirerapids"))
    check_text(text, f"CHECK: transform.structured.fuse {{{{.*}}}} tile_sizes {tiles}")


def test_arithmetic_on_a_turned_operand() -> None:
    """x transposed is folded into its reader, which turns squares as it computes."""
    x, y = sample(5, (37, 19), "float32"), sample(6, (19, 37), "float32")

    def make(b: Any, x: Any, y: Any) -> Any:
        return b.elementwise(lambda s, t: s * t + s, b.transpose(x, [1, 0]), y)

    assert len(program_of(make, x, y).kernels) == 1
    exact = wide(x.T) * wide(y) + wide(x.T)
    check(run(make, x, y), exact, 2, abs(exact) + 2 * abs(x.T))


def test_two_turned_operands() -> None:
    x, y = sample(7, (37, 19), "float32"), sample(8, (37, 19), "float32")

    def make(b: Any, x: Any, y: Any) -> Any:
        one, other = b.transpose(x, [1, 0]), b.transpose(y, [1, 0])
        return b.elementwise(lambda s, t: s + t, one, other)

    check(run(make, x, y), wide(x.T) + wide(y.T), 1)


def test_heads_of_attention() -> None:
    """[words, heads, width] to [heads, words, width]: rows stay whole, no shuffles."""
    x = sample(9, (31, 3, 32), "float32")
    program = program_of(turned((1, 0, 2)), x)
    text = stage_text(program, "vector", by_name("sapphirerapids"))
    check_text(
        text,
        """
    CHECK-NOT: vector.shuffle
    CHECK: vector.load
    CHECK: vector.store
    CHECK-NOT: vector.shuffle
    """,
    )
    assert (run(turned((1, 0, 2)), x) == x.transpose(1, 0, 2)).all()


# ---- the network of shuffles ---------------------------------------------------------


@pytest.mark.parametrize("count", [4, 8, 16, 64])
@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_shuffles_turn_squares_side_by_side(count: int, size: int) -> None:
    """The lane numbers, done to numpy's rows as the rounds do."""
    size = min(size, count)
    square = np.arange(count * size).reshape(size, count)
    bundles = [[row] for row in square]
    while len(bundles) > 1:
        unit = size // len(bundles)
        bundles = [
            [
                np.concatenate([x, y])[interleave_lanes(count, size, unit, half)]
                for x, y in zip(one, other, strict=True)
                for half in range(2)
            ]
            for one, other in zip(bundles[::2], bundles[1::2], strict=True)
        ]
    got = np.array(bundles[0]).reshape(size, -1, size)
    assert (got == square.reshape(size, -1, size).transpose(2, 1, 0)).all()


def test_a_transpose_uses_shuffles_and_whole_vectors() -> None:
    program = program_of(turned((1, 0)), ((64, 64), "float32"))
    target = by_name("sapphirerapids")
    check_text(
        stage_text(program, "vector", target),
        """
    CHECK: vector.load {{.*}} vector<16xf32>
    CHECK-COUNT-3: vector.insert_strided_slice {{.*}} vector<4xf32> into vector<16xf32>
    CHECK-COUNT-32: vector.shuffle {{.*}} vector<16xf32>
    CHECK-NOT: vector.shuffle
    CHECK-COUNT-16: vector.store {{.*}} vector<16xf32>
    CHECK-NOT: memref.load
    """,
    )


@pytest.mark.parametrize("channels", [5, 7, 4])
def test_squares_over_what_they_read(channels: int) -> None:
    """Results over an operand: squares that overlap would add to it twice."""
    text = f"""<ir_version: 8, opset_import: ["" : 13]>
      g (int8[3, {channels}, 8] x, uint8[{channels}, 1, 1] w) => (int32[a, b, c] y) {{
        v = ConvInteger<group = {channels}, kernel_shape = [1]>(x, w)
        y = ReduceMax<axes = [1, 2]>(v) }}"""
    random = np.random.default_rng(channels)
    x = random.integers(-128, 128, (3, channels, 8)).astype(np.int8)
    w = random.integers(0, 256, (channels, 1, 1)).astype(np.uint8)
    model = parser.parse_model(text)
    made = nanoloom.compile(model, threads=1, cache=shared_cache())({"x": x, "w": w})
    right = (x.astype(np.int64) * w[None, :, 0]).max((1, 2))
    assert made["y"].ravel().tolist() == right.tolist()


@pytest.mark.parametrize(
    ("shape", "order"), [((64, 5, 14), (1, 2, 0)), ((5, 14, 64), (2, 0, 1))], ids=str
)
def test_short_rows_are_turned_in_pieces(
    shape: tuple[int, ...], order: tuple[int, ...]
) -> None:
    """No number is moved by itself: the last piece overlaps the one before it."""
    text = stage_text(
        program_of(turned(order), (shape, "float32")),
        "vector",
        by_name("sapphirerapids"),
    )
    assert "vector.shuffle" in text
    assert "memref.load" not in text and "memref.store" not in text


def test_bf16_is_turned_as_integers() -> None:
    """LLVM ends the process at its shuffles for AVX-NE-CONVERT without AVX-512."""
    program = program_of(turned((1, 0)), ((64, 64), "bfloat16"))
    text = stage_text(program, "vector", by_name("sierraforest"))
    found = [line for line in text.splitlines() if "vector.shuffle" in line]
    assert found and all("vector<16xi16>" in line for line in found)
    assert "vpunpck" in stage_text(program, "asm", by_name("sierraforest"))


@pytest.mark.parametrize(
    ("target", "register"), [("sapphirerapids", "zmm"), ("x86-64-v3", "ymm")]
)
def test_squares_stay_in_registers(target: str, register: str) -> None:
    program = program_of(turned((1, 0)), ((64, 64), "float32"))
    (loop,) = inner_loops(stage_text(program, "asm", by_name(target)))
    assert sum(register in line for line in loop) >= (64 if register == "zmm" else 24)
    assert [line for line in loop if line.startswith(("vmovss", "vinsertps"))] == []
    assert touches_stack(loop) == []


# ---- what the script says ------------------------------------------------------------


def turned_by(target: Any, piece: int, rest: int) -> str:
    """The schedule of a transpose of 67 x 35 numbers with other squares."""
    (kernel,) = transpose().kernels.values()
    words = choose(kernel.nest, target).directives
    assert TransposeInRegisters("copy", 128, 4) in words
    others = [word for word in words if not isinstance(word, TransposeInRegisters)]
    turn = [TransposeInRegisters("copy", piece, rest)] if piece else []
    return Schedule((*others, *turn)).to_transform(kernel.nest)


def transpose() -> Program:
    return program_of(turned((1, 0)), ((67, 35), "float32"))


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize(
    ("piece", "rest"), [(128, 4), (64, 2), (256, 8), (128, 1), (2048, 16), (0, 0)]
)
def test_squares_as_the_script_says(target: Any, piece: int, rest: int) -> None:
    x = sample(5, (67, 35), "float32")
    script = turned_by(target, piece, rest)
    got = run(turned((1, 0)), x, target=target, script=script, order=backwards)
    assert (got == x.T).all()
    assert not (got == np.roll(x.T, 1)).all()


def test_nothing_is_turned_without_a_word() -> None:
    target = by_name("x86-64-v3")
    plain = turned_by(target, 0, 0)
    assert "nanoloom.transpose_in_registers" not in plain
    assert "shuffle" not in stage_text(transpose(), "vector", target, script=plain)
    said = turned_by(target, 128, 4)
    assert (
        '"nanoloom.transpose_in_registers"' in said
        and "{block_bits = 128 : i64, tail_lanes = 4 : i64}" in said
    )
    assert "shuffle" in stage_text(transpose(), "vector", target, script=said)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (TransposeInRegisters("point", 128, 4), "all that point reads lies along j"),
        (
            TransposeInRegisters("point", 96, 4),
            "block_bits = 96: a power of two up to 2048 is wanted",
        ),
        (
            TransposeInRegisters("point", 32, 4),
            "block_bits is 32: at least 64 bits are one",
        ),
        (
            TransposeInRegisters("point", 128, 3),
            "tail_lanes = 3: a power of two up to 256 is wanted",
        ),
        (TransposeInRegisters("product", 128, 4), "product has no vectors yet"),
    ],
)
def test_what_is_refused(word: TransposeInRegisters, said: str) -> None:
    with pytest.raises(Error) as found:
        Schedule((Vectorize("point", "j", Lanes(8)), word)).apply(matmul())
    assert str(found.value).startswith(f"{word}: {said}")


def test_a_sum_turns_nothing() -> None:
    words = Vectorize("product", "j", Lanes(8)), TransposeInRegisters("product", 128, 4)
    with pytest.raises(Error, match="product is a sum: nothing is transposed in it"):
        Schedule(words).apply(matmul())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "block_bits = 128",
            "block_bits = 100",
            "block_bits = 100: a power of two up to 2048",
        ),
        (
            "block_bits = 128",
            "block_bits = 32",
            "block_bits = 32: at least 64 bits are one",
        ),
        (
            "tail_lanes = 4",
            "tail_lanes = 5",
            "tail_lanes = 5: a power of two up to 256 is wanted",
        ),
        (", tail_lanes = 4 : i64", "", '"tail_lanes" is expected but not provided'),
    ],
)
def test_what_is_refused_in_a_script(old: str, new: str, said: str) -> None:
    target = by_name("x86-64-v3")
    script = turned_by(target, 128, 4)
    assert old in script
    with pytest.raises(Error) as found:
        stage_text(transpose(), "vector", target, script=script.replace(old, new))
    assert said in str(found.value)
