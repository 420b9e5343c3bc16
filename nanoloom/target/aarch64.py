"""AArch64 targets: NEON on every core, SVE at a known and at an unknown length, SME.

Latency and ports: Arm's Software Optimization Guides, for Neoverse V1 (109897) and V2
(109898) as for the others, and LLVM's scheduling models, which agree with them where a
comment says nothing else; Apple's from Dougall Johnson's measurements.  A dependent
FMLA that only waits for its sum is forwarded after 2 of the 4 cycles on Arm's cores; 4
is always enough.
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.target.facts import Cache, MatrixUnit, Target, VectorUnit
from nanoloom.target.instruction_set import (
    HWCAP,
    HWCAP2,
    Emulator,
    Frame,
    InstructionSet,
    Streaming,
)

K, M = 1 << 10, 1 << 20

NEON = frozenset({"neon"})
V8_2 = NEON | {"dotprod", "fullfp16"}  # with the products of bytes, v8.4's
APPLE = V8_2 | {"fp16fml"}
V1 = APPLE | {"sve", "bf16", "i8mm"}
V2 = V1 | {"sve2"}
ARMV9 = V8_2 | {"sve", "sve2"}  # bf16 and i8mm come with v9.1

# Of frames only whole pages are read, and no spilled vectors of unknown length.
ISA = InstructionSet(
    "aarch64",
    183,
    Frame(
        rb"[\xe0-\xff][\x03-\xff][\x40-\x7f]\xd1",  # sub any, sp, pages
        r"\bsub\s+(?:sp|x\d+), sp, #(?P<size>\d+), lsl #12",
        4096,
    ),
    Emulator(
        "qemu-aarch64",
        "max",
        "max,sve-default-vector-length={bytes}",
        "sve",
        (128, 256, 512, 1024, 2048),
        "sve",
        Streaming("sme", ",sme-default-vector-length={bytes}"),
    ),
    register="w",
    adds=frozenset({"dotprod", "fullfp16", "fp16fml", "bf16", "i8mm", "f32mm"}),
    hwcaps=(  # asm/hwcap.h
        ("neon", HWCAP, 1),
        ("fullfp16", HWCAP, 10),
        ("dotprod", HWCAP, 20),
        ("sve", HWCAP, 22),
        ("fp16fml", HWCAP, 23),
        ("sve2", HWCAP2, 1),
        ("f32mm", HWCAP2, 10),
        ("i8mm", HWCAP2, 13),
        ("sve2p1", HWCAP2, 36),
        ("bf16", HWCAP2, 14),
        ("sme", HWCAP2, 23),
    ),
    widens_f16=NEON,
    rounds_bf16=frozenset({"bf16"}),
    strided_loads=True,
    exchanges_lanes=True,
    half_registers=2,
    lane_factors=128,
)

# Two pipes of 64 bits, of which an operation takes both: in order and with a load of 64
# bits a cycle in Cortex-A55; in Cortex-A72 7 cycles, which nobody has looked up, where
# LLVM has the 10 of Cortex-A57, whose model it takes.
PAIR_A72 = VectorUnit(
    128, 32, fma_latency=7, fma_per_cycle=1, load_per_cycle=1, store_per_cycle=1
)
PAIR_A55 = replace(PAIR_A72, fma_latency=4, load_per_cycle=0.5, in_order=True)
# Two 128-bit pipes as in Cortex-A76 and Neoverse N1.
TWO_PIPES = VectorUnit(
    128, 32, fma_latency=4, fma_per_cycle=2, load_per_cycle=2, store_per_cycle=1
)
# Firestorm: four pipes, three loads and two stores.
FOUR_PIPES = VectorUnit(
    128, 32, fma_latency=4, fma_per_cycle=4, load_per_cycle=3, store_per_cycle=2
)
# Two 256-bit SVE pipes; predicates p0 to p7 of the 16 govern arithmetic.
SVE_256 = replace(
    TWO_PIPES, scalable=True, mask_registers=16, vscale_min=2, vscale_max=2
)
SVE_128 = replace(FOUR_PIPES, scalable=True, mask_registers=16)
# Half of the pipes: Neoverse N2.
SVE_128_TWO_PIPES = replace(SVE_128, fma_per_cycle=2)
# Any SVE2 machine, 128 to 2048 bits; pipes as in Cortex-A710 (Arm's guide, 2 x 128).
SVE_ANY = replace(SVE_256, vscale_min=1, vscale_max=16)
# Outer products of f32: four tiles as wide and as high as a vector of SME's own length.
SME = MatrixUnit("sme", tiles=4, rows=4, row_bytes=16, scalable=True)


def _cpu(
    name: str,
    extensions: frozenset[str],
    vector: VectorUnit,
    caches: Cache,
    features: str = "",
    cpu: str = "",
) -> Target:
    return Target(
        name=name,
        isa=ISA,
        triple="aarch64-unknown-linux-gnu",
        cpu=cpu or name,
        features=features,
        vector=vector,
        caches=caches,
        extensions=extensions,
    )


# LLVM would load a number and copy it to all lanes, which takes the pipes of
# multiply-adds; LD1RW is a load alone (Arm's guide).
BROADCASTS = "-no-sve-fp-ld1r"
_SMALL = Cache(64 * K, 512 * K)
ANY = "generic"
TARGETS = (
    _cpu("aarch64", NEON, TWO_PIPES, _SMALL, "+neon", ANY),
    _cpu("armv9-sve2", ARMV9, SVE_ANY, _SMALL, "+v9a,+sve2,+fullfp16", ANY),
    # Of cores that are alike the first is what an unknown one is taken for.
    _cpu("cortex-a76", V8_2, TWO_PIPES, Cache(64 * K, 512 * K, 4 * M)),
    _cpu("neoverse-n1", V8_2, TWO_PIPES, Cache(64 * K, 1 * M, 32 * M)),
    _cpu("neoverse-v1", V1, SVE_256, Cache(64 * K, 1 * M, 32 * M), BROADCASTS),
    _cpu("neoverse-v2", V2, SVE_128, Cache(64 * K, 1 * M, 114 * M)),
    _cpu("neoverse-n2", V2, SVE_128_TWO_PIPES, Cache(64 * K, 1 * M, 64 * M)),
    _cpu("cortex-x2", V2, SVE_128, Cache(64 * K, 1 * M, 8 * M)),
    _cpu("cortex-a72", NEON, PAIR_A72, Cache(32 * K, 1 * M)),
    _cpu("cortex-a55", V8_2, PAIR_A55, Cache(32 * K, 128 * K, 1 * M)),
    _cpu("apple-m1", APPLE, FOUR_PIPES, Cache(128 * K, 12 * M)),
)
