"""Transposes and broadcasts become the way their readers index."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest

import nanoloom
from nanoloom.fusion.fold_copies import (
    base,
    compose,
    fold_copies,
    pack_right_operands,
    transposed,
)
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir, named, run_pipeline
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check
from tests.vector.kernel_harness import Make, build, program_of, run

X, Y = sample(1, (7, 17), "float32"), sample(2, (17, 7), "float32")


def folded(make: Make, *inputs: Any) -> str:
    """@main when the copies are folded."""
    with mlir.context():
        lowered = build(make, *inputs)
        fold_copies(lowered.module)
        assert lowered.module.operation.verify()
        run_pipeline(lowered.module, ("canonicalize", "cse"))
        return str(lowered.module)


def test_a_transpose_is_read_by_its_reader() -> None:
    text = folded(
        lambda b, x, y: b.elementwise(
            lambda s, t: s + t, b.transpose(x, [1, 0]), y
        ), X, Y,
    )  # fmt: skip
    check_text(
        text,
        """
    CHECK: [[TURNED:#map[0-9]*]] = affine_map<(d0, d1) -> (d1, d0)>
    CHECK: linalg.generic {indexing_maps = [[[TURNED]],
    CHECK-SAME: ins(%arg0, %arg1 :
    CHECK-NOT: linalg.generic
    """,
    )


def test_two_transposes_are_one_map() -> None:
    text = folded(
        lambda b, x: b.elementwise(
            lambda s: s + s, b.transpose(b.transpose(x, [2, 0, 1]), [2, 0, 1])
        ),
        ((2, 3, 5), "float32"),
    )
    check_text(
        text,
        """
    CHECK-DAG: affine_map<(d0, d1, d2) -> (d2, d0, d1)>
    CHECK: linalg.generic
    CHECK-NOT: linalg.generic
    """,
    )


def test_a_transpose_that_is_returned_stays() -> None:
    text = folded(lambda b, x: b.transpose(x, [1, 0]), X)
    assert text.count("linalg.generic") == 1


def test_a_transposed_operand_of_a_contraction() -> None:
    text = folded(
        lambda b, x, y: b.einsum("mk,nk->mn", x, b.transpose(y, [1, 0])), X, Y
    )
    assert text.count("linalg.generic") == 2  # the fill and the contraction


@pytest.mark.parametrize(
    ("text", "shapes", "count"),
    [
        ("tbk,kn->tbn", ((5, 7, 3), (3, 11)), 3),  # rows of the copy are one axis
        ("tbk,tkn->tbn", ((5, 7, 3), (5, 3, 11)), 2),  # no rows but b
    ],
)
def test_rows_that_are_one_axis_stay_so(
    text: str, shapes: tuple[tuple[int, ...], ...], count: int
) -> None:
    """Beside the fill and the product: a copy of the transposed operand or none."""

    def make(b: Any, x: Any, y: Any) -> Any:
        return b.einsum(text, b.transpose(x, [1, 0, 2]), y)

    t, b, k = shapes[0]
    given = ((b, t, k), "float32"), (shapes[1], "float32")
    assert folded(make, *given).count("linalg.generic") == count
    x, y = (sample(i, s, "float32") for i, (s, _) in enumerate(given))
    exact = np.einsum(text, wide(x).transpose(1, 0, 2), wide(y))
    size = np.einsum(text, abs(wide(x)).transpose(1, 0, 2), abs(wide(y)))
    check(run(make, x, y), exact, k, size)


def test_a_contraction_writes_its_transposed_result() -> None:
    """[b, m, h, n] from [b, h, m, n]: rows stay whole, no copy is left."""

    def make(b: Any, x: Any, y: Any) -> Any:
        made = b.einsum("bhmk,bhkn->bhmn", x, y)
        return b.transpose(made, [0, 2, 1, 3])

    shapes = ((2, 3, 5, 7), "float32"), ((2, 3, 7, 11), "float32")
    text = folded(make, *shapes)
    check_text(
        text,
        """
    CHECK: tensor.empty() : tensor<2x5x3x11xf32>
    CHECK-COUNT-2: linalg.generic
    CHECK-NOT: linalg.generic
    """,
    )
    x, y = (sample(i, s, "float32") for i, (s, _) in enumerate(shapes))
    exact = (wide(x) @ wide(y)).transpose(0, 2, 1, 3)
    size = (abs(wide(x)) @ abs(wide(y))).transpose(0, 2, 1, 3)
    check(run(make, x, y), exact, 7, size)


def test_columns_that_are_written_transposed_are_not_folded() -> None:
    """Vectors of results would be scattered one by one."""

    def make(b: Any, x: Any, y: Any) -> Any:
        return b.transpose(b.einsum("mk,kn->mn", x, y), [1, 0])

    assert folded(make, X, Y).count("linalg.generic") == 3
    check(run(make, X, Y), (wide(X) @ wide(Y)).T, 17, (abs(X) @ abs(Y)).T)


def test_a_right_operand_is_turned_by_a_kernel_of_its_own() -> None:
    """Scores of attention: q times k transposed, both computed before; it makes what
    it turns."""

    def make(b: Any, x: Any, y: Any) -> Any:
        keys = b.elementwise(lambda s: s + s, y)
        return b.einsum("mk,nk->mn", x, keys)

    x, other = sample(1, (9, 17), "float32"), sample(3, (13, 17), "float32")
    with mlir.context():
        lowered = build(make, x, other)
        pack_right_operands(lowered.module, len(lowered.inputs))
        assert lowered.module.operation.verify()
        text = str(lowered.module)
    check_text(text, "CHECK: tensor.empty() : tensor<17x13xf32>\n")
    kernels = [k.root for k in program_of(make, x, other).kernels.values()]
    assert kernels == ["elementwise", "contraction"]
    check(
        run(make, x, other), 2 * wide(x) @ wide(other).T, 17, 2 * abs(x) @ abs(other).T
    )


def test_parameters_are_left_to_the_compiler() -> None:
    weight = sample(4, (13, 17), "float32")
    with mlir.context():
        lowered = build(lambda b, x: b.einsum("mk,nk->mn", x, b.constant(weight)), X)
        before = str(lowered.module)
        pack_right_operands(lowered.module, len(lowered.inputs))
        assert str(lowered.module) == before


@pytest.mark.parametrize(
    ("outer", "inner", "made"),
    [
        ("d1, d0", "d1, d0", "d0, d1"),
        ("d0, 0", "d1, d0", "d1, 0"),
        ("d0 * 2, d1", "d1, d0 + 1", "d1 * 2, d0 + 1"),
    ],
)
def test_maps_are_composed(outer: str, inner: str, made: str) -> None:
    with mlir.context():
        one, other, both = (
            ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<(d0, d1) -> ({m})>")).value
            for m in (outer, inner, made)
        )
        assert compose(one, other) == both


def test_the_base_of_a_chain_of_views() -> None:
    with mlir.context():
        lowered = build(lambda b, x: b.reshape(b.reshape(x, (119,)), (1, 119)), X)
        (returned,) = named(lowered.module, "func.return")
        block = returned.operation.block
        assert base(returned.operation.operands[0]) == block.arguments[0]


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (0, 2, 1)])
def test_transposed_is_numpys_transpose(order: tuple[int, ...]) -> None:
    x = sample(5, (3, 5, 7), "float32")

    def make(b: Any, x: Any) -> Any:
        return b.tensor(transposed(b.value(x), list(order)), np.dtype(np.float32))

    assert (run(make, x) == x.transpose(order)).all()


@pytest.mark.parametrize("kind", ["AveragePool", "MaxPool"])
def test_windows_read_vectors_as_they_lie(kind: str) -> None:
    """Pixels of a row, or channels, where these are last: nothing is gathered."""
    text = (
        '<ir_version: 10, opset_import: ["": 20]>\n'
        "g (float[1, 16, 20, 21] x) => (float[1, 16, 18, 19] y)"
        f" {{ y = {kind}<kernel_shape = [3, 3]>(x) }}"
    )
    nests = nanoloom.compile(onnx.parser.parse_model(text)).nests()
    (pool,) = (nest for name, nest in nests.items() if name.startswith("reduction"))
    (stage,) = (stage for stage in pool.stages if stage.is_reduction)
    along = stage.writes[0].plain[-1]
    assert along is not None
    assert stage.reads[0].indices[-1].factor(along) == 1
    assert not any(along in index.axes for index in stage.reads[0].indices[:-1])
