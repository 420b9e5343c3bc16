"""Rows of any length are sorted in linear time: exact order, ties, NaN, every type."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import nanoloom
from nanoloom.graph.stage import optimize
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir, operations
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import lower
from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, INTEGERS, dtype_of
from tests.linalg.harness import PIPELINE
from tests.linalg.movement.test_shaping import same
from tests.linalg.single import model_of, run_node

NAN, INF = np.nan, np.inf


def in_float64(x: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # NaN that signals
        return x.astype(np.float64)


def order(x: np.ndarray, largest: bool) -> np.ndarray:
    """A stable order of each row; NaN is the largest."""
    if x.dtype.kind in "iu":
        return np.argsort(~x if largest else x, axis=-1, kind="stable")
    wide = in_float64(x)
    is_nan = np.isnan(wide)
    number = np.where(is_nan, 0, -wide if largest else wide) + 0.0
    return np.lexsort((number, ~is_nan if largest else is_nan), axis=-1)


def numbers(random: np.random.Generator, shape: tuple[int, ...], name: str, few: bool):
    """All bits of a type, or few different numbers: many ties, NaN, infinities, -0."""
    dtype = dtype_of(name)
    bits = random.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)
    x = bits.reshape(shape)
    if few and dtype.kind in "iu":
        x = x % 3
    elif few:
        x = random.choice(np.array([0.0, -0.0, 1, -1, INF, -INF, NAN, -NAN]), shape)
    return x.astype(dtype)


def check(x: np.ndarray, k: int, largest: bool, is_sorted: int = 1) -> None:
    values, places = run_node(
        "TopK",
        [x, np.array([k], np.int64)],
        constants=[1],
        outputs=2,
        version=24,
        largest=int(largest),
        sorted=is_sorted,
    )
    right = order(x, largest)[..., :k]
    same(places, right)
    wanted = np.take_along_axis(x, right, -1)
    if x.dtype.kind in "iu":
        same(values, wanted)
    else:
        assert values.dtype == x.dtype
        same(in_float64(values), in_float64(wanted))


@few_examples(40)
@given(
    st.sampled_from((*FLOATS, *INTEGERS)),
    st.sampled_from((1, 2, 15, 16, 17, 63, 97, 257, 601, 1009)),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32 - 1),
    st.data(),
)
def test_any_row(
    name: str, extent: int, largest: bool, few: bool, seed: int, data: st.DataObject
) -> None:
    """Taken one after the other, collected and cut, or sorted whole."""
    k = data.draw(st.integers(0, extent))
    x = numbers(np.random.default_rng(seed), (3, extent), name, few)
    check(x, k, largest, data.draw(st.integers(0, 1)))


@pytest.mark.parametrize(("name", "extent", "k"), [
    ("float32", 50, 50), ("int64", 19, 19), ("uint8", 33, 20), ("float16", 5, 1),
])  # fmt: skip
@pytest.mark.parametrize("few", [True, False])
def test_short_rows(name: str, extent: int, k: int, few: bool) -> None:
    """By ranks: equal keys in front of a vector of them, in it and behind it."""
    x = numbers(np.random.default_rng(extent), (7, extent), name, few)
    check(x, k, largest=few)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["float32", "int64", "float16", "uint8"])
@pytest.mark.parametrize("few", [True, False])
def test_long_rows(name: str, few: bool) -> None:
    """As many steps as squares of these would take hours."""
    extent = 100_003
    x = numbers(np.random.default_rng(5), (extent,), name, few)
    for k in (extent, 12_000, 1000, 7):
        check(x, k, largest=k == 1000)


@pytest.mark.drawn
@pytest.mark.parametrize("k", [5, 33, 700])
@pytest.mark.parametrize("largest", [True, False])
def test_each_one_better_than_those_before(k: int, largest: bool) -> None:
    """Every key goes through all cuts there are."""
    x = np.arange(20_011, dtype=np.int32)
    check(x if largest else -x, k, largest)
    check(-x if largest else x, k, largest)
    check(np.zeros_like(x), k, largest)
    check(np.full_like(x, np.iinfo(np.int32).max), k, largest)


def test_nothing() -> None:
    check(np.zeros((3, 0), np.float32), 0, largest=True)
    check(np.zeros((0, 40), np.float32), 20, largest=True)


def module_of(k: int) -> ir.Module:
    """TopK of 1999 elements on tensors."""
    inputs = [np.zeros(1999, np.float32), np.array([k], np.int64)]
    model, _ = model_of("TopK", inputs, {}, constants=[1], outputs=2)
    graph = onnx_ir.from_proto(model)
    optimize(graph, OPERATORS.keys())
    return lower(graph).module


def found(module: ir.Module) -> list[ir.Operation]:
    return [op.operation for op in operations(module, lambda _: True)]


def parents(op: ir.Operation) -> Iterator[ir.Operation]:
    """Loops around an operation."""
    outer = op.parent
    while outer is not None:
        if outer.name.startswith("scf."):
            yield outer.operation
        outer = outer.operation.parent


@pytest.mark.parametrize("k", [3, 500, 1999])
def test_rows_are_sorted_in_place(k: int) -> None:
    """No loop copies what it carries."""
    with mlir.context():
        module = module_of(k)
        mlir.run_pipeline(module, PIPELINE[:5], verify=False)  # until buffers
        names = [op.name for op in found(module)]
        assert "memref.store" in names
        for op in found(module):
            if op.name == "memref.copy":
                shape = ir.ShapedType(op.operands[0].type).shape
                assert max(shape) < 1999 or not list(parents(op)), op


def test_values_of_a_program() -> None:
    """The same as the compiled program, several rows along another axis."""
    x = np.random.default_rng(6).standard_normal((2, 3001, 3)).astype(np.float32)
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=1)
    made = helper.make_graph(
        [node],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [
            helper.make_tensor_value_info("v", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("i", TensorProto.INT64, None),
        ],
        [helper.make_tensor("k", TensorProto.INT64, [1], [40])],
    )
    found = nanoloom.compile(helper.make_model(made))({"x": x})
    right = np.argsort(-x, axis=1, kind="stable")[:, :40]
    np.testing.assert_array_equal(found["i"], right)
    np.testing.assert_array_equal(found["v"], np.take_along_axis(x, right, 1))
