"""Tiles over an edge: whole vectors are stored as such, those in part under a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.target import by_name
from tests.filecheck import check_text, problems
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import backwards, program_of, run, stage_text, targets

M, K, N = 131, 20, 89  # rows of tiles and columns of panels reach over both edges


def product(b: Any, x: Any, w: Any) -> Any:
    return b.elementwise(lambda s: s.maximum(0), b.einsum("bmk,bkn->bmn", x, w))


def text_for(target: str, m: int = M, n: int = N) -> str:
    given = (((3, m, K), "float32"), ((3, K, n), "float32"))
    return stage_text(program_of(product, *given), "vector", by_name(target))


def test_without_mask_registers_a_branch_says_what_is_whole() -> None:
    checks = """
    CHECK: [[INSIDE:%.*]] = arith.cmpi sge, {{.*}}, %c8
    CHECK-NEXT: scf.if [[INSIDE]] {
    CHECK-NEXT: vector.transfer_write [[SUM:%[a-z0-9_#]*]], {{%[^,]*(, %[^,]*)+}}] {
    CHECK-NEXT: } else {
    CHECK: [[HALF:%.*]] = vector.shuffle [[SUM]], [[SUM]] [0, 1, 2, 3]
    CHECK-NEXT: vector.store [[HALF]]
    """
    text = text_for("x86-64-v3")
    check_text(text, checks)
    assert not any(map(is_masked, text.splitlines()))  # but stores of fewer lanes
    assert problems(text, checks.replace("sge", "uge"))  # counts may be below 0


def is_masked(line: str) -> bool:
    return "vector.transfer_write" in line and "], %" in line


def test_mask_registers_need_no_branch() -> None:
    text = text_for("x86-64-v4")
    assert any(map(is_masked, text.splitlines()))
    assert "arith.cmpi sge" not in text


def test_the_script_says_so() -> None:
    given = (((3, M, K), "float32"), ((3, K, N), "float32"))
    program = program_of(product, *given)
    for name, said in (("x86-64-v3", 1), ("x86-64-v4", 0)):
        target = by_name(name)
        text = stage_text(program, "schedule", target)
        script = text[: text.index("\n}\n") + 3]
        other = script.replace(
            f"unmasked_fast_path = {said}", f"unmasked_fast_path = {1 - said}"
        )
        assert other != script
        text = stage_text(program, "vector", target, script=other)
        if said:  # all are of fewer lanes, which may be as many as there are
            assert "vector.transfer_write" not in text and "vector.store" in text
        else:
            assert "arith.cmpi sge" in text
            assert any(map(is_masked, text.splitlines()))


def test_tiles_that_divide_have_neither() -> None:
    text = text_for("x86-64-v3", m=120, n=96)
    assert not any(map(is_masked, text.splitlines()))
    assert "vector.transfer_write" in text and "arith.cmpi sge" not in text


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("size", [(131, 89), (131, 193), (13, 17), (7, 25), (20, 1)])
def test_numbers_at_all_edges(size: tuple[int, int], target: Any) -> None:
    """Nothing lies behind the arrays: a vector too far would end the process.

    Of 193 columns the last panel has one: its second vector is behind the edge.
    """
    m, n = size
    left, right = sample(1, (3, m, K), "float32"), sample(2, (3, K, n), "float32")
    exact = np.maximum(wide(left) @ wide(right), 0)
    magnitude = abs(wide(left)) @ abs(wide(right))
    got = run(product, left, right, target=target, order=backwards)
    check(got, exact, K + 1, magnitude)
    assert not passes(got, np.roll(exact, 1, 1), K + 1, magnitude)
