"""Plain loops are unrolled by a number; those that collect are LLVM's to unroll."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nanoloom.ir.mlir import context, ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.llvm.unroll_limits import LARGE_OPERATIONS, bound_loops
from nanoloom.target import by_name
from tests.vector.kernel_harness import program_of, run, stage_text

LOOPS = """
func.func @k(%from: memref<3x{steps}xf32>, %to: memref<3x{steps}xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %end = arith.constant {steps} : index
  scf.for %i = %c0 to %c3 step %c1 {{
    scf.for %j = %c0 to %end step %c8 {{
      %x = vector.load %from[%i, %j] : memref<3x{steps}xf32>, vector<8xf32>
      {work}
      vector.store %x, %to[%i, %j] : memref<3x{steps}xf32>, vector<8xf32>
    }}
  }}
  return
}}
"""
ADD = "%y = arith.addf %x, %x : vector<8xf32>"
FMA = "%y = vector.fma %x, %x, %x : vector<8xf32>"
SUM = "vector.store %x, %from[%i, %j] : memref<3x{steps}xf32>, vector<8xf32>"


def annotated(steps: int, work: str = "") -> str:
    with context():
        inner = work.format(steps=8 * steps)
        module = ir.Module.parse(LOOPS.format(steps=8 * steps, work=inner))
        bound_loops(module)
        return str(module)


@pytest.mark.parametrize(("steps", "count"), [(48, 8), (36, 6), (49, 7), (34, 2)])
def test_long_copies_are_bounded(steps: int, count: int) -> None:
    text = annotated(steps)
    assert f"count = {count} : i32" in text and text.count("disable = true") == 1


def test_what_computes_a_little_is_bounded() -> None:
    assert "count = 8 : i32" in annotated(48, ADD)


def test_no_divisor_no_unrolling() -> None:
    text = annotated(37)
    assert "count" not in text and text.count("disable = true") == 1


@pytest.mark.parametrize(("steps", "around"), [(3, 0), (4, 1), (10, 1)])
def test_few_steps_are_llvms_to_unroll(steps: int, around: int) -> None:
    text = annotated(steps)
    assert "count" not in text and text.count("disable = true") == around


@pytest.mark.parametrize("work", [FMA, SUM])
def test_loops_that_collect_are_llvms_to_unroll(work: str) -> None:
    assert "loop_annotation" not in annotated(48, work)


def sliced(builder: Builder, x: Tensor) -> Tensor:
    return builder.slice(x, [0, 3, 0], [14, 3, 384])


def test_the_bound_reaches_llvm_and_the_copy_is_right() -> None:
    program = program_of(sliced, ((14, 14, 384), "float32"))
    text = stage_text(program, "llvm", by_name("x86-64-v3"))
    assert re.search(r'"llvm.loop.unroll.count", i32 \d', text)
    x = np.random.default_rng(0).standard_normal((14, 14, 384), np.float32)
    assert np.array_equal(run(sliced, x), x[:, 3:6])
    assert not np.array_equal(run(sliced, x), x[:, 4:7])


def test_loops_around_much_work_stay_as_they_are() -> None:
    lines = [FMA.replace("%y", f"%y{n}") for n in range(LARGE_OPERATIONS)]
    uses = [
        annotated(3, "\n".join(lines[:count])).count("{loop_annotation = ")
        for count in (1, LARGE_OPERATIONS - 3, LARGE_OPERATIONS)
    ]
    assert uses == [0, 1, 2]  # none, the outer one, both
