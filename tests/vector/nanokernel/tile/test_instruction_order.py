"""What keeps LLVM from reordering a nanokernel, and that it changes no number."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nanoloom.target import by_name
from nanoloom.target.facts import Target
from nanoloom.target.host import host
from tests.linalg.bounds import sample
from tests.vector.checks import check, contracted, passes
from tests.vector.kernel_harness import program_of, run, stage_text
from tests.vector.nanokernel.test_every_choice import KINDS

OLD = by_name("x86-64-v2")  # without multiply-add; every x86 can run it
SIZE = 13, 35, 100


def product(kind: str, right: np.ndarray) -> Any:
    dtype = np.dtype(KINDS[kind])
    return lambda b, x: b.einsum("mk,kn->mn", x, b.constant(right), dtype=dtype)


@pytest.mark.parametrize("target", [OLD] if host().arch == OLD.arch else [], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_without_multiply_add(kind: str, target: Target) -> None:
    m, k, n = SIZE
    left = sample(m, (m, k), kind)
    right = sample(n, (k, n), "int8" if kind == "uint8" else kind)
    got = run(product(kind, right), left, target=target)
    exact, magnitude, count = contracted("mk,kn->mn", left, right)
    check(got, exact, count + 1, magnitude)
    assert not passes(got, np.roll(exact, 1, -1), count + 1, magnitude)


def assembly(target: Target) -> list[str]:
    """What stands behind the rows of a product of f32 numbers: types of its values."""
    m, k, n = SIZE
    right = sample(n, (k, n), "float32")
    program = program_of(product("float32", right), ((m, k), "float32"))
    text = stage_text(program, "vector", target)
    return re.findall(r'llvm\.inline_asm .*"~?.*" .*: \((.*)\) ->', text)


def test_a_row_at_a_time() -> None:
    (kinds,) = set(assembly(by_name("x86-64-v3")))
    assert set(kinds.split(", ")) == {"vector<8xf32>"}


def script_with(target: Target, *changes: tuple[str, str]) -> tuple[Any, str]:
    """A product's kernel, and its schedule with other words."""
    m, k, n = SIZE
    right = sample(n, (k, n), "float32")
    program = program_of(product("float32", right), ((m, k), "float32"))
    text = stage_text(program, "schedule", target)
    script = text[: text.index("\n}\n") + 3]
    for old, new in changes:
        assert old in script
        script = script.replace(old, new)
    return program, script


def code_with(target: Target, *changes: tuple[str, str]) -> str:
    program, script = script_with(target, *changes)
    return stage_text(program, "vector", target, script=script)


FREE = ("pin_order = 1", "pin_order = 0")
TOGETHER = ("unfused_mul_add = 1", "unfused_mul_add = 0")


def test_the_script_says_what_llvm_leaves_in_order() -> None:
    target = by_name("x86-64-v3")
    assert "inline_asm" not in code_with(target, FREE)
    free = code_with(target, ("keep_broadcast_live = 1", "keep_broadcast_live = 0"))
    (kinds,) = set(re.findall(r'inline_asm .*"~?.*" .*: \((.*)\) ->', free))
    (held,) = set(assembly(target))
    assert held.count("vector<8xf32>") == kinds.count("vector<8xf32>") + 1


def test_the_script_says_what_is_added_apart() -> None:
    assert "vector.fma" not in code_with(OLD)
    assert "vector.fma" in code_with(OLD, TOGETHER)
    v3 = by_name("x86-64-v3")
    assert "vector.fma" not in code_with(
        v3, ("unfused_mul_add = 0", "unfused_mul_add = 1")
    )


@pytest.mark.parametrize("changes", [(FREE, TOGETHER), (TOGETHER,)], ids=str)
def test_numbers_in_another_order(changes: tuple[tuple[str, str], ...]) -> None:
    m, k, n = SIZE
    left, right = sample(m, (m, k), "float32"), sample(n, (k, n), "float32")
    _, script = script_with(OLD, *changes)
    got = run(product("float32", right), left, target=OLD, script=script)
    exact, magnitude, count = contracted("mk,kn->mn", left, right)
    check(got, exact, count + 1, magnitude)
    assert not passes(got, np.roll(exact, 1, -1), count + 1, magnitude)


def test_a_product_is_kept_until_it_is_added() -> None:
    assert "vector<4xf32>, vector<4xf32>" in assembly(OLD)


def test_whole_registers_of_unknown_length() -> None:
    known = by_name("rv64gcv")
    target = replace(known, vector=replace(known.vector, vscale_max=1))
    kinds = {kind for row in assembly(target) for kind in row.split(", ")}
    assert kinds == {"vector<[2]xf32>"}
