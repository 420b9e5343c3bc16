"""The loops whose speed is a CPU's peak, as LLVM IR: arithmetic, reading, flushing.

An arithmetic loop holds sums and operands in registers and touches no memory; there are
as many independent sums as hide the latency twice over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import DOTS
from nanoloom.target.instructions.instruction import BITS, Instruction
from nanoloom.target.instructions.x86 import TILE_PRODUCTS

SCRATCH_BYTES = 1 << 16  # 32 scalable registers of 2048 bytes, or one AMX tile


@dataclass(frozen=True)
class Arithmetic:
    """One instruction: `call` makes {r} from the sum {c} and the operands %a and %b."""

    name: str
    sums: str  # LLVM types
    operands: str
    call: str
    operations: int  # of one instruction; of a scalable register, per vscale
    declare: str = ""

    @property
    def scalable(self) -> bool:
        """Whether the operations are to be multiplied by vscale."""
        return "vscale" in self.sums

    def instructions(self, sums: int) -> int:
        """How many of the instruction a turn of the loop has."""
        return sums

    def text(self, sums: int) -> str:
        """The function, with so many independent sums."""
        # The sums start from memory: were they constants, LLVM would find them equal.
        t, each = self.sums, range(sums)
        slots = [f"%p{k} = getelementptr {t}, ptr %io, i64 {k}" for k in each]
        begin = [f"%s{k} = load {t}, ptr %p{k}, align 1" for k in each]
        phis = [f"%c{k} = phi {t} [ %s{k}, %entry ], [ %r{k}, %loop ]" for k in each]
        body = [self.call.format(r=f"%r{k}", c=f"%c{k}") for k in each]
        end = [f"store {t} %r{k}, ptr %p{k}, align 1" for k in each]
        operands = [
            f"%q = getelementptr {self.operands}, ptr %io, i64 1",
            f"%a = load {self.operands}, ptr %io, align 1",
            f"%b = load {self.operands}, ptr %q, align 1",
        ]
        before = slots + begin + operands
        return self.declare + _counted(self.name, before, phis, body, end)


@dataclass(frozen=True)
class Tiles:
    """One AMX instruction on four tiles of sums, two tiles of A and two of B."""

    name: str
    instruction: Instruction
    scalable: bool = False

    @property
    def operations(self) -> int:
        """16 rows by 16 columns by a depth of 32 bf16 or 64 bytes: multiply and add."""
        return 2 * prod(self.instruction.shape)

    def instructions(self, sums: int) -> int:
        """Four: a tile of sums for each pair of a tile of A and one of B."""
        del sums
        return 4

    def text(self, sums: int) -> str:
        """The function; its four sums are what the unit has room for."""
        del sums
        intrinsic = self.instruction.function.removesuffix(".internal")
        config = [
            "%config = alloca [64 x i8], align 64",
            f'store [64 x i8] c"{_TILE_CONFIG}", ptr %config',
            "call void @llvm.x86.ldtilecfg(ptr %config)",
        ]
        zeros = [f"call void @llvm.x86.tilezero(i8 {tile})" for tile in range(4)]
        loads = [
            f"call void @llvm.x86.tileloadd64(i8 {tile}, ptr %io, i64 64)"
            for tile in range(4, 8)
        ]
        body = [
            f"call void @{intrinsic}(i8 {2 * a + b}, i8 {4 + a}, i8 {6 + b})"
            for a, b in ((0, 0), (0, 1), (1, 0), (1, 1))
        ]
        end = ["call void @llvm.x86.tilerelease()"]
        return _counted(self.name, config + zeros + loads, [], body, end)


# Palette 1, then 8 x 64 bytes a row (16 bits each) and 8 x 16 rows (8 bits each).
_TILE_CONFIG = (
    r"\01" + r"\00" * 15 + r"\40\00" * 8 + r"\00" * 16 + r"\10" * 8 + r"\00" * 8
)
# Of operands of these types the first instruction that the target has is measured.
_WANTED = {("bf16", "bf16"): "bf16", ("u8", "s8"): "u8s8", ("s8", "s8"): "s8s8"}
_LLVM = {"f32": "float", "bf16": "bfloat"}


def _dot(name: str, x: Instruction) -> Arithmetic:
    """What adds products of pairs or fours of operands to each sum."""

    def register(types: str) -> str:
        element, _, count = types.partition("*")
        return f"<{count} x {_LLVM.get(element, f'i{BITS[element]}')}>"

    sums, operands = (register(types) for types in x.operands[:2])
    function = x.intrinsic or x.function
    call = f"call {sums} @{function}({sums} {{c}}, {operands} %a, {operands} %b)"
    declare = f"declare {sums} @{function}({sums}, {operands}, {operands})\n"
    operations = 2 * x.bits // BITS[x.right]
    return Arithmetic(name, sums, operands, f"{{r}} = {call}", operations, declare)


def loops_of(target: Target) -> list[Arithmetic | Tiles]:
    """What is measured on this target, f32 and f64 first."""
    found: dict[str, Arithmetic | Tiles] = {
        "f32": _fma("f32", target, "float", 32),
        "f64": _fma("f64", target, "double", 64),
    }
    for x in (*DOTS, *TILE_PRODUCTS):
        name, tile = _WANTED.get((x.left, x.right), ""), x in TILE_PRODUCTS
        if name and x.is_of(target):
            loop = Tiles(f"{name}-amx", x) if tile else _dot(name, x)
            found.setdefault(loop.name, loop)
    return list(found.values())


def sums_of(target: Target) -> int:
    """Independent sums in an arithmetic loop: twice what hides the latency, if they
    fit beside the operands."""
    return min(target.vector.registers - 4, 2 * target.vector.accumulators)


def symbol(name: str) -> str:
    """The function that measures `name`."""
    return "loop_" + name.replace("-", "_")


def module_text(target: Target) -> str:
    """One LLVM module: `loop_NAME(i64 turns, ptr scratch)` for each of `loops_of`,
    `read(ptr, i64 bytes, i64 turns, ptr scratch)`, `flush(ptr, i64 bytes)` and
    `vscale() -> i64`."""
    loops = [loop.text(sums_of(target)) for loop in loops_of(target)]
    return "\n".join([_vscale(target), _read(target), _flush(target), *loops])


def _fma(name: str, target: Target, element: str, bits: int) -> Arithmetic:
    vector = _register(target, element, bits)
    operations = 2 * target.lanes(bits)
    if not target.fuses:
        call = f"{{r}}.p = fmul {vector} {{c}}, %a\n  {{r}} = fadd {vector} {{r}}.p, %b"
        return Arithmetic(name, vector, vector, call, operations)
    shape = f"{'nxv' if target.vector.scalable else 'v'}{target.lanes(bits)}f{bits}"
    function = f"@llvm.fma.{shape}"
    call = f"{{r}} = call {vector} {function}({vector} %a, {vector} %b, {vector} {{c}})"
    declare = f"declare {vector} {function}({vector}, {vector}, {vector})\n"
    return Arithmetic(name, vector, vector, call, operations, declare)


def _register(target: Target, element: str, bits: int) -> str:
    """One register of these elements: <16 x float>, <vscale x 4 x float>."""
    vscale = "vscale x " if target.vector.scalable else ""
    return f"<{vscale}{target.lanes(bits)} x {element}>"


def _lines(lines: Sequence[str]) -> str:
    return "\n  ".join(lines)


def _counted(
    name: str,
    before: Sequence[str],
    phis: Sequence[str],
    body: Sequence[str],
    after: Sequence[str],
) -> str:
    """A function of turns and scratch that runs `body` `turns` times."""
    return f"""define void @{symbol(name)}(i64 %turns, ptr %io) {{
entry:
  {_lines(before)}
  br label %loop
loop:
  %turn = phi i64 [ 0, %entry ], [ %next, %loop ]
  {_lines([*phis, *body])}
  %next = add i64 %turn, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %loop, label %exit
exit:
  {_lines(after)}
  ret void
}}
"""


def _vscale(target: Target) -> str:
    if not target.vector.scalable:
        return "define i64 @vscale() {\n  ret i64 1\n}\n"
    return """define i64 @vscale() {
  %n = call i64 @llvm.vscale.i64()
  ret i64 %n
}
"""


_UNROLL = 8  # vectors of one turn of `read`, so that its buffer is a multiple of 8


def _read(target: Target) -> str:
    """Loads [p, p + bytes) `turns` times, the registers or-ed together."""
    vector = _register(target, "i32", 32)
    each = range(_UNROLL)
    # The sums go on from turn to turn: stores after each are dear in a first level.
    outer = [f"%o{k} = phi {vector} [ %z, %entry ], [ %r{k}, %done ]" for k in each]
    inner = [f"%c{k} = phi {vector} [ %o{k}, %again ], [ %r{k}, %loop ]" for k in each]
    loads = [
        f"%p{k} = getelementptr {vector}, ptr %at, i64 {k}\n"
        f"  %v{k} = load {vector}, ptr %p{k}, align 1\n"
        f"  %r{k} = or {vector} %c{k}, %v{k}"
        for k in each
    ]
    return f"""define void @read(ptr %p, i64 %bytes, i64 %turns, ptr %io) {{
entry:
  %z = load {vector}, ptr %io, align 1
  %vscale = call i64 @vscale()
  %step = mul i64 %vscale, {_UNROLL * target.vector.bits // 8}
  br label %again
again:
  %turn = phi i64 [ 0, %entry ], [ %next, %done ]
  {_lines(outer)}
  br label %loop
loop:
  %i = phi i64 [ 0, %again ], [ %i.next, %loop ]
  {_lines(inner)}
  %at = getelementptr i8, ptr %p, i64 %i
  {_lines(loads)}
  %i.next = add i64 %i, %step
  %i.more = icmp ult i64 %i.next, %bytes
  br i1 %i.more, label %loop, label %done
done:
  %next = add i64 %turn, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %again, label %exit
exit:
  {_lines([f"store volatile {vector} %r{k}, ptr %io, align 1" for k in each])}
  ret void
}}
"""


def _flush(target: Target) -> str:
    """Puts [p, p + bytes) out of every cache, line by line; x86 only.

    Nothing else gets a buffer of reasonable size out of a third level of 480 MB.
    Elsewhere no LLVM intrinsic does it, and `flush` does nothing.
    """
    new = "+clflushopt" in target.features.split(",")  # clflush waits for each line
    intrinsic = "@llvm.x86.clflushopt" if new else "@llvm.x86.sse2.clflush"
    x86 = target.arch == "x86_64"
    return f"""define void @flush(ptr %p, i64 %bytes) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr i8, ptr %p, i64 %i
  {f"call void {intrinsic}(ptr %at)" if x86 else ""}
  %next = add i64 %i, 64
  %more = icmp ult i64 %next, %bytes
  br i1 %more, label %loop, label %exit
exit:
  fence seq_cst
  ret void
}}
"""
