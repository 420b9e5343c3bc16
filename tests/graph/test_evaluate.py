"""Constants: what a Constant node holds, and nodes whose inputs are all known."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Error, InternalError, Unsupported
from nanoloom.frontend.mapped_tensors import MappedTensor, Region
from nanoloom.graph.derived_constants import DerivedTensor, derived, weight_of
from nanoloom.graph.evaluate import (
    SMALL,
    constant_of,
    fold,
    mapped_sources,
    shape_constant,
)
from nanoloom.weights.derivations import Reshaped, Transposed
from tests.graph.models import proto

OPSETS = {"": 21}


def first_node(text: str) -> ir.Node:
    """The first node of a model, on the model's constants."""
    return next(iter(ir.from_proto(proto(text)).graph))


def on_constant(text: str, array: np.ndarray, shape: tuple[int, ...]) -> ir.Node:
    """A node with this constant as its input and an output of this shape."""
    node = first_node(text)
    value = ir.Value(
        name="a",
        shape=ir.Shape(array.shape),
        type=ir.TensorType(ir.DataType.FLOAT),
        const_value=ir.Tensor(array),
    )
    node.replace_input_with(0, value)
    node.outputs[0].shape, node.outputs[0].type = ir.Shape(shape), value.type
    return node


@pytest.mark.parametrize(
    ("attribute", "array"),
    [
        ("value = float[2] {1.5, 2.5}", np.array([1.5, 2.5], np.float32)),
        ("value_float = 2.5", np.array(2.5, np.float32)),
        ("value_int = 7", np.array(7, np.int64)),
        ("value_floats = [1.0, 2.0]", np.array([1, 2], np.float32)),
        ("value_ints = [3, 4, 5]", np.array([3, 4, 5], np.int64)),
    ],
)
def test_what_a_constant_holds(attribute: str, array: np.ndarray) -> None:
    node = first_node(f"g () => (float[n] y) {{ y = Constant<{attribute}>() }}")
    tensor = constant_of(node)
    assert tensor is not None
    assert tensor.numpy().dtype == array.dtype
    assert tensor.numpy().shape == array.shape
    assert (tensor.numpy() == array).all()


def test_strings_are_no_numbers() -> None:
    node = first_node('g () => (string y) { y = Constant<value_string = "a">() }')
    assert constant_of(node) is None


def test_a_node_on_constants() -> None:
    node = first_node("""g () => (float[2] y) <float[2] a = {1,2}, float[2] b = {3,5}>
        { y = Add(a, b) }""")
    made = fold(node, OPSETS)
    assert made is not None
    assert made[0].numpy().tolist() == [4.0, 7.0]


def test_a_node_with_two_outputs() -> None:
    node = first_node("""g () => (float[1] v, int64[1] i)
        <float[3] a = {1,9,2}, int64[1] k = {1}> { v, i = TopK(a, k) }""")
    assert [t.numpy().tolist() for t in fold(node, OPSETS)] == [[9.0], [1]]


def test_an_output_that_is_left_out() -> None:
    node = first_node("""g () => (int64[1] i)
        <float[3] a = {1,9,2}, int64[1] k = {1}> { , i = TopK(a, k) }""")
    values, places = fold(node, OPSETS)
    assert values is None
    assert places.numpy().tolist() == [1]


def test_what_the_reference_refuses_is_left_for_later() -> None:
    node = first_node("""g () => (float[2] y) <float[2] a = {1,2}, float[3] b = {3,5,7}>
        { y = Add(a, b) }""")
    assert fold(node, OPSETS) is None


def test_division_by_zero_warns_nobody() -> None:
    node = first_node("""g () => (float[1] y) <float[1] a = {1}, float[1] b = {0}>
        { y = Div(a, b) }""")
    with np.errstate(all="raise"):
        assert fold(node, OPSETS)[0].numpy().tolist() == [np.inf]


@pytest.mark.parametrize("size", [SMALL, SMALL + 1])
def test_large_results_are_lazy(size: int) -> None:
    array = np.ones(size, np.float32)
    node = on_constant("g () => (float[n] y) { y = Neg(a) }", array, (size,))
    (made,) = fold(node, OPSETS)
    assert isinstance(made, ir.LazyTensor) == (size > SMALL)
    assert (made.numpy() == -1).all()


def test_a_large_result_that_fails_names_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a window of 2^31 numbers does where memory is less."""

    def no_memory(*_: object) -> None:
        raise MemoryError

    array = np.ones(SMALL + 1, np.float32)
    text = "g () => (float[n] y) { y = Neg(a) }"
    (made,) = fold(on_constant(text, array, array.shape), OPSETS)
    monkeypatch.setattr(ReferenceEvaluator, "run", no_memory)
    with pytest.raises(Unsupported, match=r"\(Neg\): .*memory"):
        made.numpy()


def test_a_transposed_weight_is_a_view() -> None:
    array = np.arange(40_000, dtype=np.float32).reshape(100, 400)
    text = "g () => (float[n,m] y) { y = Transpose(a) }"
    (made,) = fold(on_constant(text, array, (400, 100)), OPSETS)
    assert np.shares_memory(made.numpy(), array)
    assert (made.numpy() == array.T).all()


@pytest.mark.parametrize(
    ("op", "limits", "array"),
    [
        ("Shape", "", [2, 3, 5]),
        ("Shape", "<start=1>", [3, 5]),
        ("Shape", "<end=-1>", [2, 3]),
        ("Shape", "<start=-9, end=9>", [2, 3, 5]),
        ("Shape", "<start=2, end=1>", []),
        ("Size", "", 30),
    ],
)
def test_shapes_need_no_data(op: str, limits: str, array: object) -> None:
    node = first_node(f"g (float[2,3,5] x) => (int64[n] y) {{ y = {op}{limits}(x) }}")
    tensor = shape_constant(node)
    assert tensor.numpy().tolist() == array
    assert tensor.numpy().dtype == np.int64


def test_a_dynamic_shape_is_not_known() -> None:
    node = first_node("g (float[n,3] x) => (int64[2] y) { y = Shape(x) }")
    assert shape_constant(node) is None


@pytest.mark.parametrize(
    ("operator", "order"),
    [
        ("Transpose<perm=[1,0,2]>", (1, 0, 2)),
        ("Transpose", (2, 1, 0)),
        ("Identity", (0, 1, 2)),
    ],
)
def test_a_large_constant_is_turned_when_it_is_written(
    operator: str, order: tuple[int, ...]
) -> None:
    """It is a weight with a change: linalg goes on from there."""
    text = f"g (float[a,b,c] x) => (float[d,e,f] y) {{ y = {operator}(x) }}"
    array = np.arange(20.0 * 40 * 60, dtype=np.float32).reshape(20, 40, 60)
    wanted = array.transpose(order)
    node = on_constant(text, array, wanted.shape)
    made = fold(node, OPSETS)
    assert made is not None and isinstance(made[0], DerivedTensor)
    weight = weight_of(made[0])
    changes = () if operator == "Identity" else (Transposed(order),)
    source = node.inputs[0].const_value
    assert source is not None
    assert weight.changes == changes and weight.source == weight_of(source).source
    assert np.shares_memory(weight.array(), array)
    assert (made[0].numpy() == wanted).all() and (weight.array() == wanted).all()


def test_what_is_turned_comes_from_its_file() -> None:
    """What is given back after use is the source's."""
    region = Region(bytes(48), 0, 48)
    stored = MappedTensor("w", ir.DataType.FLOAT, (3, 4), region)
    value = ir.Value(name="w", const_value=stored)
    turned = ir.Value(name="t", const_value=derived(value, Transposed((1, 0))))
    again = derived(turned, Reshaped((12,)))
    assert list(mapped_sources(again)) == [stored]
    assert again.weight.name == "w.transposed[1, 0].reshaped[12]"


@pytest.mark.parametrize("count", [2**40, 2**62])
def test_constants_that_no_memory_holds(count: int) -> None:
    """They are not computed while compiling, and refused before they are made."""
    text = f"""g () => (float y) <int64[1] n = {{{count}}}> {{
      x = ConstantOfShape(n)
      y = ReduceMax<keepdims = 0>(x)
    }}"""
    with pytest.raises(Error, match=r"memory|addresses") as found:
        nanoloom.compile(proto(text), cache=Cache.temporary())({})
    assert not isinstance(found.value, InternalError)
