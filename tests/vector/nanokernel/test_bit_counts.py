"""Products of bits: every way of counting them, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.products.binary_products import differing
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Nanokernel
from nanoloom.schedule.library.family import LEAST_BYTES
from nanoloom.target import by_name
from nanoloom.target.instructions.choose import counts_words
from tests.linalg.bounds import sample
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    Array,
    backwards,
    program_of,
    run,
    stage_text,
)
from tests.vector.nanokernel.reference import machine

I32 = np.dtype(np.int32)
TARGETS = {
    "znver5": "vpopcntd",
    "skylake-avx512": "vpshufb",
    "x86-64-v3": "vpshufb",
    "aarch64": "cnt",
}
SIZES = [
    (1, 6, 17), (5, 35, 100), (33, 124, 17), (7, 125, 140), (6, 400, 9), (9, 16, 64),
    (3, 64, 71), (6, 7, 33),
]  # fmt: skip


def product(right: Array) -> Any:
    """x [m, taps, k] by [taps, k, n], all of them bytes of bits."""

    def make(b: Builder, x: Tensor) -> Tensor:
        m, t, k, n = (ir.AffineDimExpr.get(d) for d in (0, 2, 3, 1))
        out = b.full((x.shape[0], right.shape[-1]), 0, I32)
        return b.generic(
            [
                (x, Map.get(4, 0, [m, t, k])),
                (b.constant(right), Map.get(4, 0, [t, k, n])),
            ],
            [(out, Map.get(4, 0, [m, n]))],
            [PARALLEL, PARALLEL, REDUCTION, REDUCTION],
            lambda one, other, sofar: sofar + differing(one, other),
        )[0]

    return make


def numbers(seed: int, *shape: int) -> Array:
    """Bytes of all kinds, as different as possible among them."""
    made = sample(seed, shape, "uint8", 0, 255)
    made.reshape(-1)[: made.size // 2] = 255 * (seed % 2)
    return made


def ones(left: Array, right: Array) -> Array:
    differ = left[..., None] ^ right
    return np.bitwise_count(differ).sum(axis=(1, 2), dtype=np.int32)


@pytest.mark.drawn
@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
@pytest.mark.parametrize("name", TARGETS)
def test_counts(
    name: str, m: int, k: int, n: int, taps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = machine(name, monkeypatch)
    left, right = numbers(2, m, taps, k), numbers(3, taps, k, n)
    make = product(right)
    got = run(make, left, target=target, order=backwards)
    check(got, ones(left, right), 0)
    script = stage_text(program_of(make, left), "schedule", target)
    counts = TARGETS[name] != "vpshufb" or n < target.lanes(8) or taps * k < LEAST_BYTES
    family = "pairs" if counts_words(target) and k >= 8 else "counts"
    assert f'family = "bit-{family if counts else "tables"}"' in script


@pytest.mark.parametrize("rows", [5, 14, 64])
def test_tiles_leave_registers_for_what_counts(rows: int) -> None:
    """Two for each vector of columns, and five more."""
    target = by_name("znver5")
    program = program_of(product(numbers(1, 9, 32, 256)), ((rows, 9, 32), "uint8"))
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, target).directives
    (tile,) = [word for word in words if isinstance(word, Nanokernel)]
    assert tile.family == "bit-pairs"
    assert (tile.rows + 2) * tile.vectors + 5 <= target.vector.registers


@pytest.mark.parametrize(("name", "word"), TARGETS.items())
def test_the_inner_loop_counts_by_the_best_instruction(name: str, word: str) -> None:
    target = by_name(name)
    make = product(numbers(1, 1, 64, 64))
    text = stage_text(program_of(make, ((64, 1, 64), "uint8")), "binary", target)
    loop = loop_with(text, word)
    assert count(loop, word) >= 6
    if word == "vpopcntd":  # two words take a ternary operation: no count is for one
        carries = [line for line in loop if "vpternlogd\t$232" in line]
        assert len(carries) == count(loop, "vpxord") == count(loop, word)
    if word == "vpshufb":  # a shuffle is 4 bits of a column: no ones are counted
        assert count(loop, "vpaddb") >= count(loop, word)
        assert not count(loop, "vpxor")
    vectors = [line for line in touches_stack(loop) if "mm" in line]
    assert not [line for line in vectors if "vbroadcasti" not in line]  # of the table
