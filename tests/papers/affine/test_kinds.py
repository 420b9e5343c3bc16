"""Every kind of reduction in values that a loop carries, in every form of it."""

from __future__ import annotations

import pytest

from nanoloom.ir.mlir import context, ir
from nanoloom.nest.reduction import KINDS
from nanoloom_papers.affine.chain import PASSES_ABSOLUTE
from nanoloom_papers.affine.choice import KEEPS_A_NAN
from nanoloom_papers.affine.detect import GOES_WITH_IT
from nanoloom_papers.affine.step import atomic
from tests.papers.affine.loops import carrying, found, loops, only, upstream

FLOATS = "addf mulf maximumf minimumf maxnumf minnumf"
INTEGERS = "addi muli maxsi minsi maxui minui andi ori xori"
OPERATIONS = [(name, "f32") for name in FLOATS.split()] + [
    (name, "i32") for name in INTEGERS.split()
]


def numbered_kinds() -> set[str]:
    """The names of AtomicRMWKind, as MLIR prints its numbers."""
    text = "func.func @f(%m: memref<f32>, %x: f32) {{\n%0 = memref.atomic_rmw {} %x, "
    text += "%m[] : (f32, memref<f32>) -> f32\nreturn\n}}"
    names: set[str] = set()
    for kind in KINDS:
        word = atomic(kind)
        numbers = text if word.endswith("f") else text.replace("f32", "i32")
        with context():
            module = ir.Module.parse(numbers.format(word))
            names.add(str(module).split("atomic_rmw ")[1].split()[0])
    return names


def test_the_names_are_those_of_mlir() -> None:
    assert numbered_kinds() == set(map(atomic, KINDS))


@pytest.mark.parametrize(("name", "kind"), OPERATIONS)
@pytest.mark.parametrize("operands", ["%m, %x", "%x, %m"])
def test_an_operation(name: str, kind: str, operands: str) -> None:
    text = carrying(f"%n = arith.{name} {operands} : {kind}", kind)
    reduction = only(text)
    assert reduction.kind == atomic(f"arith.{name}")
    assert (reduction.form, reduction.carried, reduction.type) == ("value", "%m", kind)
    assert reduction.operations == (f"arith.{name}",)
    assert not reduction.decomposition and not reduction.obstacle
    (read,) = reduction.reads
    assert (read.element, read.way) == ("%A[%k]", "contiguous")
    assert upstream(text) == 1


# body, kind, decomposition, meaning; type f32
MADE_OF_OTHERS = [
    ("%n = math.fma %x, %y, %m : f32", "addf", "mulf addf", "sum of products"),
    ("%n = math.fma %x, %x, %m : f32", "addf", "mulf addf", "sum of squares"),
    ("%n = arith.subf %m, %x : f32", "addf", "negf addf", "sum"),
    ("%p = arith.mulf %x, %y : f32\n%n = arith.addf %p, %m : f32", "addf", "",
     "sum of products"),
    ("%p = arith.mulf %x, %x : f32\n%n = arith.addf %p, %m : f32", "addf", "",
     "sum of squares"),
    ("%a = math.absf %x : f32\n%n = arith.maximumf %a, %m : f32", "maximumf", "",
     "absolute maximum"),
    ("%a = math.absf %x : f32\n%n = arith.maxnumf %m, %a : f32", "maxnumf", "",
     "absolute maximum"),
    ("%s = arith.addf %m, %x : f32\n%n = arith.addf %y, %s : f32", "addf", "", "sum"),
    ("%s = math.fma %x, %y, %m : f32\n%n = arith.subf %s, %y : f32", "addf",
     "mulf addf negf addf", "sum of products"),
    ("%n = arith.divf %m, %x fastmath<arcp> : f32", "mulf", "divf mulf", "product"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "kind", "parts", "meaning"), MADE_OF_OTHERS)
def test_operations_that_are_made_of_others(
    body: str, kind: str, parts: str, meaning: str
) -> None:
    reduction = only(carrying(body))
    assert (reduction.kind, reduction.meaning) == (kind, meaning)
    assert reduction.decomposition == tuple(parts.split())
    assert not reduction.obstacle


@pytest.mark.parametrize("body", [row[0] for row in MADE_OF_OTHERS])
def test_mlir_itself_sees_single_operations(body: str) -> None:
    """The matcher of MLIR 24: what it takes is one operation that is a kind itself."""
    reduction = only(carrying(body))
    is_one = len(reduction.operations) == 1 and not reduction.decomposition
    assert upstream(carrying(body)) == is_one


def test_a_difference_of_integers_is_a_sum() -> None:
    reduction = only(carrying("%n = arith.subi %m, %x : i32", "i32"))
    assert (reduction.kind, reduction.decomposition) == ("addi", ("subi", "addi"))


# ---- comparisons

FLOAT_CHOICES = [
    ("ogt, %x, %m", "%x, %m", "maxnumf"),
    ("oge, %x, %m", "%x, %m", "maxnumf"),
    ("olt, %m, %x", "%x, %m", "maxnumf"),
    ("ule, %x, %m", "%m, %x", "maxnumf"),
    ("olt, %x, %m", "%x, %m", "minnumf"),
    ("ogt, %m, %x", "%x, %m", "minnumf"),
    ("uge, %x, %m", "%m, %x", "minnumf"),
]
INTEGER_CHOICES = [
    ("sgt, %x, %m", "%x, %m", "maxs"),
    ("sge, %m, %x", "%m, %x", "maxs"),
    ("slt, %x, %m", "%m, %x", "maxs"),
    ("slt, %x, %m", "%x, %m", "mins"),
    ("ugt, %x, %m", "%x, %m", "maxu"),
    ("ule, %m, %x", "%m, %x", "minu"),
]


@pytest.mark.parametrize(("compared", "selected", "kind"), FLOAT_CHOICES)
def test_a_comparison_of_floats(compared: str, selected: str, kind: str) -> None:
    """Ordered by number, a NaN is passed over, unless the loop begins with one."""
    body = f"%c = arith.cmpf {compared} : f32\n%n = arith.select %c, {selected} : f32"
    reduction = only(carrying(body))
    assert (reduction.kind, reduction.decomposition) == (kind, (kind,))
    assert reduction.obstacle == KEEPS_A_NAN
    number = carrying(body).replace("%m = %init", "%m = %zero")
    begun = number.replace(
        "affine.for %j", "%zero = arith.constant 0.0 : f32\naffine.for %j"
    )
    assert not only(begun).obstacle
    assert only(begun.replace("0.0 : f32", "0x7fc00000 : f32")).obstacle == KEEPS_A_NAN


@pytest.mark.parametrize(("compared", "selected", "kind"), INTEGER_CHOICES)
def test_a_comparison_of_integers(compared: str, selected: str, kind: str) -> None:
    body = f"%c = arith.cmpi {compared} : i32\n%n = arith.select %c, {selected} : i32"
    reduction = only(carrying(body, "i32"))
    assert (reduction.kind, reduction.obstacle) == (kind, "")


def test_without_nans_any_order_is_a_choice() -> None:
    body = "%c = arith.cmpf ugt, %x, %m {} : f32\n%n = arith.select %c, %x, %m : f32"
    assert not found(carrying(body.format("")))
    assert only(carrying(body.format("fastmath<nnan>"))).obstacle == ""


NEGATIVES = ["%o = arith.negf %x : f32", "%o = arith.subf %zero, %x : f32"]
CHOSEN = "%c = arith.cmpf {0}, {1} : f32\n%a = arith.select %c, {2} : f32"
# Comparisons, what they select, and a comparison that selects the smaller one.
ABSOLUTES = [
    (CHOSEN, "ogt", "%x, %zero", "%x, %o", "olt"),
    (CHOSEN, "ult", "%x, %zero", "%o, %x", "ogt"),
    (CHOSEN, "olt", "%zero, %o", "%o, %x", "ogt"),
    (CHOSEN, "oge", "%x, %o", "%x, %o", "ole"),
    ("%a = arith.{0}imumf {1} : f32", "max", "%o, %x", "", "min"),
]


def absolute(negative: str, chosen: str, kind: str = "f32") -> str:
    """What a loop over a largest number of such values means."""
    word = {"f32": "maxnumf", "i32": "maxsi"}[kind]
    zero = {"f32": "0.0", "i32": "0"}[kind]
    largest = f"%n = arith.{word} %m, %a : {kind}"
    body = "\n".join([f"%zero = arith.constant {zero} : {kind}", negative, chosen])
    return only(carrying(f"{body}\n{largest}", kind)).meaning


@pytest.mark.parametrize("negative", NEGATIVES)
@pytest.mark.parametrize(("text", "order", "pair", "selected", "other"), ABSOLUTES)
def test_an_absolute_value_is_chosen(
    negative: str, text: str, order: str, pair: str, selected: str, other: str
) -> None:
    right = text.format(order, pair, selected)
    assert absolute(negative, right) == "absolute maximum"
    assert absolute(negative, text.format(other, pair, selected)) == "maximum"


def test_a_choice_that_is_no_absolute_value() -> None:
    negative, chosen = NEGATIVES[0], CHOSEN.format("ogt", "%x, %zero", "%x, %o")
    assert absolute(negative, chosen.replace("%x, %zero", "%y, %zero")) == "maximum"
    assert absolute(negative, chosen.replace("%x, %zero", "%x, %y")) == "maximum"
    assert absolute("%o = arith.negf %y : f32", chosen) == "maximum"
    assert absolute(negative, "%a = arith.minimumf %o, %x : f32") == "maximum"


def test_an_absolute_value_of_integers() -> None:
    negative = "%o = arith.subi %zero, %x : i32"
    chosen = "%c = arith.cmpi sgt, %x, %zero : i32\n%a = arith.select %c, %x, %o : i32"
    assert absolute(negative, chosen, "i32") == "absolute maximum"
    assert absolute(negative, chosen.replace("sgt", "ugt"), "i32") == "maximum"
    assert absolute(negative, "%a = arith.maxsi %x, %o : i32", "i32") == (
        "absolute maximum"
    )


def test_an_absolute_value_of_what_is_carried() -> None:
    body = "%a = math.absf %m : f32\n%b = math.absf %x : f32\n"
    reduction = only(carrying(body + "%n = arith.maximumf %a, %b : f32"))
    assert (reduction.kind, reduction.obstacle) == ("maximumf", PASSES_ABSOLUTE)
    assert not found(carrying(body + "%n = arith.minimumf %a, %b : f32"))
    assert not found(carrying(body + "%n = arith.addf %a, %b : f32"))


def test_a_division_is_found_but_stays_as_it_is() -> None:
    reduction = only(carrying("%n = arith.divf %m, %x : f32"))
    assert reduction.kind == "mulf" and "no product" in reduction.obstacle


# ---- several values

SEVERAL = """
func.func @f(%A: memref<8xf32>, %at: index) -> (f32, f32, f32, index) {{
  %z = arith.constant 0.0 : f32
  %r:4 = affine.for %k = 0 to 8 iter_args(%s = %z, %q = %z, %m = %z, %p = %at)
      -> (f32, f32, f32, index) {{
    %x = affine.load %A[%k] : memref<8xf32>
    %t = arith.addf %s, %x : f32
    %u = math.fma %x, %x, %q : f32
    {}
    affine.yield %t, %u, %n, %l : f32, f32, f32, index
  }}
  return %r#0, %r#1, %r#2, %r#3 : f32, f32, f32, index
}}
"""
FOLLOWS = "%c = arith.cmpf ogt, %x, %m : f32\n"
PAIRS = [
    (FOLLOWS + "%n = arith.select %c, %x, %m : f32\n"
     "%l = arith.select %c, %k, %p : index", True),
    (FOLLOWS + "%n = arith.maxnumf %x, %m : f32\n"
     "%l = arith.select %c, %k, %p : index", True),
    ("%c = arith.cmpf oge, %m, %x : f32\n%n = arith.maxnumf %x, %m : f32\n"
     "%l = arith.select %c, %p, %k : index", True),
    # The place of what is not taken, and of another value.
    (FOLLOWS + "%n = arith.select %c, %x, %m : f32\n"
     "%l = arith.select %c, %p, %k : index", False),
    (FOLLOWS + "%n = arith.minnumf %x, %m : f32\n"
     "%l = arith.select %c, %k, %p : index", False),
    (FOLLOWS + "%n = arith.select %c, %x, %m : f32\n"
     "%o = arith.select %c, %k, %at : index\n%l = arith.addi %p, %o : index", False),
]  # fmt: skip


@pytest.mark.parametrize(("body", "is_pair"), PAIRS)
def test_a_maximum_and_its_place_beside_sums(body: str, is_pair: bool) -> None:
    text = SEVERAL.format(body)
    kinds = {each.carried: each for each in found(text)}
    assert {name: each.kind for name, each in kinds.items() if name in "%s%q"} == {
        "%s": "addf",
        "%q": "addf",
    }
    assert not kinds["%s"].obstacle and not kinds["%q"].obstacle
    assert ("%m" in kinds) == is_pair
    if is_pair:
        assert (kinds["%m"].kind, kinds["%m"].pair) == ("maxnumf", "%p")
        assert kinds["%m"].obstacle == GOES_WITH_IT


def test_a_loop_around_a_reduction_reduces_as_well() -> None:
    text = """
func.func @f(%A: memref<4x8xf32>, %init: f32) -> f32 {
  %r = affine.for %i = 0 to 4 iter_args(%m = %init) -> f32 {
    %s = affine.for %k = 0 to 8 iter_args(%n = %m) -> f32 {
      %x = affine.load %A[%i, %k] : memref<4x8xf32>
      %t = math.fma %x, %x, %n : f32
      affine.yield %t : f32
    }
    affine.yield %s : f32
  }
  return %r : f32
}
"""
    outer, inner = loops(text).values()
    assert [each.kind for each in (*outer.reductions, *inner.reductions)] == [
        "addf"
    ] * 2
    assert outer.reductions[0].decomposition == ("mulf", "addf")
    assert [read.way for read in outer.reductions[0].reads] == ["strided"]
    assert (outer.innermost, inner.innermost) == (False, True)
    assert (outer.depth, inner.depth, outer.trips, inner.trips) == (0, 1, 4, 8)
    mixed = text.replace(
        "affine.yield %s", "%p = arith.mulf %s, %s : f32\naffine.yield %p"
    )
    assert not found(mixed, "%i") and found(mixed, "%k")
