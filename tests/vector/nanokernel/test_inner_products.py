"""Winograd's inner product on bytes: exact for all, half of the multiplications."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.integer_convolution import contract_rows
from nanoloom.target import by_name
from tests.vector.assembly import count, loop_with
from tests.vector.kernel_harness import program_of, stage_text
from tests.vector.nanokernel.reference import machine
from tests.vector.nanokernel.test_int8 import compare, numbers, product

V3 = "x86-64-v3"


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(6))
def test_drawn_products(seed: int, monkeypatch: Any) -> None:
    """Rows, depths and columns that no tile, group or panel divides; both signs, and a
    third of the numbers at each end of their range."""
    random = np.random.default_rng(seed)
    rows, columns = random.integers(12, 60), random.integers(1, 90)
    depth = int(random.choice([16, 20, 36, *range(32, 36), 131, 300]))
    signs = random.choice(["u", "s"], 2)
    left = numbers(seed, signs[0], int(rows), depth)
    right = numbers(seed + 1, signs[1], depth, int(columns))
    target = machine(V3, monkeypatch)
    found = compare("mk,kn->mn", left, right, target, packed=True)
    assert found == "int8-inner"


@pytest.mark.parametrize("lowest", [True, False])
def test_ends_of_the_range(lowest: bool, monkeypatch: Any) -> None:
    """Sums of factors, and of their products, are as large as they can be."""
    target = machine(V3, monkeypatch)
    for signs in ("us", "ss", "su", "uu"):
        ends = [np.iinfo(numbers(0, s, 1).dtype) for s in signs]
        one, other = (x.min if lowest else x.max for x in ends)
        left = np.full((16, 2048), one, ends[0].dtype)
        right = np.full((2048, 3), other, ends[1].dtype)
        assert compare("mk,kn->mn", left, right, target, packed=True) == "int8-inner"


@pytest.mark.parametrize(("rows", "few"), [(7, 3), (23, 3), (12, 0)])
def test_last_tile_has_its_own_rows(rows: int, few: int, monkeypatch: Any) -> None:
    """A tile that is not full computes no rows behind the last one."""
    left, right = numbers(1, "u", rows, 512), numbers(2, "s", 512, 64)
    target = machine(V3, monkeypatch)
    compare("mk,kn->mn", left, right, target, packed=True)
    program = program_of(
        product("mk,kn->mn", right, packed=True), ((rows, 512), "uint8")
    )
    script = stage_text(program, "schedule", by_name(V3))
    said = f"{{rows = [{few} : i64]}}" if few else ""
    assert ("nanoloom.versions" in script) == bool(few) and said in script


@pytest.mark.parametrize(
    ("depth", "columns"), [(64, 256), (512, 2048), (1152, 512), (2304, 96)]
)
def test_panels_stay_in_the_cache(depth: int, columns: int) -> None:
    """Half of it has a task's panels, and all tasks have as many."""
    right, target = numbers(2, "s", depth, columns), by_name(V3)
    program = program_of(
        product("mk,kn->mn", right, packed=True), ((196, depth), "uint8")
    )
    script = stage_text(program, "schedule", target)
    (own,) = re.findall(
        r"tile_sizes \[\d+, (\d+), 0\] {apply_cleanup, use_forall", script
    )
    task, bytes_of = int(own), 2 * depth
    assert task * bytes_of <= target.caches.resident and columns % task == 0
    assert (task < columns) == (columns * bytes_of > target.caches.resident)


def test_windows(monkeypatch: Any) -> None:
    """Rows are pixels: each has the own products of all of its window."""
    left, right = numbers(1, "u", 5, 41, 24), numbers(2, "s", 3, 24, 40)
    windows = np.lib.stride_tricks.sliding_window_view(left, 3, 1)[:, ::2]
    target = machine(V3, monkeypatch)
    flat = np.ascontiguousarray(windows.transpose(0, 1, 3, 2))
    found = compare("ymjk,jkn->ymn", flat, right, target, packed=True)
    assert found == "int8-inner"


def test_instructions() -> None:
    """Four steps of a sum are two additions, a product and its addition; rows are
    widened in front of the loop over the panels that read them."""
    right = numbers(2, "s", 256, 64)
    program = program_of(
        product("mk,kn->mn", right, packed=True), ((160, 256), "uint8")
    )
    loop = loop_with(stage_text(program, "asm", by_name(V3)), "vpaddw")
    products = count(loop, "vpmaddwd")
    assert count(loop, "vpaddw") == 2 * products and count(loop, "vpaddd") == products
    script = stage_text(program, "schedule", by_name(V3))
    assert "convert_lhs = 256" in script and "columns = 16" in script
    text = stage_text(program, "vector", by_name(V3))
    *front, behind = text.split("vector.reduction")
    assert len(front) == 4 and "arith.extui" in front[0]
    assert behind.count("scf.for") == 2  # over panels, and over their steps


@pytest.mark.parametrize(
    ("name", "rows", "family"),
    [
        (V3, 160, "int8-inner"),
        (V3, 8, "int8-pairs"),  # few rows share what columns take away
        ("x86-64-v2", 160, "int8-pairs"),  # additions write over their operands
        ("skylake-avx512", 160, "int8-pairs"),  # and run where products do
        ("alderlake", 160, "int8-dot"),
    ],
)
def test_where(name: str, rows: int, family: str) -> None:
    right = numbers(2, "s", 96, 64)
    program = program_of(
        product("mk,kn->mn", right, packed=True), ((rows, 96), "uint8")
    )
    assert f'family = "{family}"' in stage_text(program, "schedule", by_name(name))


def test_first_layers_have_pairs() -> None:
    """A row of taps of three channels would be put together number by number."""
    window = Window((7, 7), (2, 2), (1, 1), (0, 0), (0, 0), (29, 29), (12, 12))
    shape, right = ((1, 29, 29, 3), "uint8"), np.ones((8, 3, 7, 7), np.int8)

    def make(b: Any, x: Any) -> Any:
        return contract_rows(b, x, b.constant(right), window)

    assert "int8-pairs" in stage_text(program_of(make, shape), "schedule", by_name(V3))
