"""What a generic is: the questions that fusion and schedules ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nanoloom.ir.contraction import analyse
from nanoloom.ir.linalg_query import (
    Kind,
    Op,
    all_dims,
    extents,
    inputs,
    is_contraction,
    is_copy,
    is_fill,
    is_identity,
    is_prefix,
    iterators,
    kind,
    map_dims,
    maps,
    outputs,
    widened,
)
from nanoloom.ir.mlir import context, ir, named


@pytest.fixture(autouse=True)
def _mlir() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with context():
        yield


def affine(text: str, dims: int = 3) -> ir.AffineMap:
    names = ", ".join(f"d{i}" for i in range(dims))
    return ir.AffineMapAttr(
        ir.Attribute.parse(f"affine_map<({names}) -> ({text})>")
    ).value


def generic(
    operands: list[tuple[str, str]],
    kinds: str,
    body: str,
    element: str = "f32",
    dims: int = 3,
) -> tuple[ir.Module, Op]:
    """A generic on tensors: (shape, map) pairs, the last one the result's."""
    names = ", ".join(f"d{i}" for i in range(dims))
    types = [f"tensor<{shape}{element}>" for shape, _ in operands]
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    indexing = ", ".join(f"affine_map<({names}) -> ({m})>" for _, m in operands)
    iterator = ", ".join(f'"{"parallel" if c == "p" else "reduction"}"' for c in kinds)
    count = len(operands) - 1
    ins = ", ".join(f"%a{i}" for i in range(count))
    scalars = ", ".join(f"%x{i}: {element}" for i in range(count + 1))
    given = f"ins({ins} : {', '.join(types[:-1])})" if count else ""
    module = ir.Module.parse(f"""
      func.func @f({arguments}) -> {types[-1]} {{
        %r = linalg.generic {{indexing_maps = [{indexing}],
          iterator_types = [{iterator}]}}
          {given} outs(%a{count} : {types[-1]}) {{
        ^bb0({scalars}):
          {body}
        }} -> {types[-1]}
        return %r : {types[-1]}
      }}""")
    (op,) = named(module, "linalg.generic")
    return module, op


MATMUL = [("4x5x", "d0, d2"), ("5x6x", "d2, d1"), ("4x6x", "d0, d1")]
PRODUCT = (
    "%p = arith.mulf %x0, %x1 : f32 %s = arith.addf %x2, %p : f32 linalg.yield %s : f32"
)


def test_a_matrix_product() -> None:
    module, op = generic(MATMUL, "ppr", PRODUCT)
    assert kind(op) is Kind.CONTRACTION
    assert iterators(op) == ["parallel", "parallel", "reduction"]
    assert extents(op) == [4, 6, 5]
    assert [map_dims(m) for m in maps(op)] == [[0, 2], [2, 1], [0, 1]]
    assert len(inputs(op)) == 2
    assert len(outputs(op)) == 1
    assert module


@pytest.mark.parametrize(
    ("body", "element", "good"),
    [
        (PRODUCT, "f32", True),
        (PRODUCT.replace("%x0, %x1", "%x1, %x0"), "f32", True),
        (PRODUCT.replace("%x2, %p", "%p, %x2"), "f32", True),
        (PRODUCT.replace("mulf", "muli").replace("addf", "addi").replace("f32", "i32"),
         "i32", True),
        (PRODUCT.replace("mulf", "addf"), "f32", False),
        (PRODUCT.replace("addf %x2", "maximumf %x2"), "f32", False),
        (PRODUCT.replace("%x0, %x1", "%x0, %x0"), "f32", False),
        (PRODUCT.replace("%x0, %x1", "%x0, %x2"), "f32", False),
        (PRODUCT.replace("%x2, %p", "%p, %p"), "f32", False),
        (PRODUCT.replace("%s : f32", "%p : f32"), "f32", False),
    ],
)  # fmt: skip
def test_what_a_contraction_is(body: str, element: str, good: bool) -> None:
    module, op = generic(MATMUL, "ppr", body, element)
    assert is_contraction(op) is good
    assert kind(op) is (Kind.CONTRACTION if good else Kind.REDUCTION)
    assert module


def test_a_widened_operand() -> None:
    module, op = generic(
        MATMUL, "ppr", "%w = arith.extf %x0 : f16 to f32 linalg.yield %x2 : f16", "f16"
    )
    block = op.operation.regions[0].blocks[0]
    wide = next(iter(block.operations)).operation.results[0]
    assert widened(wide) == block.arguments[0]
    assert widened(block.arguments[1]) == block.arguments[1]
    assert module


def test_a_product_of_parallel_dimensions_only_is_elementwise() -> None:
    module, op = generic([(s, m) for s, m in MATMUL], "ppp", PRODUCT)
    assert kind(op) is Kind.ELEMENTWISE
    assert module


def test_fills_and_copies() -> None:
    fill = generic(
        [("4x6x", "d0, d1")], "pp",
        "%c = arith.constant 0.0 : f32 linalg.yield %c : f32", dims=2,
    )  # fmt: skip
    copy = generic([("6x4x", "d1, d0"), ("4x6x", "d0, d1")], "pp",
                   "linalg.yield %x0 : f32", dims=2)  # fmt: skip
    double = generic([("6x4x", "d1, d0"), ("4x6x", "d0, d1")], "pp",
                     "%s = arith.addf %x0, %x0 : f32 linalg.yield %s : f32",
                     dims=2)  # fmt: skip
    assert [is_fill(op) for _, op in (fill, copy, double)] == [True, False, False]
    assert [is_copy(op) for _, op in (fill, copy, double)] == [False, True, False]


def test_other_operations_are_opaque() -> None:
    module = ir.Module.parse(
        "func.func @f() -> tensor<3xf32> { %e = tensor.empty() : tensor<3xf32> "
        "return %e : tensor<3xf32> }"
    )
    (op,) = named(module, "tensor.empty")
    assert kind(op) is Kind.OPAQUE


@pytest.mark.parametrize(
    ("text", "dims", "used", "prefix", "identity"),
    [
        ("d0, d1, d2", [0, 1, 2], {0, 1, 2}, True, True),
        ("d0, d1", [0, 1], {0, 1}, True, False),
        ("d0", [0], {0}, True, False),
        ("", [], set(), True, False),
        ("d1, d0, d2", [1, 0, 2], {0, 1, 2}, False, False),
        ("d0, d2", [0, 2], {0, 2}, False, False),
        ("d0, 0", [0, None], {0}, False, False),
        ("d0 + d1, d2", [None, 2], {0, 1, 2}, False, False),
        ("d0, d1 floordiv 2", [0, None], {0, 1}, False, False),
    ],
)
def test_maps(
    text: str, dims: list[int | None], used: set[int], prefix: bool, identity: bool
) -> None:
    indexing = affine(text)
    assert map_dims(indexing) == dims
    assert all_dims(indexing) == used
    assert is_prefix(indexing) is prefix
    assert is_identity(indexing) is identity


# ---- roles of a contraction's dimensions ---------------------------------------------


def roles(operands: list[tuple[str, str]], kinds: str) -> object:
    module, op = generic(operands, kinds, PRODUCT, dims=len(kinds))
    assert is_contraction(op)
    found = analyse(op)
    assert module
    return found


def test_roles_of_a_matrix_product() -> None:
    found = roles(MATMUL, "ppr")
    assert (found.left, found.right) == (0, 1)
    assert (found.rows, found.column, found.reduced) == ((0,), 1, (2,))
    assert found.shared == found.other_columns == ()
    assert found.contiguous


def test_roles_turn_where_the_first_operand_has_the_columns() -> None:
    found = roles([("5x6x", "d2, d1"), ("4x5x", "d0, d2"), ("4x6x", "d0, d1")], "ppr")
    assert (found.left, found.right) == (1, 0)


def test_a_transposed_right_operand() -> None:
    found = roles([("4x5x", "d0, d2"), ("6x5x", "d1, d2"), ("4x6x", "d0, d1")], "ppr")
    assert not found.contiguous


def test_roles_of_a_batch_with_heads() -> None:
    """[b, h, m, k] x [b, h, k, n]"""
    found = roles(
        [("2x3x4x5x", "d0, d1, d2, d4"), ("2x3x5x6x", "d0, d1, d4, d3"),
         ("2x3x4x6x", "d0, d1, d2, d3")], "ppppr",
    )  # fmt: skip
    assert (found.shared, found.rows, found.column) == ((0, 1), (2,), 3)


def test_roles_of_a_convolution() -> None:
    """[n, y + ky, x + kx, c] x [ky, kx, c, f]: three reduced dimensions."""
    found = roles(
        [("1x6x6x3x", "d0, d1 + d4, d2 + d5, d6"), ("3x3x3x8x", "d4, d5, d6, d3"),
         ("1x4x4x8x", "d0, d1, d2, d3")], "pppprrr",
    )  # fmt: skip
    assert (found.rows, found.column) == ((0, 1, 2), 3)
    assert found.reduced == (4, 5, 6)
    assert found.contiguous


@pytest.mark.parametrize(
    ("operands", "kinds"),
    [
        ([("5x", "d0"), ("5x", "d0"), ("", "")], "r"),  # no dimension is left
        ([("4x6x", "d0, d1"), ("4x6x", "d0, d1"), ("6x", "d1")], "rp"),  # both have it
        ([("", ""), ("5x6x", "d0, d1"), ("6x", "d1")], "rp"),  # a number is no row
    ],
)
def test_what_has_no_roles(operands: list[tuple[str, str]], kinds: str) -> None:
    assert roles(operands, kinds) is None
