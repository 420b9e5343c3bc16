"""PowerPC, little-endian: POWER8 and later, whose vectors (VSX) have 128 bits.

Latency and ports: LLVM's scheduling models of pwr8, pwr9 and pwr10 (a multiply-add of
vectors: 6 to 7 cycles; two a cycle, four on POWER10 as two whole pairs).
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.target.facts import Cache, Target, VectorUnit
from nanoloom.target.instruction_set import (
    HWCAP,
    HWCAP2,
    Emulator,
    Frame,
    InstructionSet,
)

K, M = 1 << 10, 1 << 20

POWER8 = frozenset({"altivec", "vsx", "power8-vector"})
POWER9 = POWER8 | {"power9-vector"}
POWER10 = POWER9 | {"power10-vector"}

ISA = InstructionSet(
    "powerpc64le",
    21,
    # A frame of 32 KiB or more has a register for its size, of which the upper half.
    Frame(
        rb"[\xfc-\xff](?:\x00\x3c|\x80\x3d)",  # lis r0 or r12, a negative number
        r"\blis (?:0|12), -(?P<size>\d+)(?:\n\s+.*){1,9}?\n\s+stdux 1, 1, ",
        1 << 16,
    ),
    Emulator("qemu-ppc64le", "power10"),
    register="^wa",
    adds=POWER10 - POWER8,
    hwcaps=(  # asm/cputable.h; of the vectors of a generation, its architecture
        ("altivec", HWCAP, 28),
        ("vsx", HWCAP, 7),
        ("power8-vector", HWCAP2, 31),
        ("power9-vector", HWCAP2, 23),
        ("power10-vector", HWCAP2, 18),
    ),
    keeps_nan=False,
    selects_bf16=False,
    half_registers=2,
)
# VSX has the 32 registers of floats and the 32 of AltiVec; integers have the latter.
VSX = VectorUnit(
    128, 64, fma_latency=6, fma_per_cycle=2, load_per_cycle=2, store_per_cycle=1
)
# POWER8 loads halves of a register in the other order, and LLVM holds one to swap them.
SWAPPING = replace(VSX, registers=63)
WIDER = replace(VSX, fma_latency=7, fma_per_cycle=4)


def _cpu(
    name: str, cpu: str, extensions: frozenset[str], vector: VectorUnit, caches: Cache
) -> Target:
    return Target(
        name=name,
        isa=ISA,
        triple="powerpc64le-unknown-linux-gnu",
        cpu=cpu,
        features="",
        vector=vector,
        caches=caches,
        extensions=extensions,
    )


TARGETS = (
    _cpu("powerpc64le", "pwr8", POWER8, SWAPPING, Cache(64 * K, 512 * K, 8 * M)),
    _cpu("power9", "pwr9", POWER9, VSX, Cache(32 * K, 512 * K, 10 * M)),
    _cpu("power10", "pwr10", POWER10, WIDER, Cache(32 * K, 2 * M, 8 * M)),
)
