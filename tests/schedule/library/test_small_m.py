"""Products along the sum: few rows read a right operand as it lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.nest.contraction import FEW_ROWS
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Parallel, UnrollAndJam, Vectorize
from nanoloom.target import Target, by_name
from tests.kernels.attention_programs import Attention, attention_program, roots
from tests.linalg.bounds import sample
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, program_of, run, targets

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)


def scores(b: Any, q: Any, k: Any) -> Any:
    """Of heads, scaled: a product and what follows it."""
    return b.elementwise(lambda s: s * 0.25, b.einsum("hmk,hnk->hmn", q, k))


def operands(rows: int, keys: int, size: int, kind: str = "float32") -> list[Any]:
    return [sample(1, (3, rows, size), kind), sample(2, (3, keys, size), kind)]


@pytest.mark.parametrize(
    ("rows", "tile"), [(1, ()), (2, (2,)), (3, (3,)), (8, (4,)), (5, (4,)), (6, (3,))]
)
def test_lanes_and_tile(rows: int, tile: tuple[int, ...]) -> None:
    """On AVX2: at most eight sums in registers, each of eight lanes."""
    program = program_of(scores, *operands(rows, 130, 40))
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, by_name("x86-64-v3")).directives
    (lanes,) = (w for w in words if isinstance(w, Vectorize) and w.stage == "product")
    assert (lanes.lanes, lanes.chains) == (Lanes(8), 1)
    counts = [word.count for word in words if isinstance(word, UnrollAndJam)]
    columns = {1: 4, 2: 4, 3: 2, 4: 2}[tile[0] if tile else 1]
    assert counts == [*tile, columns]
    sizes = (1, 204) if rows == 1 else (1, 0, 204)
    assert words[0] == Parallel("point", sizes, ("all",))


@pytest.mark.parametrize(
    ("name", "size", "lanes"),
    [
        ("x86-64-v4", 2, 4),
        ("x86-64-v4", 7, 8),
        ("x86-64-v4", 9, 16),
        ("x86-64-v3", 9, 8),
    ],
)
def test_short_sums_have_short_vectors(name: str, size: int, lanes: int) -> None:
    program = program_of(scores, *operands(2, 130, size))
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, by_name(name)).directives
    (found,) = (w for w in words if isinstance(w, Vectorize) and w.stage == "product")
    assert found.lanes == Lanes(lanes)


@pytest.mark.parametrize("name", ["rv64gcv", "armv9-sve2"])
def test_as_wide_as_the_machine(name: str) -> None:
    program = program_of(scores, *operands(2, 130, 40))
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, by_name(name)).directives
    (lanes,) = (w for w in words if isinstance(w, Vectorize) and w.stage == "product")
    assert lanes.lanes.scalable


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("size", [2, 3, 8, 13, 16, 23, 64, 100])
def test_numbers(size: int, target: Target) -> None:
    """Between pages that cannot be touched; sizes that divide nothing."""
    for rows, keys, kind in (
        (1, 33, "float32"),
        (7, 130, "float32"),
        (3, 5, "float64"),
    ):
        q, k = operands(rows, keys, size, kind)
        got = run(scores, q, k, target=target)
        wide, turned = q.astype(float), k.astype(float).swapaxes(1, 2)
        check(got, wide @ turned * 0.25, size + 2, abs(wide) @ abs(turned) * 0.25)
        assert np.array_equal(got, run(scores, q, k, target=target, order=backwards))


@pytest.mark.parametrize(
    ("rows", "size", "kind", "kernels"),
    [
        (FEW_ROWS, 16, "float32", ["contraction"]),
        (FEW_ROWS + 1, 16, "float32", ["elementwise", "contraction"]),
        (FEW_ROWS, 2, "float32", ["contraction"]),
        (2, 16, "float16", ["elementwise", "contraction"]),
        (2, 16, "int32", ["elementwise", "contraction"]),
    ],
)
def test_others_are_turned_first(
    rows: int, size: int, kind: str, kernels: list[str]
) -> None:
    """Many rows pay for it; narrow numbers would have to be widened on the way."""
    program = program_of(
        lambda b, q, k: b.einsum("mk,nk->mn", q, k),
        sample(1, (rows, size), kind),
        sample(2, (40, size), kind),
    )
    assert roots(program) == kernels


def test_rows_that_lie_apart_are_turned_first() -> None:
    """Keys along their numbers, [size, keys], need nothing; a left one across does."""
    program = program_of(
        lambda b, q, k: b.einsum("km,nk->mn", q, k),
        sample(1, (20, 3), "float32"),
        sample(2, (40, 20), "float32"),
    )
    assert roots(program) == ["elementwise", "contraction"]


@pytest.mark.parametrize("size", [2, 8, 15, 40])
@pytest.mark.parametrize("rows", [1, 3, FEW_ROWS])
def test_the_next_word_of_a_text_is_one_kernel(rows: int, size: int) -> None:
    """Nothing turns the keys of a cache at every call."""
    given = Attention((2, 3), rows, 197, size, masked=True)
    assert roots(attention_program(given.make, *given.inputs())) == ["contractions"]
