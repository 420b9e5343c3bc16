"""The affine path as text: what is carried, what become lanes, what is jammed."""

from __future__ import annotations

import pytest

from nanoloom.ir.mlir import context, ir, named, run_pipeline
from nanoloom.target import by_name
from nanoloom_papers.affine.factors import Factors
from nanoloom_papers.affine.stage import FROM_AFFINE, WAYS, to_vectors
from nanoloom_papers.affine.strategies import StrategyName, Unrolling
from tests.filecheck import check_text
from tests.papers.affine.loops import carrying

FACTORS = Factors.of(by_name("x86-64-v3"), Unrolling(vlen=4, k=1, m=2, n=2))
STRATEGIES: tuple[StrategyName, ...] = ("affine", "plain", "oml", "onnx-mlir")


def product(right: str, rows: int = 5, columns: int = 7, terms: int = 10) -> str:
    """A product whose right operand is read as %B[`right`]."""
    k_first = right.startswith("%k")
    b = f"{terms}x{columns}" if k_first else f"{columns}x{terms}"
    return f"""
func.func @f(%A: memref<{rows}x{terms}xf32>, %B: memref<{b}xf32>,
             %C: memref<{rows}x{columns}xf32>) {{
  affine.for %i = 0 to {rows} {{
    affine.for %j = 0 to {columns} {{
      affine.for %k = 0 to {terms} {{
        %a = affine.load %A[%i, %k] : memref<{rows}x{terms}xf32>
        %b = affine.load %B[{right}] : memref<{b}xf32>
        %c = affine.load %C[%i, %j] : memref<{rows}x{columns}xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<{rows}x{columns}xf32>
      }}
    }}
  }}
  return
}}
"""


def lowered(
    text: str, strategy: StrategyName, factors: Factors = FACTORS, *, fuses: bool = True
) -> str:
    """The loops of a module as a strategy makes them."""
    with context():
        module = ir.Module.parse(text)
        to_vectors(module, strategy, factors, fuses=fuses)
        run_pipeline(module, FROM_AFFINE[:2])
        return str(module)


def test_along_the_sum_where_both_operands_lie_along_it() -> None:
    """Two rows and two columns: four sums of vectors, what is left over as numbers."""
    check_text(
        lowered(product("%j, %k"), "affine"),
        """
        CHECK: affine.for %[[I:.*]] = 0 to 4 step 2
        CHECK: affine.for %[[J:.*]] = 0 to 6 step 2
        CHECK-COUNT-4: affine.load %arg2
        CHECK: affine.for %[[K:.*]] = 0 to 8 step 4 iter_args
        CHECK-COUNT-4: vector.load
        CHECK-COUNT-4: math.fma {{.*}} : vector<4xf32>
        CHECK: affine.yield
        CHECK-COUNT-4: vector.reduction <add>
        CHECK: affine.for %{{.*}} = 8 to 10 iter_args
        CHECK-COUNT-4: math.fma {{.*}} : f32
        CHECK-COUNT-4: affine.store {{.*}} %arg2
        CHECK: affine.for %{{.*}} = 6 to 7
        CHECK: affine.for %{{.*}} = 4 to 5
        """,
    )


def test_along_the_columns_where_those_lie_behind_each_other() -> None:
    text = lowered(product("%k, %j", columns=13), "affine")
    check_text(
        text,
        """
        CHECK: affine.for %[[I:.*]] = 0 to 4 step 2
        CHECK: affine.for %[[J:.*]] = 0 to 8 step 8
        CHECK: affine.for %[[K:.*]] = 0 to 10 iter_args
        CHECK: math.fma {{.*}} : vector<8xf32>
        CHECK: math.fma {{.*}} : vector<8xf32>
        CHECK: affine.yield
        CHECK: affine.for %{{.*}} = 8 to 12 step 4
        CHECK: affine.for %{{.*}} = 12 to 13
        """,
    )
    assert "vector.reduction" not in text


def test_rows_added_to_the_result_in_memory() -> None:
    """The number of the left operand in all lanes, C loaded and stored every 8 steps.

    What is left over of columns are numbers, of steps one by one.
    """
    check_text(
        lowered(product("%k, %j"), "onnx-mlir"),
        """
        CHECK: affine.for %[[I:.*]] = 0 to 4 step 2
        CHECK: affine.for %[[J:.*]] = 0 to 4 step 4
        CHECK: affine.for %[[K:.*]] = 0 to 8 step 8 {
        CHECK-COUNT-2: vector_load %arg2
        CHECK: affine.load %arg0[%{{.*}}, %[[K]]]
        CHECK: vector_load %arg1[%[[K]],
        CHECK-COUNT-2: vector.broadcast
        CHECK-COUNT-2: math.fma
        CHECK: vector_load %arg1[%[[K]] + 7,
        CHECK-COUNT-2: math.fma
        CHECK-COUNT-2: vector_store {{.*}} %arg2
        CHECK: affine.for %{{.*}} = 8 to 10 {
        CHECK: vector_store {{.*}} %arg2
        CHECK: affine.for %{{.*}} = 4 to 7 {
        CHECK: affine.for %{{.*}} = 0 to 8 step 8 {
        CHECK-COUNT-16: math.fma {{.*}} : f32
        """,
    )


def test_a_right_operand_along_the_sum_has_lanes_there() -> None:
    """As ONNX-MLIR multiplies a matrix by a vector; nothing else could be lanes."""
    text = lowered(product("%j, %k"), "onnx-mlir")
    assert text.count("vector.reduction <add>") >= 4 and "iter_args" in text


def test_mlir_alone_sees_no_sum_in_multiply_adds() -> None:
    text = lowered(product("%j, %k"), "oml")
    assert "math.fma" in text and "vector" not in text
    assert "iter_args" in text  # one store for each sum


def test_plain_loops_stay() -> None:
    text = lowered(product("%j, %k"), "plain")
    assert "vector" not in text and "iter_args" not in text and "step" not in text


@pytest.mark.parametrize("k", [1, 2])
def test_a_sum_of_several_vectors(k: int) -> None:
    factors = Factors.of(by_name("x86-64-v3"), Unrolling(vlen=8, k=k, m=1, n=1))
    text = lowered(product("%j, %k", terms=40), "affine", factors)
    assert f"step {8 * k} iter_args" in text and f"vector<{8 * k}xf32>" in text


def test_both_vectorizers_are_asked() -> None:
    """MLIR's takes a sum, and nanoloom's a maximum by comparison."""
    with context():
        ways = WAYS["affine"].vectorizers
    assert ways == ("mlir", "nanoloom")
    total = lowered(carrying("%n = arith.addf %m, %x : f32"), "affine")
    assert "vector.load" in total and "affine.vector_load" not in total
    compared = "%c = arith.cmpf ogt, %x, %m : f32\n%n = arith.select %c, %x, %m : f32"
    largest = lowered(carrying(compared), "affine")
    assert "affine.vector_load" in largest and "vector.shuffle" in largest


REFUSED = [
    "%c = arith.cmpf olt, %x, %m : f32\n%n = arith.select %c, %x, %m : f32",
    "%n = arith.divf %m, %x : f32",
    "%n = arith.subf %x, %m : f32",
    "%n = arith.addf %m, %x : f32\naffine.store %x, %B[7 - %k] : memref<8xf32>",
    "%z = affine.load %B[%k floordiv 2] : memref<8xf32>\n%n = arith.addf %m, %z : f32",
    "%z = affine.load %B[%k mod 4] : memref<8xf32>\n%n = arith.addf %m, %z : f32",
]


@pytest.mark.parametrize("body", REFUSED)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_has_no_form_on_vectors_stays(body: str, strategy: StrategyName) -> None:
    assert "vector" not in lowered(carrying(body), strategy)


ELEMENTS = """
func.func @f(%A: memref<{0}x{1}xf32>, %C: memref<{0}x{1}xf32>) {{
  affine.for %i = 0 to {0} {{
    affine.for %j = 0 to {1} {{
      %a = affine.load %A[{2}] : memref<{0}x{1}xf32>
      %r = math.sqrt %a : f32
      affine.store %r, %C[{3}] : memref<{0}x{1}xf32>
    }}
  }}
  return
}}
"""


@pytest.mark.parametrize("strategy", ["affine", "oml", "onnx-mlir"])
def test_no_vector_goes_past_the_end_of_its_loop(strategy: StrategyName) -> None:
    """MLIR's vectorizer alone writes sixteen numbers here, the last six of nothing."""
    text = lowered(ELEMENTS.format(3, 10, "%i, %j", "%i, %j"), strategy)
    check_text(
        text,
        """
        CHECK: affine.for %{{.*}} = 0 to 8 step 4
        CHECK: math.sqrt {{.*}} : vector<4xf32>
        CHECK: affine.for %{{.*}} = 8 to 10
        CHECK: math.sqrt {{.*}} : f32
        """,
    )


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("%j mod 3, %i", "%i, %j"),
        ("%i, %j", "%i, (%j * 3) mod 12"),
        ("%i, %j", "%i, 0"),
    ],
)
def test_elements_apart_from_each_other_stay_single(read: str, written: str) -> None:
    for strategy in STRATEGIES:
        assert "vector" not in lowered(ELEMENTS.format(12, 12, read, written), strategy)


def test_steps_that_depend_on_each_other_stay_in_order() -> None:
    text = ELEMENTS.format(4, 12, "%i, %j", "%i, %j + 1").replace("to 12", "to 11")
    text = text.replace("%A[", "%C[")
    for strategy in STRATEGIES:
        assert "vector" not in lowered(text, strategy)


def test_products_are_put_together_in_sums_only() -> None:
    body = "%p = arith.mulf %x, %y : f32\n%n = arith.addf %p, %y : f32"
    with context():
        module = ir.Module.parse(carrying(body))
        to_vectors(module, "affine", FACTORS, fuses=True)
        assert not named(module, "math.fma")


def test_a_multiply_add_that_is_no_sum_stays_one() -> None:
    body = "%q = math.fma %x, %y, %y : f32\n%n = arith.addf %m, %q : f32"
    text = lowered(carrying(body), "affine")
    assert text.count("math.fma") == 1 and "math.fma" in text.split("step 4")[1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_multiply_adds_where_a_target_has_none(strategy: StrategyName) -> None:
    assert "math.fma" not in lowered(product("%j, %k"), strategy, fuses=False)
    assert "math.fma" in lowered(product("%j, %k"), strategy)
