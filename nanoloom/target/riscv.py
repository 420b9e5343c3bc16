"""RISC-V targets: rv64gcv with a promised vector length, the code running at any above,
cores with what they are known for, and one without vectors.

RVV 1.0: LLVM's vscale is VLEN / 64.  An application profile (RVA23) promises 128 bits.
Latency: SiFive P600 and SpacemiT X60 in LLVM's scheduling models (6 cycles a vfmacc);
one vector pipe and one memory pipe, in order, as most cores of today.
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.target.facts import Cache, Target, VectorUnit
from nanoloom.target.instruction_set import HWCAP, Emulator, Frame, InstructionSet

K, M = 1 << 10, 1 << 20
LONGEST = 65536  # bits, the limit of the specification

# Of frames only whole pages are read, and no spilled vectors.
ISA = InstructionSet(
    "riscv64",
    243,
    Frame(
        rb"\x33\x01[\x01-\xf1][\x40\x41]",  # sub sp, sp, any register
        r"\blui\s+(?P<by>\w+), (?P<size>\d+)(?:\s+addiw?\s+.*)?"
        r"\s+sub\s+sp, sp, (?P=by)\b",
        4096,
    ),
    Emulator(
        "qemu-riscv64",
        "rv64",
        "rv64,v=true,vlen={bits},elen=64,vext_spec=v1.0",
        "vlen",
        (128, 256, 512, 1024),
        "v",
        asked=("zvfh", "zvfhmin", "zvfbfmin", "zvfbfwma"),
    ),
    register="^vr",
    whole_registers=True,
    adds=frozenset({"zba", "zbb", "zbs", "zvfh", "zvfhmin", "zvfbfmin", "zvfbfwma"}),
    hwcaps=tuple((x, HWCAP, ord(x) - ord("a")) for x in "fdcv"),  # of one letter
    vectors="v",
    widens_f16=frozenset({"zvfh", "zvfhmin"}),
    rounds_bf16=frozenset({"zvfbfwma"}),
    scalar_factors=True,
    strided_loads=True,
    asks_length=True,
)


# One vector pipe and one for memory.
RVV = VectorUnit(
    64,
    32,
    scalable=True,
    fma_latency=6,
    fma_per_cycle=1,
    load_per_cycle=1,
    store_per_cycle=1,
    mask_registers=1,  # v0 alone can mask
    grouped=8,
    in_order=True,
    vscale_max=LONGEST // 64,
)
# LLVM's models of SiFive 7, P600 and SpacemiT X60, for one register of f32.  That of
# X280 is two turns of its pipes of 256 bits, and so is a load of X60.
X280 = replace(
    RVV, fma_latency=8, fma_per_cycle=0.5, load_per_cycle=0.5, store_per_cycle=0.5
)
P670 = replace(RVV, fma_per_cycle=2, in_order=False)
X60 = replace(RVV, fma_latency=5, load_per_cycle=0.5, store_per_cycle=0.5)
_USUAL = Cache(32 * K, 512 * K, 2 * M)  # what SiFive's have a customer chooses


def of_length(name: str, vlen: int) -> Target:
    """rv64gcv whose vector registers have at least `vlen` bits."""
    promised = [f"zvl{n}b" for n in (128, 256, 512, 1024) if n <= vlen]
    return Target(
        name=name,
        isa=ISA,
        triple="riscv64-unknown-linux-gnu",
        cpu="generic-rv64",
        features=f"+m,+a,+f,+d,+c,+v,+zvl{vlen}b",
        vector=replace(RVV, vscale_min=vlen // 64),
        caches=_USUAL,
        extensions=frozenset({"v", *promised}),
        abi="lp64d",
        code_model="medium",  # medlow reaches only 2 GB about address 0
    )


def _core(
    name: str, vlen: int, unit: VectorUnit, more: set[str], caches: Cache = _USUAL
) -> Target:
    """A core by LLVM's name, which brings its features."""
    plain = of_length(name, vlen)
    return replace(
        plain,
        cpu=name,
        features="",
        vector=replace(unit, vscale_min=vlen // 64),
        caches=caches,
        extensions=plain.extensions | more,
    )


BITS = {"zba", "zbb"}
HALVES = {"zvfh", "zvfhmin"}
CORES = (
    _core("sifive-x280", 512, X280, BITS | HALVES),
    _core("sifive-p670", 128, P670, BITS | {"zbs"}),
    # Its second level is one for four cores (the data sheet of SpacemiT K1).
    _core("spacemit-x60", 256, X60, BITS | HALVES | {"zbs"}, Cache(32 * K, 512 * K)),
)
# No vectors: a register of two floats is two of the 32 that hold one each.  Latency and
# the single port: SiFive U74 in LLVM's scheduling model.
SCALAR = Target(
    name="riscv64",
    isa=ISA,
    triple="riscv64-unknown-linux-gnu",
    cpu="generic-rv64",
    features="+m,+a,+f,+d,+c",
    vector=VectorUnit(
        64,
        16,
        fma_latency=5,
        fma_per_cycle=0.5,
        load_per_cycle=0.5,
        store_per_cycle=0.5,
    ),
    caches=_USUAL,
    extensions=frozenset(),
    abi="lp64d",
    code_model="medium",
)
TARGETS = (
    SCALAR,
    of_length("rv64gcv", 128),
    of_length("rv64gcv-zvl256b", 256),
    of_length("rv64gcv-zvl512b", 512),
    *CORES,
)
