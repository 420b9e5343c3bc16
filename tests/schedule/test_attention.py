"""What the script of an attention kernel says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nanoloom.linalg.reductions.softmax import normalized
from nanoloom.target import by_name
from tests.filecheck import check_text
from tests.kernels.attention_programs import Attention, attention_program
from tests.vector.kernel_harness import Make, stage_text


def script(
    given: Attention, target: str, make: Make | None = None, *, bf16: bool = False
) -> str:
    """The Transform script of the kernel that attention is."""
    program = attention_program(make or given.make, *given.inputs(), bf16=bf16)
    names = [kernel.root for kernel in program.kernels.values()]
    number = names.index("contractions")
    text = stage_text(program, "schedule", by_name(target), number)
    return text[: text.index("\n}\n") + 3]


def families(text: str) -> list[str]:
    return re.findall(r'family = "([^"]+)"', text)


def test_both_products_and_what_lies_between() -> None:
    check_text(
        script(Attention((2, 3), 197, 197, 40, masked=True), "x86-64-v3"),
        """
    CHECK: // 40 rows of 197 scores at a time
    CHECK: [[LAST:%.*]] = {{.*}}match attributes {nanoloom.stage = "product_2"}
    CHECK-NEXT: transform.structured.fuse [[LAST]] tile_sizes [1, 40, 0, 0]
    CHECK-SAME: use_forall
    CHECK: [[SCORES:%.*]] = {{.*}}match attributes {nanoloom.stage = "point_2"}
    CHECK-NEXT: transform.structured.tile_using_for [[SCORES]]
    CHECK: [[BETWEEN:%.*]] = {{.*}}match attributes {nanoloom.stage = "point"}
    CHECK-NEXT: fuse_into_containing_op [[BETWEEN]]
    CHECK: [[PRODUCT:%.*]] = {{.*}}match attributes {nanoloom.stage = "product"}
    CHECK-NEXT: fuse_into_containing_op [[PRODUCT]]
    CHECK: "nanoloom.nanokernel"(%product{{.*}}) {{.*}}packed = 0 : i64, family = "fma"
    CHECK: transform.structured.tile_using_for %product_2
    CHECK: "nanoloom.nanokernel"(%product_2{{.*}}packed = 0 : i64, family = "fma"
    """,
    )


@pytest.mark.parametrize(
    ("keys", "rows"), [(64, 64), (197, 36), (512, 12), (5000, 1), (16384, 1)]
)
def test_rows_of_a_task(keys: int, rows: int) -> None:
    """As many as the first-level cache holds, in whole tiles: at most 64."""
    text = script(Attention((2,), 70, keys, 16), "x86-64-v3")
    assert f"// {rows} rows of {keys} scores at a time" in text
    assert f"tile_sizes [1, {rows}, 0, 0]" in text


def test_few_rows_are_one_task() -> None:
    text = script(Attention((2,), 5, 197, 16), "x86-64-v3")
    assert "// 5 rows of 197 scores at a time" in text


def test_an_epilogue_is_fused_behind_the_second_product() -> None:
    given = Attention((2,), 17, 33, 40)

    def make(b: Any, q: Any, k: Any, v: Any) -> Any:
        scores = given.scores(b, q, k)
        p = normalized(b, scores, [scores.rank - 1], scores.dtype)
        return b.elementwise(lambda s: s.maximum(0), given.weigh(b, p, v))

    check_text(
        script(given, "x86-64-v3", make),
        """
    CHECK: "nanoloom.nanokernel"(%product
    CHECK: [[LAST:%.*]] = {{.*}}match attributes {nanoloom.stage = "point_4"}
    CHECK-NEXT: transform.structured.tile_using_for [[LAST]]
    CHECK: [[ROOT:%.*]] = {{.*}}match attributes {nanoloom.stage = "product_2"}
    CHECK-NEXT: fuse_into_containing_op [[ROOT]]
    CHECK: "nanoloom.nanokernel"(%product_2
    """,
    )


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize(
    ("given", "found", "rows"),
    [
        (Attention((2,), 128, 128, 64), ["amx-bf16", "amx-bf16"], ["32", "32"]),
        (Attention((2,), 17, 128, 64), ["amx-bf16", "amx-bf16"], ["17", "17"]),
        (Attention((2,), 128, 100, 64), ["amx-bf16", "amx-bf16"], ["32", "32"]),
        (Attention((2,), 128, 100, 40), ["amx-bf16", "amx-bf16"], ["32", "32"]),
        (Attention((2,), 128, 197, 64), ["amx-bf16", "amx-bf16"], ["32", "32"]),
        (Attention((2,), 70, 33, 9), ["amx-bf16", "amx-bf16"], ["32", "32"]),
    ],
)
def test_tile_registers(given: Attention, found: list[str], rows: list[str]) -> None:
    """Eight are enough for both products, wherever their sums end."""
    text = script(given, "sapphirerapids", bf16=True)
    assert families(text) == found
    assert re.findall(r'rows = (\d+) [^}]*"amx', text) == rows
    program = attention_program(given.make, *given.inputs(), bf16=True)
    number = [k.root for k in program.kernels.values()].index("contractions")
    asm = stage_text(program, "asm", by_name("sapphirerapids"), number)
    assert asm.count("tdpbf16ps") >= 4


@pytest.mark.parametrize("target", ["rv64gcv", "armv9-sve2", "neoverse-v1"])
def test_both_products_are_as_wide_as_the_machine(target: str) -> None:
    text = script(Attention((2, 3), 197, 197, 40, masked=True), target)
    rows = 40 if target == "rv64gcv" else 64  # their first-level caches differ
    assert f"// {rows} rows of 197 scores" in text and families(text) == []
    words = re.findall(r'"nanoloom.vectorize"\(%(product\w*)_\d+, %\w+\) {(.*)}', text)
    assert len(words) == 2 and all("scalable = 1" in fields for _, fields in words)
    assert text.count('"nanoloom.unroll_and_jam"') >= 2
