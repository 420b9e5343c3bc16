"""Bodies on vectors: what has a vector form, what stays one number, what counts up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nanoloom.ir.access import index
from nanoloom.ir.linalg_query import body
from nanoloom.ir.mlir import arith, context, ir, named, vector
from nanoloom.nest.extent import Lanes
from nanoloom.vector.body import (
    Lane,
    Uniform,
    Vector,
    VectorBody,
    filler,
    gathers,
    is_vectorizable,
)
from tests.filecheck import check_text


@pytest.fixture(autouse=True)
def _mlir() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with context():
        yield


def generic(lines: str, result: str = "%r", kind: str = "f32") -> tuple[Any, Any]:
    """A generic over 4 x 8 whose body has these lines; %x is its input."""
    module = ir.Module.parse(f"""
      func.func @f(%a: memref<4x8xf32>, %b: memref<4x8x{kind}>, %t: memref<9xf32>) {{
        linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
            affine_map<(d0, d1) -> (d0, d1)>],
            iterator_types = ["parallel", "parallel"]}}
            ins(%a : memref<4x8xf32>) outs(%b : memref<4x8x{kind}>) {{
        ^bb0(%x: f32, %y: {kind}):
          {lines}
          linalg.yield {result} : {kind}
        }}
        return
      }}""")
    (op,) = named(module, "linalg.generic")
    return module, op


def emitted(op: Any, lanes: int = 8) -> tuple[Any, str]:
    """What a body yields on vectors along dimension 1, and the text it became."""
    with ir.InsertionPoint(op), ir.Location.unknown():
        kind = ir.VectorType.get([lanes], ir.F32Type.get())
        x = vector.broadcast(kind, arith.constant(ir.F32Type.get(), 2.0))
        emitter = VectorBody(Lanes(lanes), 1, [index(3), index(16)])
        emitter.values[body(op).arguments[0]] = Vector(x)
        (made,) = emitter.emit(body(op))
        emitter.vector(made)
    text = str(op.operation.parent)
    return made, text[: text.index("linalg.generic")]


@pytest.mark.parametrize(
    ("lines", "good"),
    [
        ("%r = arith.addf %x, %x : f32", True),
        ("%r = math.exp %x : f32", True),
        ("%r = math.sqrt %x : f32", True),
        ("%i = linalg.index 1 : index\n %r = memref.load %t[%i] : memref<9xf32>", True),
        ("%c = arith.cmpf ogt, %x, %x : f32\n %r = arith.select %c, %x, %y : f32",
         True),
        ("%c = arith.cmpf ogt, %x, %x : f32\n %r = scf.if %c -> f32 { "
         "scf.yield %x : f32 } else { scf.yield %x : f32 }", False),
        ("%w = arith.extf %x : f32 to f64\n %e = math.sin %w : f64\n"
         " %r = arith.truncf %e : f64 to f32", False),
    ],
)  # fmt: skip
def test_what_has_a_vector_form(lines: str, good: bool) -> None:
    module, op = generic(lines)
    assert is_vectorizable(body(op), 1) is good
    assert module


@pytest.mark.parametrize(
    ("lines", "dim", "apart"),
    [
        ("%i = linalg.index 1 : index\n %r = memref.load %t[%i] : memref<9xf32>", 1,
         False),
        ("%i = linalg.index 1 : index\n %r = memref.load %t[%i] : memref<9xf32>", 0,
         False),
        ("%i = linalg.index 1 : index\n %j = arith.addi %i, %i : index\n"
         " %r = memref.load %t[%j] : memref<9xf32>", 1, True),
        ("%n = arith.fptosi %x : f32 to i64\n %i = arith.index_cast %n : i64 to index\n"
         " %r = memref.load %t[%i] : memref<9xf32>", 1, True),
        ("%r = arith.addf %x, %x : f32", 1, False),
    ],
)  # fmt: skip
def test_lanes_that_load_apart(lines: str, dim: int, apart: bool) -> None:
    """Lanes that follow each other, or are one place, are loaded through a mask."""
    module, op = generic(lines)
    assert gathers(body(op), dim) is apart
    assert module


def test_arithmetic_is_done_on_vectors() -> None:
    module, op = generic("%s = arith.mulf %x, %x : f32\n %r = math.absf %s : f32")
    made, text = emitted(op)
    assert isinstance(made, Vector)
    assert "arith.mulf" in text
    assert "math.absf" in text
    assert text.count("vector<8xf32>") >= 3
    assert module


def test_constants_stay_one_number_until_they_meet_a_vector() -> None:
    lines = """%c = arith.constant 3.0 : f32
    %d = arith.mulf %c, %c : f32
    %r = arith.addf %d, %x : f32"""
    module, op = generic(lines)
    made, text = emitted(op)
    assert isinstance(made, Vector)
    assert "arith.mulf %cst" in text
    assert text.count(": vector<8xf32>") == 1 + text.count("dense<")
    assert module


def test_the_index_of_another_dimension_is_one_number() -> None:
    lines = """%i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %r = arith.sitofp %j : i32 to f32"""
    module, op = generic(lines)
    made, _ = emitted(op)
    assert isinstance(made, Uniform)
    assert module


def test_the_index_along_the_vector_counts_up() -> None:
    module, op = generic(
        """%i = linalg.index 1 : index
    %c = arith.constant 5 : index
    %k = arith.addi %i, %c : index
    %r = arith.index_cast %k : index to i64""",
        kind="i64",
    )
    made, text = emitted(op)
    assert isinstance(made, Lane)
    assert "vector.step" in text  # made when the yielded value is asked for as a vector
    assert module


def test_a_product_of_the_index_is_a_vector_of_its_own() -> None:
    module, op = generic(
        """%i = linalg.index 1 : index
    %r = arith.muli %i, %i : index""",
        kind="index",
    )
    made, text = emitted(op)
    assert isinstance(made, Vector)
    assert "arith.muli" in text
    assert module


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ("%i = linalg.index 0 : index", "memref.load"),
        ("%i = linalg.index 1 : index", "vector.load"),
        ("%j = linalg.index 1 : index\n %i = arith.muli %j, %j : index",
         "vector.from_elements"),
    ],
)  # fmt: skip
def test_loads_in_a_body(lines: str, word: str) -> None:
    """The same place, places side by side, places that data choose."""
    module, op = generic(f"{lines}\n %r = memref.load %t[%i] : memref<9xf32>")
    _, text = emitted(op)
    assert word in text
    assert text.count("memref.load") == {"memref.load": 1, "vector.load": 0}.get(
        word, 8
    )
    assert module


def test_masked_lanes_hold_one() -> None:
    """It divides without a trap, in floats and integers."""
    module = ir.Module.parse("func.func @f() { return }")
    block = module.body.operations[0].operation.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(block):
        values = [
            filler(kind).owner.attributes["value"].value
            for kind in (ir.F32Type.get(), ir.IntegerType.get_signless(8))
        ]
    assert values == [1.0, 1]


def test_the_low_halves_of_i64_are_shuffled() -> None:
    """As rounding to integers needs them: numbers become i64, and i32 again."""
    lines = "%w = arith.fptosi %x : f32 to i64  %r = arith.trunci %w : i64 to i32"
    _, op = generic(lines, kind="i32")
    _, text = emitted(op)
    assert "arith.trunci" not in text
    check_text(
        text,
        """
    CHECK: [[WIDE:%.*]] = arith.fptosi {{.*}} : vector<8xf32> to vector<8xi64>
    CHECK: [[HALVES:%.*]] = vector.bitcast [[WIDE]] : vector<8xi64> to vector<16xi32>
    CHECK: vector.shuffle [[HALVES]], [[HALVES]] [0, 2, 4, 6, 8, 10, 12, 14]
    """,
    )
