"""Chapter H's convolution: its numbers, its schedules, and what these make."""

from __future__ import annotations

import sys
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.kernels.program import Kernel
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.printer import print_nest
from nanoloom.target import by_name
from nanoloom.target.cached_host import to_dict
from nanoloom.target.host import host
from nanoloom_papers.reproduce import array_files
from nanoloom_papers.reproduce.channeled import Convolution, draw, right, written
from nanoloom_papers.reproduce.channeled_forms import FORMS, tile_of
from nanoloom_papers.reproduce.channeled_peers import halide, loops, open_form
from nanoloom_papers.reproduce.chapter_h import KINDS, listings
from nanoloom_papers.reproduce.jobs import Job
from tests.filecheck import check_text
from tests.notation.programs import kernels
from tests.vector.assembly import count, inner_loops, touches_stack

ODD = Convolution(2, 3, 7, 75, 5)
TILES = """
CHECK: for co in 0..2 by 64 (c):
CHECK-NEXT: for n in 0..5:
CHECK-NEXT: for y in 0..80:
CHECK-NEXT: for xo in 0..20 by 5 (x):
CHECK: fill: fill
CHECK: {{^ *}}for rz in 0..3 (sum):
CHECK-NEXT: for ry in 0..3 (sum):
CHECK-NEXT: for rx in 0..128 (sum):
"""


def nest() -> LoopNest:
    """Of the document's sizes."""
    kernel: Kernel
    (kernel,) = kernels(written(Convolution())).kernels.values()
    return kernel.nest


def job(sizes: Convolution, folder: Path, form: str = "") -> Job:
    arrays = folder / "arrays.npz"
    array_files.save(arrays, draw(sizes))
    facts = {
        "sizes": astuple(sizes),
        "target": to_dict(host()),
        "cache": str(folder / "cache"),
    }
    return Job(1, arrays=str(arrays), task=form, facts=facts)


def test_the_work_of_the_document() -> None:
    sizes = Convolution()
    assert sizes.size == "5x80x100x128, 3x3x128"
    assert sizes.flops == 2 * 5 * 80 * 100 * 128 * 9 * 128
    assert sizes.bytes == 4 * (5 * 82 * 102 * 128 + 9 * 128 * 128 + 128 + 5120000)


def test_what_is_right() -> None:
    """By plain loops over everything; and what is wrong is seen."""
    numbers = draw(ODD)
    image, weights = (numbers[name].astype(np.float64) for name in ("image", "weights"))
    total = np.zeros(ODD.result)
    for rz, ry, rx in np.ndindex(3, 3, ODD.channels):
        part = image[:, rz : rz + ODD.rows, ry : ry + ODD.columns, rx]
        total += part[..., None] * weights[rx, rz, ry]
    good = np.maximum(total + numbers["bias"], 0)
    wanted = right(ODD, numbers)
    np.testing.assert_allclose(wanted.value, good, atol=1e-12)
    assert wanted.complaint(good.astype(np.float32)) == ""
    moved, lacking = np.roll(good, 1, 2), good.copy()
    lacking[1, 2, 6, 74] += 1e-4
    for wrong in (0 * good, moved, lacking, total, good * np.nan):
        assert "wrong result" in wanted.complaint(wrong)


@pytest.mark.parametrize("form", KINDS)
def test_numbers_of_each_schedule(form: str, tmp_path: Path) -> None:
    """Sizes that no tile divides."""
    found = job(ODD, tmp_path, form)
    ready = open_form(found)
    (got,) = ready.outputs()
    assert right(ODD, found.numbers).complaint(got) == ""


def test_numbers_of_loops_in_c(tmp_path: Path) -> None:
    found = job(ODD, tmp_path)
    (got,) = loops(found).outputs()
    assert right(ODD, found.numbers).complaint(got) == ""


def test_halide_is_missed_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "halide", None)
    with pytest.raises(Error, match="Halide is not installed"):
        halide(job(ODD, tmp_path))


@pytest.mark.parametrize(
    ("form", "inside"),
    [
        (
            "early",
            """
    CHECK-NEXT: unrolled x in 0..5:
    CHECK-NEXT: unrolled cv in 0..4 by 16 (c):
    CHECK-NEXT: vector lanesv in 0..16 (c):
    CHECK-NEXT: conv: conv
    """,
        ),
        (
            "late",
            """
    CHECK-NEXT: unrolled x in 0..5:
    CHECK-NEXT: unrolled c in 0..4 by 16:
    CHECK-NEXT: vector cv in 0..16 (c):
    CHECK-NEXT: conv: conv
    """,
        ),
        (
            "vectors",
            """
    CHECK-NEXT: vector xv in 0..5 (x):
    CHECK-NEXT: vector cv in 0..64 (c):
    CHECK-NEXT: conv: conv
    """,
        ),
    ],
)
def test_the_loops_of_the_document(form: str, inside: str) -> None:
    """Of AVX-512: tiles of 5 pixels and 4 vectors; all else is around them."""
    schedule = FORMS[form](tile_of(form, by_name("x86-64-v4")))
    check_text(print_nest(schedule.apply(nest())), TILES + inside + "CHECK: relu: relu")


def test_a_copy_is_shared_by_rows() -> None:
    schedule = FORMS["late-copied"](tile_of("late-copied", by_name("x86-64-v3")))
    check_text(
        print_nest(schedule.apply(nest())),
        """
    CHECK: for yo in 0..10 by 8 (y):
    CHECK-NEXT: for co in 0..8 by 16 (c):
    CHECK: for y in 0..8:
    CHECK-NEXT: for x in 0..17 by 6:
    CHECK-NEXT: for rz in 0..3 (sum):
    CHECK: unrolled xu in 0..6 (x):
    CHECK-NEXT: unrolled cu in 0..2 by 8 (c):
    CHECK: conv: conv{{.*}}, with a copy of arg0
    """,
    )


SCRIPTS = {
    "early": """
    CHECK: tile_sizes [0, 0, 0, 16]
    CHECK: tile_sizes [1, 1, 5, 0]
    CHECK: [[ROWS:%loops[0-9]+]] = {{.*}} tile_sizes [0, 0, 1, 0, 0, 0, 0]
    CHECK: [[VECTORS:%loops[0-9]+]] = {{.*}} tile_sizes [0, 0, 0, 8, 0, 0, 0]
    CHECK: transform.loop.unroll [[VECTORS]] {factor = 2}
    CHECK: transform.loop.unroll [[ROWS]] {factor = 5}
    CHECK: "nanoloom.vectorize"(%conv{{.*}}, %lanes8) {axis = 3 : i64,
    CHECK-NOT: nanoloom.unroll
    """,
    "late": """
    CHECK-NOT: tile_sizes
    CHECK: "nanoloom.vectorize"(%conv{{.*}}, %lanes8) {axis = 3 : i64,
    CHECK: "nanoloom.unroll_and_jam"(%conv{{.*}}) {axis = 2 : i64, count = 5 : i64}
    CHECK: "nanoloom.unroll_and_jam"(%conv{{.*}}) {axis = 3 : i64, count = 2 : i64}
    CHECK: "nanoloom.at_tile"(%conv
    CHECK: "nanoloom.order"(%relu{{.*}}) {axes = [3 : i64, 0 : i64, 1 : i64, 2 : i64]}
    CHECK-NOT: transform.loop.unroll
    """,
    "vectors": """
    CHECK: tile_sizes [1, 1, 5, 0]
    CHECK-NOT: unroll
    CHECK: "nanoloom.vectorize"(%conv{{.*}}, %lanes16) {axis = 3 : i64,
    CHECK: "nanoloom.vectorize"(%conv{{.*}}, %lanes5) {axis = 2 : i64,
    CHECK-NOT: unroll
    """,
}


@pytest.mark.parametrize("form", SCRIPTS)
def test_the_scripts(form: str) -> None:
    schedule = FORMS[form](tile_of(form, by_name("x86-64-v3")))
    check_text(schedule.to_transform(nest()), SCRIPTS[form])


@pytest.mark.drawn
@pytest.mark.parametrize("form", ["early", "late", "vectors"])
@pytest.mark.parametrize(("target", "vectors"), [("x86-64-v3", 2), ("x86-64-v4", 4)])
def test_all_three_are_one_inner_loop(form: str, target: str, vectors: int) -> None:
    """The page says that early unrolling costs nothing here: sums stay in registers."""
    columns = by_name(target).lanes(32) * vectors
    sizes = Convolution(2, 3, 10, 2 * columns, 16)
    text = listings(form, sizes, by_name(target))["s"]
    products = [loop for loop in inner_loops(text) if count(loop, "vfmadd")]
    assert products
    for loop in products:
        assert count(loop, "vfmadd") % (5 * vectors) == 0
        assert not touches_stack(loop)
