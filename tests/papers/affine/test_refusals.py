"""What looks like a reduction and is none is not listed."""

from __future__ import annotations

import pytest

from tests.papers.affine.loops import carrying, found, upstream

FLOATS = [
    # the wrong operand
    "%n = arith.subf %x, %m : f32",
    "%n = arith.divf %x, %m : f32",
    "%n = arith.remf %m, %x : f32",
    "%n = math.fma %m, %x, %y : f32",
    "%n = math.fma %x, %m, %y : f32",
    "%n = math.powf %m, %x : f32",
    # used besides
    "%n = arith.addf %m, %x : f32\naffine.store %n, %B[%k] : memref<8xf32>",
    "%n = arith.addf %m, %x : f32\naffine.store %m, %B[%k] : memref<8xf32>",
    "%n = arith.addf %m, %m : f32",
    "%n = math.fma %m, %x, %m : f32",
    "%s = arith.mulf %m, %x : f32\n%n = arith.addf %m, %s : f32",
    "%s = arith.addf %m, %x : f32\n%t = math.exp %s : f32\n"
    "%n = arith.addf %s, %t : f32",
    # of two kinds, or of none
    "%s = arith.addf %m, %x : f32\n%n = arith.mulf %s, %y : f32",
    "%s = arith.maximumf %m, %x : f32\n%n = arith.minimumf %s, %y : f32",
    "%s = arith.maximumf %m, %x : f32\n%n = arith.maxnumf %s, %y : f32",
    "%s = arith.addf %m, %x : f32\n%n = math.exp %s : f32",
    "%s = arith.negf %m : f32\n%n = arith.addf %s, %x : f32",
    "%n = math.absf %m : f32",
    "%s = arith.maximumf %m, %x : f32\n%n = math.absf %s : f32",
    # rounded in each step
    "%s = arith.addf %m, %x : f32\n%h = arith.truncf %s : f32 to f16\n"
    "%n = arith.extf %h : f16 to f32",
    # comparisons that choose nothing by order, or something else
    "%c = arith.cmpf oeq, %x, %m : f32\n%n = arith.select %c, %x, %m : f32",
    "%c = arith.cmpf one, %x, %m : f32\n%n = arith.select %c, %x, %m : f32",
    "%c = arith.cmpf ogt, %x, %m : f32\n%n = arith.select %c, %y, %m : f32",
    "%c = arith.cmpf ogt, %x, %y : f32\n%n = arith.select %c, %x, %m : f32",
    # a NaN is taken and forgotten again
    "%c = arith.cmpf ult, %x, %m : f32\n%n = arith.select %c, %x, %m : f32",
    "%c = arith.cmpf ogt, %x, %m : f32\n%n = arith.select %c, %m, %x : f32",
    "%c = arith.cmpf ogt, %m, %x : f32\n%n = arith.select %c, %m, %x : f32",
    # the comparison serves something else
    "%c = arith.cmpf ogt, %x, %m : f32\n%n = arith.select %c, %x, %m : f32\n"
    "%d = arith.extui %c : i1 to i32",
    "%c = arith.cmpf ogt, %x, %m : f32\n%n = arith.select %c, %x, %m : f32\n"
    "%o = arith.select %c, %x, %y : f32\naffine.store %o, %B[%k] : memref<8xf32>",
    # steps in another region
    "%n = scf.execute_region -> f32 {\n%s = arith.addf %m, %x : f32\n"
    "scf.yield %s : f32\n}",
    "%n = affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%k) -> f32 {\n"
    "%s = arith.addf %m, %x : f32\naffine.yield %s : f32\n} else {\n"
    "affine.yield %m : f32\n}",
    # nothing is combined
    "%n = arith.addf %x, %y : f32",
    "%n = arith.constant 1.0 : f32",
]
INTEGERS = [
    "%n = arith.subi %x, %m : i32",
    "%n = arith.divsi %m, %x : i32",
    "%n = arith.shli %m, %x : i32",
    "%n = arith.addi %m, %m : i32",
    "%c = arith.cmpi eq, %x, %m : i32\n%n = arith.select %c, %x, %m : i32",
    "%c = arith.cmpi ne, %x, %m : i32\n%n = arith.select %c, %x, %m : i32",
    "%s = arith.maxsi %m, %x : i32\n%n = arith.maxui %s, %y : i32",
    "%s = arith.ori %m, %x : i32\n%n = arith.andi %s, %y : i32",
]


@pytest.mark.parametrize("body", FLOATS)
def test_no_reduction_of_floats(body: str) -> None:
    assert not found(carrying(body))


@pytest.mark.parametrize("body", INTEGERS)
def test_no_reduction_of_integers(body: str) -> None:
    assert not found(carrying(body, "i32"))


def test_what_is_carried_unchanged_is_none() -> None:
    text = carrying("%n = arith.addf %m, %x : f32")
    assert found(text) and not found(text.replace("yield %n", "yield %m"))


@pytest.mark.parametrize(("order", "count"), [("%s, %t", 2), ("%t, %s", 0)])
def test_values_that_change_places(order: str, count: int) -> None:
    text = f"""
func.func @f(%A: memref<8xf32>, %init: f32) -> (f32, f32) {{
  %r:2 = affine.for %k = 0 to 8 iter_args(%m = %init, %n = %init) -> (f32, f32) {{
    %x = affine.load %A[%k] : memref<8xf32>
    %s = arith.addf %m, %x : f32
    %t = arith.addf %n, %x : f32
    affine.yield {order} : f32, f32
  }}
  return %r#0, %r#1 : f32, f32
}}
"""
    assert len(found(text)) == count
    assert upstream(text) in (0, count)
