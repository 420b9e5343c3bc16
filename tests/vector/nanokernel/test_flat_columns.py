"""bf16 rows that are not packed: sums of even and of odd columns, put in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Map
from nanoloom.target import by_name
from nanoloom.vector.nanokernel import flat_columns
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check, contracted, passes
from tests.vector.kernel_harness import (
    Array,
    Make,
    backwards,
    program_of,
    run,
    stage_text,
)
from tests.vector.nanokernel.reference import machine

Form = tuple[str, tuple[int, ...], tuple[int, ...]]
F32 = np.dtype(np.float32)
FAMILIES = [
    ("sierraforest", "bf16-convert"),
    ("x86-64-v3", "bf16-halves"),
    ("skylake-avx512", "bf16-halves"),
    ("x86-64-v2", "bf16-halves"),
]
EACH = pytest.mark.parametrize(("name", "family"), FAMILIES)


def bf16(seed: int, *shape: int) -> Array:
    return sample(seed, shape, "bfloat16")


def product(equation: str) -> Make:
    return lambda b, x, w: b.einsum(equation, x, w, dtype=F32)


def chosen(make: Make, target: Any, *given: Any) -> str:
    """The script alone, without the kernel behind it."""
    text = stage_text(program_of(make, *given), "schedule", target)
    return text[: text.index("\n}\n") + 3]


def compare(equation: str, left: Array, right: Array, target: Any, family: str) -> None:
    make = product(equation)
    script = chosen(make, target, left, right)
    assert f'packed = 0 : i64, family = "{family}"' in script
    got = run(make, left, right, target=target, order=backwards)
    exact, magnitude, terms = contracted(equation, left, right)
    check(got, exact, terms + 1, magnitude)
    assert not passes(got, np.roll(exact, 1, -1), terms + 1, magnitude)


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 6, 127), (5, 35, 100), (33, 2, 97), (7, 3, 64), (13, 131, 127), (1, 9, 515)],
)
def test_products(
    name: str, family: str, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(
        "mk,kn->mn", bf16(m, m, k), bf16(n, k, n), machine(name, monkeypatch), family
    )


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize(
    "form",
    [
        ("bmk,bkn->bmn", (2, 7, 9), (2, 9, 97)),
        ("bmk,kn->bmn", (3, 5, 9), (9, 127)),
        ("mjk,jkn->mn", (7, 3, 5), (3, 5, 97)),
        ("km,kn->mn", (9, 7), (9, 97)),
        ("k,kn->n", (17,), (17, 127)),
    ],
)
def test_forms(
    name: str, family: str, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    equation, left, right = form
    x, w = bf16(1, *left), bf16(2, *right)
    compare(equation, x, w, machine(name, monkeypatch), family)


@pytest.mark.parametrize(("name", "n"), [("x86-64-v3", 15), ("skylake-avx512", 31)])
def test_less_than_a_pair_of_vectors(
    name: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = machine(name, monkeypatch)
    compare("mk,kn->mn", bf16(1, 5, 9), bf16(2, 9, n), target, "fma")


@EACH
def test_an_epilogue(name: str, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """relu(x @ w + bias) + residual: over the edge every column has its own."""
    x, w = bf16(5, 33, 35), bf16(6, 35, 100)
    bias, residual = sample(7, (100,), "float32"), sample(8, (33, 100), "float32")

    def make(b: Any, x: Any, w: Any, r: Any) -> Any:
        made = product("mk,kn->mn")(b, x, w)
        made = b.elementwise(lambda s, t: (s + t).maximum(0), made, b.constant(bias))
        return b.elementwise(lambda s, t: s + t, made, r)

    target = machine(name, monkeypatch)
    assert f'family = "{family}"' in chosen(make, target, x, w, residual)
    got = run(make, x, w, residual, target=target, order=backwards)
    exact = np.maximum(wide(x) @ wide(w) + bias, 0) + residual
    size = abs(wide(x)) @ abs(wide(w)) + abs(bias) + abs(residual)
    check(got, exact, 35 + 3, size)


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("n", [64, 97])
def test_sums_go_on(
    name: str, family: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From what the result holds: it is added in the columns' order."""
    x, w, begun = bf16(1, 5, 9), bf16(2, 9, n), sample(3, (5, n), "float32", -9, 9)

    def dims(*places: int) -> Map:
        return Map.get(3, 0, [ir.AffineDimExpr.get(place) for place in places])

    def make(b: Any, x: Any, w: Any, sums: Any) -> Any:
        return b.generic(
            [(x, dims(0, 2)), (w, dims(2, 1))],
            [(sums, dims(0, 1))],
            [PARALLEL, PARALLEL, REDUCTION],
            lambda s, t, u: u + s.cast(F32) * t.cast(F32),
        )[0]

    target = machine(name, monkeypatch)
    assert f'family = "{family}"' in chosen(make, target, x, w, begun)
    got = run(make, x, w, begun, target=target, order=backwards)
    exact, magnitude, terms = contracted("mk,kn->mn", x, w)
    check(got, exact + begun, terms + 2, magnitude + abs(begun))
    assert not passes(got, exact, terms + 2, magnitude + abs(begun))


def test_columns_out_of_order_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = bf16(1, 7, 9), bf16(2, 9, 64)
    monkeypatch.setattr(flat_columns, "in_order", lambda sums, _: sums)
    target = replace(by_name("x86-64-v3"), name="out-of-order")
    got = run(product("mk,kn->mn"), x, w, target=target)
    exact, magnitude, terms = contracted("mk,kn->mn", x, w)
    assert not passes(got, exact, terms + 1, magnitude)


def test_a_task_may_copy_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that asks for it: the pairs are read from the copy."""
    x, w = bf16(1, 33, 9), bf16(2, 9, 97)
    for name, _ in FAMILIES:
        target = machine(name, monkeypatch)
        script = chosen(product("mk,kn->mn"), target, x, w)
        script = script.replace('copy_rhs = ""', 'copy_rhs = "front"')
        got = run(product("mk,kn->mn"), x, w, target=target, script=script)
        exact, magnitude, terms = contracted("mk,kn->mn", x, w)
        check(got, exact, terms + 1, magnitude)


@pytest.mark.parametrize(
    ("name", "m", "n", "family", "copied"),
    [
        ("skylake-avx512", 33, 384, "bf16-halves", 0),
        ("skylake-avx512", 48, 384, "fma", 1),
        ("skylake-avx512", 33, 48, "fma", 0),
        ("x86-64-v3", 33, 97, "bf16-halves", 0),
        ("x86-64-v3", 48, 97, "fma", 1),
        ("x86-64-v3", 7, 13, "fma", 1),
        ("arrowlake-s", 96, 384, "bf16-convert", 0),
        ("arrowlake-s", 96, 8192, "fma", 1),
        ("apple-m1", 33, 384, "fma", 0),
    ],
)
def test_the_choice(name: str, m: int, n: int, family: str, copied: int) -> None:
    """A copy in f32 pays for many rows or pages, or where nothing can be masked.

    Three vectors are not pairs.
    """
    given = ((m, 96), "bfloat16"), ((96, n), "bfloat16")
    script = chosen(product("mk,kn->mn"), by_name(name), *given)
    assert (f'"{family}", depth = 0 : i64, copy_rhs = ""' in script) != copied
    assert f'"{family}"' in script


def test_loads_convert_and_sums_are_put_in_order_once() -> None:
    given = ((33, 64), "bfloat16"), ((64, 65), "bfloat16")
    program = program_of(product("mk,kn->mn"), *given)
    check_text(
        stage_text(program, "vector", by_name("sierraforest")),
        """
    CHECK: [[BEGIN:%.*]] = arith.minui {{%.*}}, %c49 : index
    CHECK: scf.for {{.*}} iter_args
    CHECK-NOT: create_mask
    CHECK: memref.subview %arg1[{{%.*}}, [[BEGIN]]] [1, 16]
    CHECK: x86.avx.cvt.packed.even.indexed_to_f32 {{.*}} -> vector<8xf32>
    CHECK: x86.avx.cvt.packed.odd.indexed_to_f32 {{.*}} -> vector<8xf32>
    CHECK: x86.avx.bcst_to_f32.packed
    CHECK: vector.fma
    CHECK: scf.yield
    CHECK: vector.shuffle {{.*}} [0, 8, 1, 9, 2, 10, 3, 11] : vector<8xf32>
    CHECK: vector.shuffle {{.*}} [4, 12, 5, 13, 6, 14, 7, 15] : vector<8xf32>
    CHECK: create_mask
    CHECK: vector.transfer_write
    """,
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vectors = 2": "vectors = 1", "[0, 16, 0]": "[0, 8, 0]"}, "pairs of vectors"),
        ({"vectors = 2": "vectors = 4"}, "no more columns than the right operand"),
    ],
)
def test_refusals(change: dict[str, str], said: str) -> None:
    program = program_of(
        product("mk,kn->mn"), ((5, 9), "bfloat16"), ((9, 16), "bfloat16")
    )
    target = by_name("x86-64-v3")
    script = stage_text(program, "schedule", target)
    script = script[: script.index("\n}\n") + 3]
    for old, new in change.items():
        assert old in script
        script = script.replace(old, new)
    with pytest.raises(Error, match=said):
        stage_text(program, "vector", target, script=script)
