"""A tile of rows known at run time has versions for few of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nanoloom import mlir
from nanoloom.cache import Cache
from nanoloom.compiler import Report, cut_model, scheduled
from nanoloom.kernels.program import Kernel
from nanoloom.kernels.sized import sized_program
from nanoloom.mlir import ir
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import Nanokernel
from nanoloom.source import source_of
from nanoloom.target import by_name
from nanoloom.vector.stage import vectorize
from tests.sizes import models

SAMPLES = ({"n": 131}, {"n": 137}, {"n": 139})


def product(options: CompileOptions, cache: Cache) -> Kernel:
    """x @ w of [n, 37] and [37, 50]."""
    source = source_of(models.rows(), cache)
    programs = [
        cut_model(source.entry({"x": (dims["n"], 37)}, {}), options, Report())
        for dims in SAMPLES
    ]
    kernels = sized_program(programs, SAMPLES).kernels
    return next(k for name, k in kernels.items() if name.startswith("contraction"))


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_versions(name: str, tmp_path: Path) -> None:
    options = CompileOptions(by_name(name))
    kernel = product(options, Cache(tmp_path))
    schedule = scheduled(kernel, options)
    assert not isinstance(schedule, str)
    with mlir.context():
        module = ir.Module.parse(kernel.text)
        vectorize(module, schedule.to_transform(kernel.nest), options.target)
        text = str(module)
    (tile,) = (d for d in schedule.directives if isinstance(d, Nanokernel))
    fewer = [rows for rows in (4, 2, 1) if rows < tile.rows]
    branches = re.findall(r"scf\.if %\S+ -> \((vector.*)\) {", text)
    counts = [tile.rows, *fewer]
    # What a branch gives: the sums of as many rows as there are at most.
    sums = [kinds.count("vector<") for kinds in branches]
    assert fewer and sums == [rows * tile.vectors for rows in counts[:-1]]
    # A round of steps and those that are left of 37, for each version.
    steps = tile.unroll + 37 % tile.unroll
    assert text.count("vector.fma") == sum(counts) * tile.vectors * steps
