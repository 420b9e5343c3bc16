"""Instructions of x86-64: of several that fit, the first is taken, wide ones first.

Sources: Intel's manual of instructions (253666 and the following), and its Instruction
Set Extensions Reference (319433) for AMX, AVX10.2, AVX-NE-CONVERT and AVX-VNNI-INT8.
"""

from __future__ import annotations

from nanoloom.target.instructions import meanings
from nanoloom.target.instructions.instruction import (
    BITS,
    OTHER,
    SECOND,
    Extreme,
    Instruction,
    instruction,
    sums_of_products,
)

X86 = "llvm.x86."
WIDTHS = {128: "sse4.2", 256: "avx2", 512: "avx512f"}
# Of products of bytes, added to a sum: LLVM's models of Ice Lake and Sapphire Rapids.
BYTES_LATENCY = 5


def _dot(
    name: str, needs: str, types: str, bits: int, function: str, intrinsic: str = ""
) -> Instruction:
    latency = BYTES_LATENCY if types.endswith("s32") else 0
    return sums_of_products(
        name, needs, types, bits, function, meanings.dot, intrinsic=intrinsic,
        latency=latency,
    )  # fmt: skip


DOTS = (
    _dot("vdpbf16ps", "avx512bf16", "bf16 bf16 f32", 512, "x86.avx512.dot",
         f"{X86}avx512bf16.dpbf16ps.512"),
    _dot("vdpphps", "avx10.2", "f16 f16 f32", 512, f"{X86}avx10.vdpphps.512"),
    _dot("vpdpbusd", "avx512vnni", "u8 s8 s32", 512, f"{X86}avx512.vpdpbusd.512"),
    _dot("vpdpbssd", "avxvnniint8", "s8 s8 s32", 256, "x86.avx.dot.i8",
         f"{X86}avx2.vpdpbssd.256"),
    _dot("vpdpbsud", "avxvnniint8", "s8 u8 s32", 256, f"{X86}avx2.vpdpbsud.256"),
    _dot("vpdpbuud", "avxvnniint8", "u8 u8 s32", 256, f"{X86}avx2.vpdpbuud.256"),
    _dot("vpdpbusd", "avxvnni", "u8 s8 s32", 256, f"{X86}avx512.vpdpbusd.256"),
)  # fmt: skip
# Two neighbouring products of 16 bits, added; by bits of a register.
PAIR_PRODUCTS = tuple(
    sums_of_products("pmaddwd", needs, "s16 s16 s32", bits, X86 + function,
                     meanings.pair_products, accumulates=False)
    for bits, needs, function in (
        (128, "sse4.2", "sse2.pmadd.wd"),
        (256, "avx2", "avx2.pmadd.wd"),
        (512, "avx512bw", "avx512.pmaddw.d.512"),
    )
)  # fmt: skip

# ---- tile registers of 16 x 16 sums: 16 rows of 64 bytes

BROADCAST_BITS = 512  # of a vector that is multiplied by a number in memory, alike
TILE_BYTES = 64
TILE_CYCLES = 16  # of a product: uops.info, Sapphire Rapids


def _tile_product(name: str, needs: str, types: str) -> Instruction:
    left, right, sums = types.split()
    return Instruction(
        name,
        (needs,),
        f"{X86}{name}.internal",
        meanings.tile,
        "tile",
        ("i16", "i16", "i16", "tile", "tile", "tile"),
        left=left,
        right=right,
        sums=sums,
        shape=(16, 16, TILE_BYTES * 8 // BITS[left]),
        swaps=False,
        per_cycle=1 / TILE_CYCLES,
    )


TILE_PRODUCTS = (
    _tile_product("tdpbf16ps", "amx-bf16", "bf16 bf16 f32"),
    _tile_product("tdpbssd", "amx-int8", "s8 s8 s32"),
    _tile_product("tdpbsud", "amx-int8", "s8 u8 s32"),
    _tile_product("tdpbusd", "amx-int8", "u8 s8 s32"),
    _tile_product("tdpbuud", "amx-int8", "u8 u8 s32"),
)
TILE_MOVES = tuple(
    instruction(
        name.partition(".")[0].removesuffix("64"), "amx-tile", X86 + name, types, None
    )
    for name, types in (
        ("tilezero.internal", "tile <- i16 i16"),
        ("tileloadd64.internal", "tile <- i16 i16 ptr i64"),
        ("tilestored64.internal", "<- i16 i16 ptr i64 tile"),
    )
)

# ---- loads that convert, bytes, bits

EVEN, ODD, ONE = CONVERTING_LOADS = tuple(
    Instruction(
        name, ("avxneconvert",), f"x86.avx.{function}", meaning, "f32*8",
        (f"bf16*{count}&",), 256, intrinsic=f"{X86}{name}256",
    )
    for name, function, count, meaning in (
        ("vcvtneebf162ps", "cvt.packed.even.indexed_to_f32", 16, meanings.even_numbers),
        ("vcvtneobf162ps", "cvt.packed.odd.indexed_to_f32", 16, meanings.odd_numbers),
        ("vbcstnebf162ps", "bcst_to_f32.packed", 1, meanings.one_number),
    )
)  # fmt: skip
SHUFFLES = tuple(  # of bytes, in each 16 of them
    instruction("pshufb", needs, X86 + function,
                f"s8*{bits // 8} <- s8*{bits // 8} s8*{bits // 8}",
                meanings.shuffle, bits)
    for bits, needs, function in (
        (128, "sse4.2", "ssse3.pshuf.b.128"),
        (256, "avx2", "avx2.pshuf.b"),
        (512, "avx512bw", "avx512.pshuf.b.512"),
    )
)  # fmt: skip
TERNARY = tuple(
    instruction("vpternlogd", needs, f"{X86}avx512.pternlog.d.{bits}",
                f"s32*{bits // 32} <-" + f" s32*{bits // 32}" * 3 + " i32",
                meanings.ternary, bits)
    for bits, needs in (
        (128, "avx512f avx512vl"), (256, "avx512f avx512vl"), (512, "avx512f"),
    )
)  # fmt: skip
# LLVM selects it of a general operation, which MLIR's math dialect has.
POPCOUNTS = (
    instruction(
        "vpopcntd",
        "avx512vpopcntdq",
        "llvm.ctpop.v16i32",
        "s32*16 <- s32*16",
        meanings.popcount,
        512,
    ),
)

# ---- the larger and the smaller


def _extreme(name: str, kind: str, bits: int) -> Instruction:
    letter, lanes = {"f32": "s", "f64": "d"}[kind], bits // BITS[kind]
    family = {128: "sse2" if kind == "f64" else "sse", 256: "avx", 512: "avx512"}[bits]
    width = "" if bits == 128 else f".{bits}"
    rounding = " i32" if bits == 512 else ""
    return instruction(
        f"{name}p{letter}",
        "" if bits == min(WIDTHS) else WIDTHS[bits],
        f"{X86}{family}.{name}.p{letter}{width}",
        f"{kind}*{lanes} <- {kind}*{lanes} {kind}*{lanes}{rounding}",
        meanings.larger if name == "max" else meanings.smaller,
        bits,
    )


def _range(kind: str, bits: int) -> Instruction:
    letter, lanes = {"f32": "s", "f64": "d"}[kind], bits // BITS[kind]
    one, rounding = f"{kind}*{lanes}", " i32" if bits == 512 else ""
    return instruction(
        f"vrangep{letter}",
        "avx512dq avx512vl",
        f"{X86}avx512.mask.range.p{letter}.{bits}",
        f"{one} <- {one} {one} i32 {one} i{max(lanes, 8)}{rounding}",
        meanings.ranged,
        bits,
    )


# Intel's manual, VRANGEPS: which number, its sign as it is; of all lanes.
RANGE_CHOICE = {"max": 0b0101, "min": 0b0100}
AS_SET, ALL = 4, -1  # the rounding; a mask
_KINDS = tuple((kind, bits) for kind in ("f32", "f64") for bits in WIDTHS)
_RANGES = {(kind, bits): _range(kind, bits) for kind, bits in _KINDS}
# LLVM finds the first, but not behind a store under a mask that is known: it says of a
# constant that nobody asks for some lanes of it, and no longer sees the same one
# compared and chosen.  Beside a constant it knows better ways than the second.
EXTREMES = (
    *(
        Extreme(word, kind, _extreme(word, kind, bits), SECOND,
                (AS_SET,) if bits == max(WIDTHS) else (), beside=True)
        for word in RANGE_CHOICE for kind, bits in _KINDS
    ),
    *(
        Extreme(word, kind, _RANGES[kind, bits], OTHER, (choice, ALL, AS_SET),
                beside=False)
        for word, choice in RANGE_CHOICE.items() for kind, bits in _KINDS
    ),
)  # fmt: skip

# A number times a power of two, of all lanes; its exponent is rounded down.
SCALES = tuple(
    instruction(
        "vscalefps",
        "avx512f" if bits == max(WIDTHS) else "avx512vl",
        f"{X86}avx512.mask.scalef.ps.{bits}",
        f"f32*{lanes} <- f32*{lanes} f32*{lanes} f32*{lanes} i{max(lanes, 8)}"
        + (" i32" if bits == max(WIDTHS) else ""),
        meanings.scaled,
        bits,
        words=(ALL, AS_SET) if bits == max(WIDTHS) else (ALL,),
    )
    for bits in WIDTHS
    for lanes in (bits // BITS["f32"],)
)

INSTRUCTIONS = (
    *DOTS,
    *PAIR_PRODUCTS,
    *TILE_PRODUCTS,
    *TILE_MOVES,
    *CONVERTING_LOADS,
    *SHUFFLES,
    *TERNARY,
    *POPCOUNTS,
    *dict.fromkeys(x.instruction for x in EXTREMES),
    *SCALES,
)
