"""Which dot product a target gets for which numbers, and what flipped signs cost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nanoloom.target import TARGETS, Target, by_name
from nanoloom.target.instructions import x86
from nanoloom.target.instructions.choose import (
    DOTS,
    SCALABLE_DOTS,
    SCALABLE_MATRICES,
    DotUse,
    differing_bits,
    dot_for,
    extremes_of,
    number_product,
    pair_products,
    pair_use,
    scalable_dot,
    scalable_matrix,
)
from nanoloom.target.instructions.instruction import BITS

RANGES = {"s8": range(-128, 128), "u8": range(256)}
CASES = [
    ("znver5", "bf16", "bf16", "x86.avx512.dot", False, 0),
    ("icelake-server", "bf16", "bf16", None, False, 0),
    ("icelake-server", "u8", "s8", "llvm.x86.avx512.vpdpbusd.512", False, 0),
    ("icelake-server", "s8", "u8", "llvm.x86.avx512.vpdpbusd.512", True, 0),
    ("icelake-server", "s8", "s8", "llvm.x86.avx512.vpdpbusd.512", False, -128),
    ("icelake-server", "u8", "u8", "llvm.x86.avx512.vpdpbusd.512", True, 128),
    ("alderlake", "u8", "s8", "llvm.x86.avx512.vpdpbusd.256", False, 0),
    ("sierraforest", "s8", "s8", "x86.avx.dot.i8", False, 0),
    ("sierraforest", "u8", "s8", "llvm.x86.avx2.vpdpbsud.256", True, 0),
    ("x86-64-v4", "u8", "s8", None, False, 0),
    ("apple-m1", "s8", "s8", "llvm.aarch64.neon.sdot.v4i32.v16i8", False, 0),
    ("apple-m1", "u8", "s8", "llvm.aarch64.neon.sdot.v4i32.v16i8", False, 128),
    ("neoverse-v1", "u8", "s8", "llvm.aarch64.neon.usdot.v4i32.v16i8", False, 0),
]


@pytest.mark.parametrize("target, left, right, function, swapped, correction", CASES)
def test_the_instruction(
    target: str,
    left: str,
    right: str,
    function: str | None,
    swapped: bool,
    correction: int,
) -> None:
    use = dot_for(by_name(target), left, right)
    if function is None:
        assert use is None
        return
    assert use is not None
    assert use.dot.function == function
    assert (use.swapped, use.correction) == (swapped, correction)
    assert use.flipped == bool(correction)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("left, right", list(itertools.product(RANGES, RANGES)))
def test_flipped_signs_are_taken_back(target: Target, left: str, right: str) -> None:
    """For every byte a: what the instruction reads, times b, plus correction * b."""
    require_exact(dot_for(target, left, right), left, right)
    require_exact(scalable_dot(target, left, right), left, right)


def require_exact(use: DotUse | None, left: str, right: str) -> None:
    if use is None:
        return
    first = use.dot.right if use.swapped else use.dot.left
    second = use.dot.left if use.swapped else use.dot.right
    assert second == right
    given = np.array(RANGES[left])
    stored = given.astype(np.uint8) ^ (0x80 if use.flipped else 0)
    read = stored.astype(np.int8 if first == "s8" else np.uint8).astype(int)
    assert (read + use.correction == given).all()


def test_a_lane_is_full() -> None:
    for dot in (*DOTS, *SCALABLE_DOTS):
        assert dot.group * BITS[dot.left] == BITS[dot.sums] == 32
        assert dot.bits in (64, 128, 256, 512)
        assert dot.layout in ("pairs", "quads")
    for dot in SCALABLE_MATRICES:
        m, n, k = dot.shape
        assert m * k * BITS[dot.left] == m * n * BITS[dot.sums] == dot.bits


@pytest.mark.parametrize(
    ("target", "left", "right", "function", "correction"),
    [
        ("armv9-sve2", "s8", "s8", "sdot", 0),
        ("aarch64+sve", "u8", "u8", "udot", 0),
        ("aarch64+sve", "u8", "s8", "sdot", 128),
        ("aarch64+sve", "s8", "u8", "udot", -128),
        ("aarch64+sve+i8mm", "s8", "u8", "usdot", 0),
        ("aarch64+sve", "bf16", "bf16", "", 0),
        ("neoverse-v1", "s8", "s8", "", 0),
        ("neoverse-v2", "s8", "s8", "", 0),
        ("rv64gcv", "s8", "s8", "", 0),
        ("apple-m1", "s8", "s8", "", 0),
    ],
)
def test_instructions_of_any_width(
    target: str, left: str, right: str, function: str, correction: int
) -> None:
    """Of vectors whose width is not known before."""
    use = scalable_dot(by_name(target), left, right)
    assert (use is not None) == bool(function)
    if use is not None:
        assert use.dot.function == f"llvm.aarch64.sve.{function}.nxv4i32"
        assert use.correction == correction


@pytest.mark.parametrize(
    ("target", "left", "right", "function", "swapped"),
    [
        ("aarch64+sve+i8mm", "s8", "s8", "smmla.nxv4i32", False),
        ("aarch64+sve+i8mm", "u8", "u8", "ummla.nxv4i32", False),
        ("aarch64+sve+i8mm", "u8", "s8", "usmmla.nxv4i32", False),
        ("aarch64+sve+i8mm", "s8", "u8", "usmmla.nxv4i32", True),
        ("aarch64+sve+bf16", "bf16", "bf16", "fmmla.nxv4f32.nxv8bf16", False),
        ("aarch64+sve", "s8", "s8", "", False),
        ("aarch64+i8mm", "s8", "s8", "", False),
        ("neoverse-v1", "s8", "s8", "", False),
    ],
)
def test_instructions_for_two_rows(
    target: str, left: str, right: str, function: str, swapped: bool
) -> None:
    """No signs are inverted for them: all pairs of signs have one."""
    use = scalable_matrix(by_name(target), left, right)
    assert (use is not None) == bool(function)
    if use is not None:
        assert use.dot.function == f"llvm.aarch64.sve.{function}"
        assert (use.swapped, use.flipped) == (swapped, False)


@pytest.mark.parametrize(
    ("target", "function"),
    [
        ("x86-64-v2", "llvm.x86.sse2.pmadd.wd"),
        ("x86-64-v3", "llvm.x86.avx2.pmadd.wd"),
        ("x86-64-v4", "llvm.x86.avx512.pmaddw.d.512"),
        ("aarch64", ""),
    ],
)
def test_pairs_of_16_bits(target: str, function: str) -> None:
    found = pair_products(by_name(target))
    assert (found.function if found else "") == function


@pytest.mark.parametrize(
    ("left", "right", "fits"),
    [("s8", "u8", True), ("s16", "s16", True), ("s32", "s8", False)],
)
def test_pairs_of_narrower_numbers(left: str, right: str, fits: bool) -> None:
    """They are extended to what the instruction takes, which adds to no sums."""
    use = pair_use(by_name("x86-64-v3"), left, right)
    assert (use is not None) is fits
    assert use is None or (use.dot.group, use.dot.accumulates) == (2, False)
    assert pair_use(by_name("aarch64"), left, right) is None


@pytest.mark.parametrize(
    ("target", "kind", "name"),
    [
        ("riscv64+v+zvfh", "f16", "vfwmacc"),
        ("riscv64+v+zvfbfwma", "bf16", "vfwmaccbf16"),
        ("riscv64+v", "f16", ""),
        ("riscv64+v+zvfh", "f32", ""),
        ("neoverse-v2", "bf16", ""),
    ],
)
def test_products_by_a_number(target: str, kind: str, name: str) -> None:
    found = number_product(by_name(target), kind, kind, "f32")
    assert (found.name if found else "") == name
    assert number_product(by_name(target), kind, kind, "f64") is None


@pytest.mark.parametrize(
    ("target", "rate"), [("sapphirerapids", 0.5), ("znver5", 2), ("znver4", 1)]
)
def test_how_many_a_cycle(target: str, rate: float) -> None:
    """A unit's own rate, or that of its multiply-adds."""
    use = dot_for(by_name(target), "bf16", "bf16")
    assert use is not None and use.dot.rate(by_name(target)) == rate


@pytest.mark.parametrize(
    ("target", "kinds", "cycles"),
    [
        ("znver4", ("bf16", "bf16"), 6),
        ("znver5", ("u8", "s8"), 4),
        ("icelake-server", ("u8", "s8"), 5),
        ("alderlake", ("u8", "s8"), 5),
        ("neoverse-n2", ("u8", "u8"), 4),
    ],
)
def test_how_long_a_sum_waits(
    target: str, kinds: tuple[str, str], cycles: float
) -> None:
    """As the unit says, the table, or as for a multiply-add."""
    use = dot_for(by_name(target), *kinds)
    assert use is not None and use.dot.waits(by_name(target)) == cycles


def test_products_that_are_added_behind_wait_for_the_addition() -> None:
    use = pair_use(by_name("x86-64-v3"), "u8", "s8")
    assert use is not None and use.dot.waits(by_name("x86-64-v3")) == 1


def test_a_tile_takes_its_time() -> None:
    target = by_name("sapphirerapids")
    assert {x.rate(target) for x in x86.TILE_PRODUCTS} == {1 / 16}


def test_extremes_are_a_target_s_own() -> None:
    """No other instruction set's, also where an entry needs no extension."""
    for target in TARGETS:
        names = {x.instruction.name for x in extremes_of(target)}
        known = {
            "x86_64": {"maxps", "minps", "maxpd", "minpd", "vrangeps", "vrangepd"},
            "aarch64": {"fmaxnm", "fminnm"},
            "riscv64": {"vfmax", "vfmin"},
        }
        assert names <= known.get(target.arch, set())
        assert bool(names) is (target.arch in known and not target.is_scalar)


@pytest.mark.parametrize(
    ("name", "sums", "most"), [("znver5", "s32", 0), ("x86-64-v3", "u8", 31)]
)
def test_differing_bits(name: str, sums: str, most: int) -> None:
    """Bytes of ones hold as many steps as a byte has room for eights."""
    use = differing_bits(by_name(name), "b8", "b8")
    assert use is not None and (use.dot.sums, use.dot.most) == (sums, most)
    kind = {"s32": np.int32, "u8": np.uint8}[sums]
    left, right = (
        np.frombuffer(np.random.default_rng(n).bytes(64), kind) for n in (1, 2)
    )
    zeros = np.zeros_like(left)
    assert use.dot.meaning is not None
    bits = np.unpackbits((left ^ right).view(np.uint8)).reshape(left.size, -1)
    assert (use.dot.meaning(zeros, left, right) == bits.sum(1)).all()
    assert differing_bits(by_name(name), "s8", "b8") is None
