"""Products of two activations: a task's columns are copied to a panel of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.schedule.library import copy_rhs, task_panel
from nanoloom.schedule.library.family import multiplies
from nanoloom.target import Target, by_name
from nanoloom.target.facts import Cache
from nanoloom.target.host import host
from nanoloom.vector.nanokernel.operands.converted_rows import pieces
from tests.filecheck import check_text
from tests.linalg.bounds import dtype_of, sample
from tests.vector.checks import check, contracted, passes
from tests.vector.kernel_harness import backwards, program_of, run, stage_text, targets

SIZES = [
    (24, 7, 17),
    (33, 64, 100),
    (130, 35, 65),
    (257, 66, 48),
]  # rows, depth, columns
TYPES = [
    ("float32", "float32", "float32"),
    ("float64", "float64", "float64"),
    ("float16", "float16", "float32"),
    ("bfloat16", "bfloat16", "float32"),
    ("int8", "int8", "int32"),
    ("uint8", "int8", "int32"),
]


def product(equation: str, kind: str) -> Any:
    return lambda b, x, w: b.einsum(equation, x, w, dtype=dtype_of(kind))


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products copy their panels, too."""
    monkeypatch.setattr(copy_rhs, "lies_in_many_pages", lambda *_: True)
    monkeypatch.setattr(copy_rhs, "COPY_TILES", 0)
    monkeypatch.setattr(copy_rhs, "COPY_ROWS", 0)


def compare(equation: str, left: Any, right: Any, sums: str) -> None:
    make = product(equation, sums)
    text = stage_text(program_of(make, left, right), "schedule", host())
    assert (
        'copy_rhs = "' in text.replace('copy_rhs = ""', "") or 'family = "amx' in text
    )
    got = run(make, left, right, target=host(), order=backwards)
    exact, magnitude, terms = contracted(equation, left, right)
    if got.dtype.kind == "i":
        exact = exact.astype(np.int64).astype(np.int32)
    check(got, exact, terms + 1, magnitude)
    assert not passes(got, np.roll(exact, 1, -1), terms + 1, magnitude)


@pytest.mark.drawn
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(("left", "right", "sums"), TYPES)
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_products(m: int, k: int, n: int, left: str, right: str, sums: str) -> None:
    x, w = sample(m, (m, k), left), sample(n, (k, n), right)
    compare("mk,kn->mn", x, w, sums)


def test_a_sum_over_several_axes_is_no_nanokernel() -> None:
    """It is like a window: a register tile of any semiring (register_tiles.py)."""
    x, w = sample(1, (33, 3, 20), "float32"), sample(2, (3, 20, 50), "float32")
    make = product("mjk,jkn->mn", "float32")
    text = stage_text(program_of(make, x, w), "schedule", host())
    assert '"nanoloom.unroll_and_jam"' in text
    got = run(make, x, w, target=host(), order=backwards)
    exact, magnitude, terms = contracted("mjk,jkn->mn", x, w)
    check(got, exact, terms + 1, magnitude)
    assert not passes(got, np.roll(exact, 1, -1), terms + 1, magnitude)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("bmk,bkn->bmn", (3, 33, 20), (3, 20, 50)),
        ("bmk,kn->bmn", (2, 37, 20), (20, 50)),
        ("kn,km->mn", (20, 50), (20, 33)),
    ],
)
def test_forms(equation: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, w = sample(1, left, "float32"), sample(2, right, "float32")
    compare(equation, x, w, "float32")


def test_the_first_tile_makes_the_panel() -> None:
    """It multiplies what it stores, as f32; the others load it."""
    given = ((256, 1024), "bfloat16"), ((1024, 1024), "bfloat16")
    program = program_of(product("mk,kn->mn", "float32"), *given)
    text = stage_text(program, "vector", by_name("x86-64-v4"))
    check_text(
        text,
        """
    CHECK: func.func @kernel_0({{.*}}, [[ROWS:%arg5]]: memref<6x1024xf32>
    CHECK-SAME: [[PANEL:%arg6]]: memref<1024x64xf32>
    CHECK: scf.for {{.*}} = %arg3 to %arg4
    CHECK: [[FIRST:%.*]] = arith.cmpi eq, {{%.*}}, %c0 : index
    CHECK: scf.if [[FIRST]]
    CHECK: arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
    CHECK-NEXT: vector.store {{.*}}, [[ROWS]]
    CHECK: memref.prefetch %arg0{{.*}} locality<3>
    CHECK: memref.prefetch {{.*}} locality<2>
    CHECK: [[COLUMNS:%.*]] = arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
    CHECK-NEXT: vector.store [[COLUMNS]], [[PANEL]]
    CHECK: memref.load [[ROWS]]
    CHECK: vector.fma {{.*}}, [[COLUMNS]]
    CHECK: } else {
    CHECK: vector.load [[PANEL]]
    CHECK: memref.load [[ROWS]]
    CHECK: vector.fma
    """,
    )


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("follows", [False, True])
def test_long_sums_are_cut(
    monkeypatch: pytest.MonkeyPatch, target: Target, kind: str, follows: bool
) -> None:
    """The last chunk is smaller, and nothing is divided by a vector or a tile."""
    if multiplies(target, kind.replace("bfloat", "bf")):
        target = by_name("x86-64-v4")  # where bf16 is multiplied as f32, from a copy
    monkeypatch.setattr(Cache, "panel", property(lambda _: 2048))
    monkeypatch.setattr(copy_rhs, "lies_in_many_pages", lambda *_: True)
    x, w = sample(1, (101, 75), kind), sample(2, (75, 83), kind)
    bias = sample(3, (83,), "float32")

    def make(b: Any, left: Any, right: Any) -> Any:
        made = product("mk,kn->mn", "float32")(b, left, right)
        if not follows:
            return made
        return b.elementwise(lambda s, t: s + t, made, b.constant(bias))

    text = stage_text(program_of(make, x, w), "schedule", target)
    assert (
        'copy_rhs = "' in text.replace('copy_rhs = ""', "")
        and "structured.split" in text
    )
    exact, magnitude, terms = contracted("mk,kn->mn", x, w)
    if follows:
        exact, magnitude = exact + bias, magnitude + abs(bias)
    got = run(make, x, w, target=target, order=backwards)
    check(got, exact, terms + 1, magnitude)
    assert not passes(got, np.roll(exact, 1, -1), terms + 1, magnitude)


def test_parts_of_a_sum() -> None:
    assert task_panel.part(2048, 2048, 16) == 2048
    assert task_panel.part(4096, 2048, 16) == 2048
    assert task_panel.part(4099, 2048, 16) == 1376  # and 1376, and 1347
    assert task_panel.part(75, 32, 16) == 32


def test_vectors_of_so_many_numbers() -> None:
    assert pieces(16, 16) == [(0, 16)]
    assert pieces(29, 8) == [(0, 8), (8, 8), (16, 8), (24, 4), (28, 1)]
    assert pieces(0, 8) == []


@pytest.mark.parametrize(
    ("m", "k", "n"), [(384, 64, 384), (6, 1024, 1024), (1, 2048, 2048)]
)
def test_few_pages_or_rows_are_read_in_place(m: int, k: int, n: int) -> None:
    given = ((m, k), "float32"), ((k, n), "float32")
    program = program_of(product("mk,kn->mn", "float32"), *given)
    assert 'copy_rhs = ""' in stage_text(program, "schedule", by_name("x86-64-v4"))
