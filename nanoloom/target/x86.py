"""x86-64 targets: the levels of the psABI, then named CPUs, oldest first.

Latency and ports: Intel's Optimization Reference Manual (248966), AMD's Software
Optimization Guides for family 19h (57647) and 1Ah (58455), uops.info for VFMADD231PS,
vector loads and stores.  Cache sizes are of server parts; the third level is for one
processor of middle size and matters little.
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.target.facts import Cache, MatrixUnit, Target, VectorUnit
from nanoloom.target.instruction_set import Emulator, Frame, InstructionSet

K, M = 1 << 10, 1 << 20

# What each generation adds, by LLVM's names and no more than vector code asks for.
V1 = frozenset[str]()
V2 = V1 | {"sse4.2"}
V3 = V2 | {"avx2", "fma", "f16c"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
VECTOR_BYTES = {"avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq", "gfni"}
CASCADE = V4 | {"avx512vnni"}
ICE = V4 | VECTOR_BYTES | {"avx512vnni", "avx512ifma"}
TILES = {"amx-tile", "amx-bf16", "amx-int8"}
SAPPHIRE = ICE | TILES | {"avx512bf16", "avx512fp16", "avxvnni"}
GRANITE = SAPPHIRE | {"amx-fp16", "prefetchi"}
ZEN4 = ICE | {"avx512bf16"}
ZEN5 = ZEN4 | {"avxvnni", "avx512vp2intersect", "prefetchi"}
ALDER = V3 | {"avxvnni", "gfni"}
SIERRA = ALDER | {"avxvnniint8", "avxneconvert", "avxifma"}
ARROW = SIERRA | {"avxvnniint16"}

ISA = InstructionSet(
    "x86_64",
    62,
    Frame(rb"\x48\x81\xec(?P<size>....)", r"\bsubq\s+\$(?P<size>\d+), %rsp", 1),
    Emulator("qemu-x86_64", "max"),
    register="v",
    adds=(SAPPHIRE | GRANITE | ZEN5 | ARROW | {"avx10.2"}) - {"sse4.2", "avx2"},
    fma="fma",
    result_apart="avx2",
    widens_f16=frozenset({"f16c"}),
    rounds_bf16=frozenset({"avx512bf16", "avxneconvert"}),
    keeps_nan=False,
    widens_loads=True,
)

# Multiply then add on one port each, 4 + 3 cycles (Nehalem): there is no FMA.
SSE = VectorUnit(
    128, 16, fma_latency=7, fma_per_cycle=1, load_per_cycle=1, store_per_cycle=1,
    alu_per_cycle=3,
)  # fmt: skip
# FMA: 5 cycles on Haswell, Broadwell and Zen 2, 4 on Skylake and Zen 3.
AVX2 = VectorUnit(
    256, 16, fma_latency=5, fma_per_cycle=2, load_per_cycle=2, store_per_cycle=1,
    alu_per_cycle=3,
)  # fmt: skip
AVX2_SKYLAKE = replace(AVX2, fma_latency=4)
# Two pipes multiply, two others add, as in LLVM's model of Zen 3.
AVX2_ZEN3 = replace(AVX2_SKYLAKE, alu_per_cycle=4)
# Golden Cove and Lion Cove without AVX-512: three loads and two stores of 256 bits.
COVE = replace(AVX2_SKYLAKE, load_per_cycle=3, store_per_cycle=2)
# Crestmont: every 256-bit operation takes both of its 128-bit pipes.
CRESTMONT = replace(
    AVX2, fma_latency=6, fma_per_cycle=1, load_per_cycle=1, alu_per_cycle=1.5
)
# Ports 0 and 5 (some Skylake Xeons have port 0 alone); k0 cannot mask, 7 of 8 do.
AVX512 = VectorUnit(
    512, 32, fma_latency=4, fma_per_cycle=2, load_per_cycle=2, store_per_cycle=1,
    mask_registers=8,
)  # fmt: skip
# Sapphire Rapids and Granite Rapids do bf16 in tiles: vdpbf16ps every other cycle, as
# nanoloom.target.peaks measures it; two multiply-adds a cycle are as many products.
AVX512_WITH_TILES = replace(AVX512, rates=(("vdpbf16ps", 0.5),))
# Two pipes multiply, two others add.  Latencies as measured on Zen 4.
AVX512_ZEN5 = replace(
    AVX512, alu_per_cycle=4, latencies=(("vdpbf16ps", 6), ("vpdpbusd", 4))
)
# Zen 4 has 256-bit pipes: a 512-bit operation takes two cycles of one.
AVX512_IN_HALVES = replace(
    AVX512_ZEN5, fma_per_cycle=1, load_per_cycle=1, store_per_cycle=0.5,
    alu_per_cycle=2, passes=2,
)  # fmt: skip


def _cpu(
    name: str,
    extensions: frozenset[str],
    vector: VectorUnit,
    caches: Cache,
    matrix: MatrixUnit | None = None,
    cpu: str = "",
) -> Target:
    # LLVM would rather not use zmm on Intel servers; here the schedule decides.  Nor,
    # on some, add while it multiplies: one such sum takes longer, many do not.
    features = "+fast-dpwssd" + ",-prefer-256-bit" * (vector.bits == 512)
    return Target(
        name=name,
        isa=ISA,
        triple="x86_64-unknown-linux-gnu",
        cpu=cpu or name,
        features=features,
        vector=vector,
        caches=caches,
        extensions=extensions,
        matrix=matrix,
    )


AMX = MatrixUnit()
TARGETS = (
    # The first level is LLVM's x86-64, which is here a file with several of them.
    _cpu("x86-64-v1", V1, SSE, Cache(32 * K, 256 * K, 8 * M), cpu="x86-64"),
    _cpu("x86-64-v2", V2, SSE, Cache(32 * K, 256 * K, 8 * M)),
    _cpu("x86-64-v3", V3, AVX2, Cache(32 * K, 256 * K, 8 * M)),
    _cpu("x86-64-v4", V4, AVX512, Cache(32 * K, 1 * M, 16 * M)),
    _cpu("haswell", V3, AVX2, Cache(32 * K, 256 * K, 30 * M)),
    _cpu("skylake", V3, AVX2_SKYLAKE, Cache(32 * K, 256 * K, 8 * M)),  # of desktops
    _cpu("skylake-avx512", V4, AVX512, Cache(32 * K, 1 * M, 33 * M)),
    _cpu("cascadelake", CASCADE, AVX512, Cache(32 * K, 1 * M, 38 * M)),
    _cpu("icelake-server", ICE, AVX512, Cache(48 * K, 1280 * K, 48 * M)),
    _cpu(
        "sapphirerapids", SAPPHIRE, AVX512_WITH_TILES, Cache(48 * K, 2 * M, 60 * M), AMX
    ),
    _cpu(
        "graniterapids", GRANITE, AVX512_WITH_TILES, Cache(48 * K, 2 * M, 288 * M), AMX
    ),
    _cpu("znver3", V3, AVX2_ZEN3, Cache(32 * K, 512 * K, 32 * M)),
    _cpu("znver4", ZEN4, AVX512_IN_HALVES, Cache(32 * K, 1 * M, 32 * M)),
    _cpu("znver5", ZEN5, AVX512_ZEN5, Cache(48 * K, 1 * M, 32 * M)),
    _cpu("alderlake", ALDER, COVE, Cache(48 * K, 1280 * K, 30 * M)),
    _cpu("arrowlake-s", ARROW, COVE, Cache(48 * K, 3 * M, 36 * M)),
    _cpu("sierraforest", SIERRA, CRESTMONT, Cache(32 * K, 4 * M, 108 * M)),
)
