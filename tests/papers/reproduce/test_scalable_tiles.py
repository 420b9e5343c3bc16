"""Scripts whose tiles and vectors are of sizes made once."""

from __future__ import annotations

import re

import pytest

from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.schedule.transform_writer import ANY, PARAMETER
from nanoloom.vector.transform_ops import load_operations
from nanoloom_papers.reproduce.scalable_mlir import match, passed, script, transformed
from nanoloom_papers.reproduce.scalable_operations import KERNELS, Kernel
from nanoloom_papers.reproduce.scalable_tiles import tiled_and_vectorized
from tests.filecheck import check_text

(ELEMENTWISE,) = (kernel for kernel in KERNELS if kernel.name == "elementwise")
FAILS = "convolution of rows"  # MLIR vectorizes it in no way


def applied(kernel: Kernel, *scripts: str) -> str:
    """A kernel's code after some scripts."""
    with mlir.context():
        load_operations()
        module = ir.Module.parse(kernel.text)
        for text in scripts:
            transformed(module, text)
        passed(module, ("canonicalize", "cse"))
        return str(module)


def by_numbers(kernel: Kernel) -> tuple[str, str]:
    """Scripts in which the sizes stand as numbers, in each operation."""
    count = kernel.tiles.count(",") + 1
    loops = f"%loops:{count}" if count > 1 else "%loops"
    results = ", ".join([ANY] * (count + 1))
    words = " {create_named_contraction}" if kernel.contracts else ""
    tile = (
        f"%tiled, {loops} = transform.structured.tile_using_for %op "
        f"tile_sizes [{kernel.tiles}] : ({ANY}) -> ({results})"
    )
    vectorize = (
        f"transform.structured.vectorize %op vector_sizes [{kernel.tiles}]{words} "
        f": {ANY}"
    )
    found = match("op", kernel.match)
    return script(found, tile), script(found, vectorize)


def lines(code: str) -> list[str]:
    """Code but for the numbers of values and the order in which constants stand."""
    return sorted(re.sub(r"(%|#map)\w+", r"\1", code).splitlines())


@pytest.mark.parametrize(
    "kernel", [x for x in KERNELS if x.name != FAILS], ids=lambda kernel: kernel.name
)
def test_the_code_is_that_of_numbers(kernel: Kernel) -> None:
    text = tiled_and_vectorized(kernel.match, kernel.tiles, contracts=kernel.contracts)
    code = applied(kernel, text)
    assert lines(code) == lines(applied(kernel, *by_numbers(kernel)))
    assert "vector<" in code and "_vscale" in code


def test_a_size_is_made_once_and_read_by_both() -> None:
    check_text(
        tiled_and_vectorized("linalg.matmul", "8, [4], 1", contracts=True),
        """
        CHECK: %size0 = transform.param.constant 8 : i64
        CHECK: %size1 = transform.param.constant 4 : i64
        CHECK: %scaled1 = "nanoloom.scaled"(%op, %size1)
        CHECK: tile_using_for %op tile_sizes [%size0, %scaled1, %size2]
        CHECK: "transform.structured.vectorize"(%tiled, %size0, %size1, %size2)
        CHECK-SAME: array<i1: false, true, false>
        """,
    )


def test_mlir_alone_tiles_a_scalable_parameter_as_a_number() -> None:
    """Why there is an operation of our own: this loop's steps do not grow."""
    unscaled = script(
        match("op", ELEMENTWISE.match),
        f"%size = transform.param.constant 4 : i64 -> {PARAMETER}",
        '%tiled, %loops = "transform.structured.tile_using_for"(%op, %size) '
        f"<{{static_sizes = array<i64: {-(2**63)}>, scalable_sizes = array<i1: true>}}>"
        f" : ({ANY}, {PARAMETER}) -> ({ANY}, {ANY})",
    )
    assert "vscale" not in applied(ELEMENTWISE, unscaled)
