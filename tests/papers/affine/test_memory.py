"""Elements of buffers that are loaded, combined and stored again in each step."""

from __future__ import annotations

import pytest

from tests.papers.affine.loops import found, loops, only, updating

LOAD = "%c = affine.load %C[%i, %j] : memref<4x6xf32>\n"
ADD = "%s = arith.addf %c, %x : f32\n"
STORE = "affine.store %s, %C[%i, %j] : memref<4x6xf32>\n"
UPDATE = LOAD + ADD + STORE


def test_a_sum_in_memory() -> None:
    reduction = only(updating(UPDATE))
    assert (reduction.kind, reduction.form) == ("addf", "memory")
    assert (reduction.carried, reduction.type) == ("%C[%i, %j]", "f32")
    assert [(read.element, read.way) for read in reduction.reads] == [
        ("%A[%i, %k]", "contiguous")
    ]


def test_loops_that_move_the_element_reduce_nothing() -> None:
    nest = loops(updating(UPDATE))
    assert not nest["%i"].reductions and not nest["%j"].reductions


def test_a_loop_outside_of_one_over_elements() -> None:
    """Figure 2's order: a row of C is loaded and stored for each k."""
    text = """
func.func @f(%A: memref<4x8xf32>, %B: memref<8x6xf32>, %C: memref<4x6xf32>) {
  affine.for %i = 0 to 4 {
    affine.for %k = 0 to 8 {
      affine.for %j = 0 to 6 {
        %a = affine.load %A[%i, %k] : memref<4x8xf32>
        %b = affine.load %B[%k, %j] : memref<8x6xf32>
        %c = affine.load %C[%i, %j] : memref<4x6xf32>
        %s = math.fma %a, %b, %c : f32
        affine.store %s, %C[%i, %j] : memref<4x6xf32>
      }
    }
  }
  return
}
"""
    nest = loops(text)
    assert not nest["%i"].reductions and not nest["%j"].reductions
    (reduction,) = nest["%k"].reductions
    assert (reduction.kind, reduction.meaning) == ("addf", "sum of products")
    assert [read.way for read in reduction.reads] == ["contiguous", "strided"]


def test_the_same_place_in_other_words() -> None:
    """Through affine.apply, and with a number that is added and taken off again."""
    apply = "%p = affine.apply affine_map<(d0) -> (d0 * 2 + 1)>(%j)\n"
    store = (
        "affine.store %s, %C[%i, -symbol(%n) + %p - %j - 1 + symbol(%n)]"
        " : memref<4x6xf32>\n"
    )
    assert only(updating(apply + LOAD + ADD + store)).carried == "%C[%i, %j]"


NONE = [
    # another place
    (LOAD + ADD + STORE.replace("%j", "%j + 1"), ""),
    (LOAD.replace("%j", "0") + ADD + STORE, ""),
    # one that moves
    (UPDATE.replace("%i, %j", "%i, %k mod 2"), ""),
    (UPDATE.replace("%i, %j", "%i, %k floordiv 4"), ""),
    ("%q = affine.load %at[%k] : memref<8xindex>\n"
     + UPDATE.replace("affine.load %C", "memref.load %C")
     .replace("affine.store", "memref.store").replace("%i, %j", "%i, %q"), ""),
    # stored first, or not combined
    (STORE.replace("%s", "%x") + LOAD + ADD, ""),
    (LOAD + STORE.replace("%s", "%x"), ""),
    (LOAD + "%s = arith.subf %x, %c : f32\n" + STORE, ""),
    # used besides
    (UPDATE + "affine.store %s, %D[%i, %j] : memref<4x6xf32>", ""),
    (UPDATE + "affine.store %c, %D[%i, %k mod 4] : memref<4x6xf32>", ""),
    # reached by others in the loop
    (UPDATE + "%e = affine.load %C[%i, %k] : memref<4x6xf32>", ""),
    (UPDATE + "affine.store %x, %C[%i, %k] : memref<4x6xf32>", ""),
    (UPDATE + UPDATE.replace("%c", "%d").replace("%s", "%t"), ""),
    (UPDATE + "%e = memref.load %C[%i, %j] : memref<4x6xf32>", ""),
    (UPDATE + "func.call @g(%x) : (f32) -> ()", ""),
    (UPDATE + "memref.copy %D, %C : memref<4x6xf32> to memref<4x6xf32>", ""),
    (UPDATE + "affine.store %x, %V[%i, %k] : memref<4x6xf32, strided<[6, 1]>>",
     "%V = memref.subview %C[0, 0] [4, 6] [1, 1] : memref<4x6xf32> to "
     "memref<4x6xf32, strided<[6, 1]>>"),
    (UPDATE + "affine.store %x, %V[%i, %k] : memref<4x6xf32>",
     "%V = func.call @h() : () -> memref<4x6xf32>"),
    (UPDATE.replace("%C", "%V") + "%W = memref.get_global @w : memref<4x6xf32>\n"
     "affine.store %x, %W[%i, %k] : memref<4x6xf32>",
     "%V = memref.get_global @w : memref<4x6xf32>"),
    # in another region
    ("affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%k) {\n" + UPDATE + "}", ""),
    # a buffer of each step
    (UPDATE.replace("%C[%i, %j]", "%V[]").replace("4x6x", ""), None),
]  # fmt: skip
DECLARED = """
memref.global @w : memref<4x6xf32>
func.func private @g(f32)
func.func private @h() -> memref<4x6xf32>
"""


@pytest.mark.parametrize(("body", "before"), NONE)
def test_no_reduction(body: str, before: str | None) -> None:
    if before is None:
        body, before = "%V = memref.alloc() : memref<f32>\n" + body, ""
    assert not found(DECLARED + updating(body, before))


SOME = [
    # read and written elsewhere, in other memory or at other places
    (UPDATE + "affine.store %x, %D[%i, %j] : memref<4x6xf32>", ""),
    (UPDATE + "affine.store %x, %V[%i, %k] : memref<4x8xf32>",
     "%V = memref.alloc() : memref<4x8xf32>"),
    (UPDATE.replace("%j", "0") + "affine.store %x, %C[%i, 1] : memref<4x6xf32>", ""),
    (UPDATE + "%V = memref.get_global @w : memref<4x6xf32>\n"
     "%e = affine.load %V[%i, %j] : memref<4x6xf32>", ""),
    # in a buffer around the loop
    (UPDATE.replace("%C[%i, %j]", "%V[]").replace("4x6x", ""),
     "%V = memref.alloca() : memref<f32>"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "before"), SOME)
def test_other_memory_does_not_matter(body: str, before: str) -> None:
    assert only(DECLARED + updating(body, before)).kind == "addf"


def test_two_elements_of_a_buffer() -> None:
    first = UPDATE.replace("%j", "0")
    second = UPDATE.replace("%j", "1").replace("%c", "%d").replace("%s", "%t")
    second = second.replace("addf", "maximumf")
    kinds = [each.kind for each in found(updating(first + second))]
    assert kinds == ["addf", "maximumf"]


def test_a_value_that_goes_through_a_loop_further_in() -> None:
    inner = """
%s = affine.for %l = 0 to 3 iter_args(%m = %c) -> f32 {
  %t = arith.addf %m, %x : f32
  affine.yield %t : f32
}
"""
    nest = loops(updating(LOAD + inner + STORE))
    assert [each.form for each in nest["%k"].reductions] == ["memory"]
    assert [each.form for each in nest["%l"].reductions] == ["value"]
    (read,) = nest["%l"].reductions[0].reads or (None,)
    assert read is None  # %x is the same in all of its steps
