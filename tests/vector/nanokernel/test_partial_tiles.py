"""A tile of rows known at run time has versions for few of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nanoloom.cache import Cache
from nanoloom.compiler import Report, partition_model, scheduled
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.kernels.dynamic_program import dynamic_program
from nanoloom.kernels.program import Kernel
from nanoloom.model.source import source_of
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import Nanokernel, Schedule
from nanoloom.schedule.library.decisions import fewer_rows
from nanoloom.target import by_name
from nanoloom.vector.stage import vectorize
from tests.dynamic import models
from tests.filecheck import check_text

SAMPLES = ({"n": 131}, {"n": 137}, {"n": 139})


def product(options: CompileOptions, cache: Cache, columns: int = 50) -> Kernel:
    """x @ w of [n, 37] and [37, columns]."""
    source = source_of(models.rows(columns), cache)
    programs = [
        partition_model(source.entry({"x": (dims["n"], 37)}, {}), options, Report())
        for dims in SAMPLES
    ]
    kernels = dynamic_program(programs, SAMPLES).kernels
    return next(k for name, k in kernels.items() if name.startswith("contraction"))


def vectorized(kernel: Kernel, options: CompileOptions) -> tuple[Schedule, str]:
    schedule = scheduled(kernel, options)
    assert not isinstance(schedule, str)
    with mlir.context():
        module = ir.Module.parse(kernel.text)
        vectorize(module, schedule.to_transform(kernel.nest), options.target)
        return schedule, str(module)


def test_a_panel_that_one_row_reads_is_not_asked_for(tmp_path: Path) -> None:
    """A round asks for so many lines as its tile has rows; none for a single row."""
    options = CompileOptions(by_name("x86-64-v4"))
    _, text = vectorized(product(options, Cache(tmp_path), 300), options)
    check_text(
        text,
        """
    CHECK: [[ASKS:%.*]] = arith.cmpi ugt, [[ALL:%.*]], %c1{{.*}}
    CHECK: [[TIMES:%.*]] = arith.muli [[ALL]], {{.*}}
    CHECK: [[ROUNDS:%.*]] = arith.select [[ASKS]], [[TIMES]], %c0{{.*}}
    CHECK: [[ROWS:%.*]] = affine.min
    CHECK: [[ONE:%.*]] = arith.maxui [[ROUNDS]], %c1{{.*}}
    CHECK: [[OF_ALL:%.*]] = arith.muli [[ROWS]], %c148{{.*}}
    CHECK: [[SHARE:%.*]] = arith.ceildivui [[OF_ALL]], [[ONE]]
    CHECK: [[NEVER:%.*]] = arith.cmpi eq, [[ROUNDS]], %c0{{.*}}
    CHECK: [[SOME:%.*]] = arith.minui [[SHARE]], %c16{{.*}}
    CHECK: [[LINES:%.*]] = arith.select [[NEVER]], %c0{{.*}}, [[SOME]]
    CHECK: scf.for {{.*}} = %c0{{.*}} to [[LINES]] step %c1{{.*}}
    CHECK: memref.prefetch
    """,
    )


def test_rows_that_are_not_there_are_not_stored(tmp_path: Path) -> None:
    """A branch, in place of stores of which a mask leaves nothing."""
    options = CompileOptions(by_name("x86-64-v4"))
    schedule, text = vectorized(product(options, Cache(tmp_path)), options)
    (tile,) = (d for d in schedule.directives if isinstance(d, Nanokernel))
    branch = (
        r"scf\.if (%\S+) {\n((?: +%.*create_mask.*\n| +vector.transfer_write.*\n)+) +}"
    )
    stored = re.findall(branch, text)
    stores = sum(body.count("transfer_write") for _, body in stored)
    assert stores == tile.rows * tile.vectors == text.count("transfer_write")
    assert len({there for there, _ in stored}) == tile.rows


def test_which_versions() -> None:
    """All of more than half of the rows, and powers of two."""
    rows = {
        14: [13, 12, 11, 10, 9, 8, 4, 2, 1],
        8: [7, 6, 5, 4, 2, 1],
        6: [5, 4, 2, 1],
        4: [3, 2, 1],
        2: [1],
        1: [],
    }
    assert {count: fewer_rows(count) for count in rows} == rows


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_versions(name: str, tmp_path: Path) -> None:
    options = CompileOptions(by_name(name))
    kernel = product(options, Cache(tmp_path))
    schedule, text = vectorized(kernel, options)
    (tile,) = (d for d in schedule.directives if isinstance(d, Nanokernel))
    fewer = fewer_rows(tile.rows)
    branches = re.findall(r"scf\.if %\S+ -> \((vector.*)\) {", text)
    counts = [tile.rows, *fewer]
    # What a branch gives: the sums of as many rows as there are at most.
    whole = f"vector<{options.target.vector.bits // 32}xf32>"
    sums = [kinds.count(whole) for kinds in branches if whole in kinds]
    assert fewer and sums == [rows * tile.vectors for rows in counts[:-1]]
    # A round of steps and those that are left of 37, for each version.
    steps = tile.unroll + 37 % tile.unroll
    assert text.count("vector.fma") == sum(counts) * tile.vectors * steps
