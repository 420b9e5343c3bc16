"""Products of two activations: a task's columns are copied to a panel of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.schedule.library import copies
from nanoloom.target import by_name
from nanoloom.target.host import host
from tests.filecheck import check_text
from tests.linalg.bounds import dtype_of, sample
from tests.vector.checks import check, contracted, passes
from tests.vector.kernel_harness import backwards, program_of, run, stage_text

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
    monkeypatch.setattr(copies, "FEW_PAGES", -1)
    monkeypatch.setattr(copies, "COPY_TILES", 0)
    monkeypatch.setattr(copies, "COPY_ROWS", 0)


def compare(equation: str, left: Any, right: Any, sums: str) -> None:
    make = product(equation, sums)
    text = stage_text(program_of(make, left, right), "schedule", host())
    assert "copied = 1" in text or 'family = "amx' in text
    got = run(make, left, right, target=host(), order=backwards)
    exact, magnitude, terms = contracted(equation, left, right)
    if got.dtype.kind == "i":
        exact = exact.astype(np.int64).astype(np.int32)
    check(got, exact, terms + 1, magnitude)
    assert not passes(got, np.roll(exact, 1, -1), terms + 1, magnitude)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(("left", "right", "sums"), TYPES)
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_products(m: int, k: int, n: int, left: str, right: str, sums: str) -> None:
    x, w = sample(m, (m, k), left), sample(n, (k, n), right)
    compare("mk,kn->mn", x, w, sums)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("bmk,bkn->bmn", (3, 33, 20), (3, 20, 50)),
        ("bmk,kn->bmn", (2, 37, 20), (20, 50)),
        ("mjk,jkn->mn", (33, 3, 20), (3, 20, 50)),
        ("kn,km->mn", (20, 50), (20, 33)),
    ],
)
def test_forms(equation: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, w = sample(1, left, "float32"), sample(2, right, "float32")
    compare(equation, x, w, "float32")


def test_a_panel_is_copied_once_a_task() -> None:
    """In front of the loop over rows, as f32 where the operand is narrower."""
    given = ((256, 1024), "bfloat16"), ((1024, 1024), "bfloat16")
    program = program_of(product("mk,kn->mn", "float32"), *given)
    text = stage_text(program, "vector", by_name("x86-64-v4"))
    check_text(
        text,
        """
    CHECK: memref.alloc{{.*}} memref<1024x1x64xf32>
    CHECK: scf.for {{.*}} = %arg3 to %arg4
    CHECK: scf.for
    CHECK: arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
    CHECK: scf.for
    CHECK: vector.fma
    """,
    )


@pytest.mark.parametrize(
    ("m", "k", "n"), [(384, 64, 384), (6, 1024, 1024), (1, 2048, 2048)]
)
def test_few_pages_or_rows_are_read_in_place(m: int, k: int, n: int) -> None:
    given = ((m, k), "float32"), ((k, n), "float32")
    program = program_of(product("mk,kn->mn", "float32"), *given)
    assert "copied = 0" in stage_text(program, "schedule", by_name("x86-64-v4"))
