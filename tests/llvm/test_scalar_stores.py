"""A masked store of one lane writes one number: no byte beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np
import pytest

from nanoloom.binary.objects import CodeOptions, emit, emit_assembly
from nanoloom.llvm.scalar_stores import scalar_stores
from nanoloom.target import Target, by_name
from nanoloom.workers.compile_kernel import machine_of as machine
from tests.filecheck import check_text
from tests.native_code import call
from tests.vector.kernel_harness import load_objects, targets

Array = np.ndarray
V4 = by_name("x86-64-v4")
BITS = {"float": 32, "double": 64, "half": 16}
PAIRS = [("i16", "i8"), ("i32", "i8"), ("i32", "i16"), ("i64", "i8"), ("i64", "i16"),
         ("i64", "i32"), ("i8", "i8"), ("i16", "i16"), ("i32", "i32"), ("i64", "i64"),
         ("float", "i8"), ("float", "i16"), ("double", "i32"), ("double", "float"),
         ("half", "half")]  # fmt: skip
BESIDE = 64  # bytes


@dataclass(frozen=True)
class Case:
    """A function that shortens numbers and stores some lanes of them."""

    wide: str
    narrow: str
    mask: tuple[bool, ...]

    @property
    def lanes(self) -> int:
        return len(self.mask)

    @property
    def name(self) -> str:
        lanes = "".join("01"[bit] for bit in self.mask)
        return f"{self.wide}_to_{self.narrow}_{lanes}"

    @property
    def size(self) -> int:
        """Of an element in memory, in bytes."""
        return bits_of(self.narrow) // 8

    def text(self) -> str:
        """void NAME(from, to) for the lanes of the mask, NAME_whole for all.

        In one function the short numbers would have two uses, and stay as they are.
        """
        wide, narrow = (f"<{self.lanes} x {t}>" for t in (self.wide, self.narrow))
        word = shortening(self.wide, self.narrow)
        made = f"{word} {wide} %x to {narrow}" if word else f"freeze {narrow} %x"
        mask = ", ".join(f"i1 {str(bit).lower()}" for bit in self.mask)
        begin = f"  %x = load {wide}, ptr %from, align 1\n  %y = {made}"
        return f"""
define void @{self.name}_whole(ptr %from, ptr %to) {{
{begin}
  store {narrow} %y, ptr %to, align 1
  ret void
}}
define void @{self.name}(ptr %from, ptr %to) {{
{begin}
  call void @{store_of(self.lanes, self.narrow)}({narrow} %y, ptr align 1 %to,
    <{self.lanes} x i1> <{mask}>)
  ret void
}}"""


def bits_of(element: str) -> int:
    return BITS.get(element) or int(element[1:])


def shortening(wide: str, narrow: str) -> str:
    """LLVM's word for it; none for the same type."""
    if wide == narrow:
        return ""
    if wide in BITS:
        return "fptrunc" if narrow in BITS else "fptosi"
    return "trunc"


def store_of(lanes: int, element: str) -> str:
    kind = element if element[0] == "i" else f"f{bits_of(element)}"
    return f"llvm.masked.store.v{lanes}{kind}.p0"


def declared(lanes: int, element: str) -> str:
    kinds = f"<{lanes} x {element}>, ptr, <{lanes} x i1>"
    return f"declare void @{store_of(lanes, element)}({kinds})"


def masks(lanes: int) -> Iterator[tuple[bool, ...]]:
    """One lane anywhere, and first ones that leave one for a half or a quarter."""
    for one in {0, 1, lanes // 2, lanes - 1}:
        yield tuple(n == one for n in range(lanes))
    for count in {2, lanes // 4 + 1, lanes // 2 + 1, lanes - 1}:
        yield tuple(n < count for n in range(lanes))


def cases() -> list[Case]:
    made = [
        Case(wide, narrow, mask)
        for wide, narrow in PAIRS
        for lanes in (1, 2, 4, 8, 16, 32, 64)
        if lanes * bits_of(wide) <= 2048
        for mask in masks(lanes)
    ]
    return list(dict.fromkeys(made))


def right(case: Case, call: Callable[[str, Array, int], None]) -> bool:
    """Whether the function writes the lanes of the mask and nothing else."""
    source = np.arange(1, 1 + case.lanes * bits_of(case.wide) // 8, dtype=np.uint8)
    if case.wide in BITS:
        values = np.linspace(1, 100, case.lanes)
        source = values.astype(f"f{bits_of(case.wide) // 8}").view(np.uint8)
    whole = np.zeros(case.lanes * case.size, np.uint8)
    call(f"{case.name}_whole", source, whole.ctypes.data)
    written = np.full(BESIDE + whole.size + BESIDE, 0xA5, np.uint8)
    wanted = written.copy()
    call(case.name, source, written.ctypes.data + BESIDE)
    inside = np.repeat(np.array(case.mask), case.size)
    wanted[BESIDE:-BESIDE][inside] = whole[inside]
    return bool((written == wanted).all())


@pytest.mark.parametrize("target", targets(), ids=str)
def test_constant_masks(target: Target) -> None:
    """Every type and shape, run."""
    every = cases()
    stores = {declared(case.lanes, case.narrow) for case in every}
    text = "\n".join([*(case.text() for case in every), *sorted(stores)])
    engine = load_objects([emit(text, **machine(target))])

    def called(name: str, source: Array, to: int) -> None:
        call(engine.get_function_address(name), source.ctypes.data, to)

    wrong = [case.name for case in every if not right(case, called)]
    assert not wrong, wrong


LOOP = """
define void @rows(ptr noalias %from, ptr noalias %to) {
  br label %body
body:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %p = getelementptr i32, ptr %from, i64 %i
  %x = load <16 x i32>, ptr %p, align 4
  %y = trunc <16 x i32> %x to <16 x i8>
  %left = sub i64 49, %i
  %one = insertelement <16 x i64> poison, i64 %left, i64 0
  %all = shufflevector <16 x i64> %one, <16 x i64> poison, <16 x i32> zeroinitializer
  %mask = icmp ugt <16 x i64> %all, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6,
    i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %q = getelementptr i8, ptr %to, i64 %i
  call void @llvm.masked.store.v16i8.p0(<16 x i8> %y, ptr align 1 %q, <16 x i1> %mask)
  %next = add i64 %i, 16
  %more = icmp ult i64 %next, 49
  br i1 %more, label %body, label %done
done:
  ret void
}
declare void @llvm.masked.store.v16i8.p0(<16 x i8>, ptr, <16 x i1>)
"""


def test_a_mask_that_the_optimizer_makes_constant() -> None:
    check_text(
        emit_assembly(LOOP, **machine(V4)),
        """
    CHECK: vpmovdb {{.*}}, 32(%rsi)
    CHECK-NOT: vmovss
    CHECK: {{movb|vpextrb}}{{.*}}, 48(%rsi)
    """,
    )


@pytest.mark.parametrize("passes", [("aggressive_dce",), ("sccp",)])
def test_a_mask_that_only_the_code_generator_computes(passes: tuple[str, ...]) -> None:
    """Left by passes that fold little, as the optimizer's last ones are."""
    start, end = LOOP.index("br label"), LOOP.index("br i1")
    once = LOOP[:start] + LOOP[LOOP.index("%p =") : end].replace("%i", "48")
    text = once + "ret void\n}\n" + LOOP[LOOP.index("declare") :]
    options = CodeOptions(passes=passes)
    made = emit_assembly(text, **machine(V4), options=options)
    check_text(made, "CHECK-NOT: vmovss\nCHECK: {{movb|vpextrb}}{{.*}}, 48(%rsi)")


# ---- the text

STORE = "  tail call void @llvm.masked.store.v4i16.p0({}){}"
VALUE = "<4 x i16> %3"


def rewritten(operands: str, behind: str = "") -> list[str]:
    text = "define void @k(ptr %0) {\n" + STORE.format(operands, behind) + "\n}\n"
    return scalar_stores(text).split("\n")[1:-2]


def test_the_first_lane() -> None:
    mask = "<4 x i1> <i1 true, i1 false, i1 false, i1 poison>"
    assert rewritten(f"{VALUE}, ptr nonnull align 2 %0, {mask}", " #1, !tbaa !4") == [
        "  %one.lane.1 = extractelement <4 x i16> %3, i64 0",
        "  store i16 %one.lane.1, ptr %0, align 2, !tbaa !4",
    ]


def test_another_lane_of_constants() -> None:
    values = "<4 x i16> <i16 1, i16 2, i16 3, i16 4>"
    mask = "<4 x i1> <i1 false, i1 false, i1 false, i1 true>"
    assert rewritten(f"{values}, ptr captures(none) align 4 @x, {mask}") == [
        f"  %one.lane.1 = extractelement {values}, i64 3",
        "  %one.place.1 = getelementptr i16, ptr @x, i64 3",
        "  store i16 %one.lane.1, ptr %one.place.1, align 2",
    ]


@pytest.mark.parametrize(
    "mask",
    ["%m", "zeroinitializer", "splat (i1 true)", "poison", "%\"m.1\"",
     "<i1 true, i1 true, i1 false, i1 false>"],
)  # fmt: skip
def test_others_stay(mask: str) -> None:
    operands = f"{VALUE}, ptr align 2 %0, <4 x i1> {mask}"
    assert rewritten(operands) == [STORE.format(operands, "")]
    text = STORE.format(operands, "")
    assert scalar_stores(text) is text


@pytest.mark.parametrize(
    ("operands", "reason"),
    [
        (f"{VALUE}, ptr align 2 %0, <4 x i1> bitcast (i4 1 to <4 x i1>)", "unclear"),
        (f"{VALUE}, ptr %0, <4 x i1> <i1 true, i1 0, i1 0, i1 0>", "is left"),
        ("<1 x i1> %3, ptr align 2 %0, <1 x i1> splat (i1 true)", "is left"),
    ],
)
def test_what_cannot_be_told_is_refused(operands: str, reason: str) -> None:
    with pytest.raises(RuntimeError, match=f"kernel k: .*{reason}"):
        rewritten(operands)


# ---- LLVM's fault

REDUCED = f"""
define void @f(ptr %p, <16 x i32> %x) {{
  %y = trunc <16 x i32> %x to <16 x i8>
  call void @llvm.masked.store.v16i8.p0(<16 x i8> %y, ptr align 1 %p,
    <16 x i1> <{", ".join(["i1 true"] + ["i1 false"] * 15)}>)
  ret void
}}
{declared(16, "i8")}
"""


def test_llvm_still_needs_it() -> None:
    emit("", **machine(V4))  # makes the targets known
    given = machine(V4)
    maker = llvm.Target.from_triple(given["triple"]).create_target_machine(
        cpu=given["cpu"], features=given["features"], opt=3
    )
    with llvm.parse_assembly(REDUCED) as module:
        assembly = maker.emit_assembly(module)
    assert "vmovss\t%xmm0, (%rdi)" in assembly, (
        "this LLVM stores one lane of a shortened vector as one number: if "
        "test_constant_masks passes without it, nanoloom/llvm/scalar_stores.py can go"
    )
