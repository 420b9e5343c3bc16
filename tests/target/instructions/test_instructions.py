"""Each instruction of the table against its reference loop, or by its text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nanoloom.runtime.emulation import machine
from nanoloom.target.host import this_machine
from nanoloom.target.instructions import aarch64, meanings, x86
from nanoloom.target.instructions.choose import INSTRUCTIONS
from nanoloom.target.instructions.instruction import Instruction
from tests.target.instructions.programs import (
    Array,
    assembly,
    immediate,
    is_vector,
    run,
)
from tests.vector.nanokernel.instruction_meanings import DTYPES

SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -1.5, 2.0]
EXTREME = (
    meanings.larger,
    meanings.smaller,
    meanings.ranged,
    meanings.larger_number,
    meanings.smaller_number,
)
# What may give its first operand back.
CHOOSING = (*EXTREME, meanings.repeated_quad)
# Here or under an emulator: those with vectors in and out.
RUNNABLE = [x for x in INSTRUCTIONS if x.meaning and is_vector(x.result)]
# qemu 7.2 knows no SVE2.1.
OF_SVE = [
    x
    for x in aarch64.INSTRUCTIONS
    if x.scalable and x in RUNNABLE and "sve2p1" not in x.needs
]
OF_NEON = [x for x in aarch64.INSTRUCTIONS if not x.scalable and x in RUNNABLE]


@pytest.mark.parametrize("x", INSTRUCTIONS, ids=lambda x: f"{x.name}-{x.function}")
def test_the_text(x: Instruction) -> None:
    """LLVM has the intrinsic, and selects this instruction for it."""
    assert re.search(
        rf"^\s+({{vex}}\s+)?v?{re.escape(x.name)}\b", assembly(x), re.MULTILINE
    )


def drawn(x: Instruction, vscale: int, rng: np.random.Generator) -> list[Array]:
    """Small whole numbers, whose sums are exact; bytes and bits of all kinds."""
    made: list[Array] = []
    for type_ in x.operands:
        kind, _, count = type_.partition("*")
        if not is_vector(type_) and kind not in DTYPES:
            continue
        size = int(count.rstrip("&") or 1) * (vscale if x.scalable and count else 1)
        dtype = np.dtype(DTYPES[kind])
        if x.meaning in EXTREME:
            made.append(rng.choice(SPECIAL, size).astype(dtype))
        elif dtype.kind in "iu":
            made.append(
                np.frombuffer(rng.bytes(size * dtype.itemsize), dtype, size).copy()
            )
        else:
            signs = rng.choice([-1, 1], size)  # no zero, which would change no sum
            made.append((rng.integers(1, 10, size) * signs).astype(dtype))
    return made


def meant(x: Instruction, arrays: list[Array]) -> Array:
    """What the reference loop gives."""
    assert x.meaning is not None
    given: list[Any] = []
    rest = iter(arrays)
    for n, type_ in enumerate(x.operands):
        vector = is_vector(type_) or type_ in DTYPES
        given.append(next(rest) if vector else immediate(x, n))
    if x.meaning in EXTREME:
        given = given[: 3 if x.meaning is meanings.ranged else 2]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x.meaning(*given))


def require_alike(
    known: list[Instruction], emulator: tuple[str, ...], to: Path, vscale: int = 1
) -> None:
    rng = np.random.default_rng(len(known) + vscale)
    inputs = [drawn(x, vscale, rng) for x in known]
    got = run(known, inputs, emulator, to, vscale)
    for x, arrays, made in zip(known, inputs, got, strict=True):
        right = meant(x, arrays)
        assert made.dtype == right.dtype, x.function
        assert np.array_equal(made, right, equal_nan=made.dtype.kind == "f"), x.function
        if x.meaning in EXTREME:
            one, other = (np.signbit(y[~np.isnan(right)]) for y in (made, right))
            assert np.array_equal(one, other), x.function
        changed = not np.array_equal(made, arrays[0])
        assert changed or x.meaning in CHOOSING, x.function


def test_x86_here(tmp_path: Path) -> None:
    """Those that this machine has."""
    here = this_machine().extensions
    known = [x for x in x86.INSTRUCTIONS if x in RUNNABLE and here.issuperset(x.needs)]
    assert known
    require_alike(known, (), tmp_path)


def test_neon(tmp_path: Path) -> None:
    require_alike(OF_NEON, tuple(machine("aarch64").call()), tmp_path)


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_sve(bits: int, tmp_path: Path) -> None:
    emulator = tuple(machine(f"aarch64+sve:sve={bits}").call())
    require_alike(OF_SVE, emulator, tmp_path, bits // 128)


def test_a_wrong_meaning_is_seen(tmp_path: Path) -> None:
    def other(left: Array, right: Array) -> Any:
        del right
        return meanings.pair_products(left, left)

    wrong = replace(x86.PAIR_PRODUCTS[0], meaning=other)
    with pytest.raises(AssertionError, match="pmadd"):
        require_alike([wrong], (), tmp_path)
