"""Symbolic dimensions: named, bound, read off given arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from nanoloom.errors import InputError, ModelError
from nanoloom.frontend.onnx import load
from nanoloom.frontend.symbolic_dims import bind, dims_from_inputs, input_dims, symbols
from nanoloom.interface.expressions import evaluate, names
from tests.frontend import models

Dims = Sequence[int | str | None]


def with_inputs(*shapes: Dims, output: Dims = ("batch", None)) -> ir.Model:
    """Inputs a, b, ... of the given shapes; the output is Relu of the first."""
    inputs = [models.value("abc"[i], dims) for i, dims in enumerate(shapes)]
    nodes = [models.unary("a", "t"), models.unary("t", "y")]
    proto = models.model(nodes, inputs, [models.value("y", output)])
    proto.graph.value_info.append(models.value("t", output))
    return load(proto)


def shapes(model: ir.Model) -> list[list[int | str | None]]:
    values = [*model.graph.inputs, *model.graph.outputs]
    return [
        [d if isinstance(d, int) else d.value for d in value.shape or ()]
        for value in values
    ]


def test_names() -> None:
    model = with_inputs(["batch", None, 3], [None, "batch"], [])
    assert input_dims(model) == {
        "a": ("batch", "a.1", 3),
        "b": ("b.0", "batch"),
        "c": (),
    }
    assert symbols(model) == ("batch", "a.1", "b.0")


def test_bind() -> None:
    model = with_inputs(["batch", None], ["batch", 7], output=["batch", "2*batch"])
    bound = bind(model, {"batch": 4, "a.1": 5})
    assert shapes(bound) == [[4, 5], [4, 7], [4, 8]]
    inner = next(iter(bound.graph)).outputs[0].shape
    assert inner is not None and inner.dims == (4, 8)
    assert shapes(model)[0] == ["batch", None]  # the model itself is as before
    onnx.checker.check_model(ir.to_proto(bound))


def test_a_model_without_symbols() -> None:
    model = with_inputs([2, 3], output=[2, 3])
    assert symbols(model) == ()
    assert shapes(bind(model, {})) == [[2, 3], [2, 3]]


def test_weights_are_shared() -> None:
    model = load(models.linear())
    bound = bind(model, {"batch": 2})
    first, other = (m.graph.initializers["w"].const_value for m in (model, bound))
    assert first is other


def test_zero_is_a_dimension() -> None:
    assert shapes(bind(load(models.linear()), {"batch": 0}))[0] == [0, 37]


def test_expressions_follow_from_their_names() -> None:
    model = with_inputs(["past", "past + 1"], output=["past", "past // 2"])
    assert symbols(model) == ("past",)
    assert shapes(bind(model, {"past": 6})) == [[6, 7], [6, 3]]
    assert shapes(bind(model, {"past": 6, "past + 1": 7}))[0] == [6, 7]


def test_an_expression_alone_is_a_name() -> None:
    model = with_inputs(["past + 1", 2])
    assert symbols(model) == ("past + 1",)
    assert shapes(bind(model, {"past + 1": 9}))[0] == [9, 2]
    assert shapes(bind(model, {"past": 9}))[0] == [10, 2]


def refusal(model: ir.Model, dims: dict[str, int], **options: int) -> str:
    with pytest.raises((InputError, ModelError)) as caught:
        bind(model, dims, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_unbound() -> None:
    text = refusal(with_inputs(["batch", None], ["my dim"]), {"batch": 2})
    assert "no number is given for dimension a.1, my dim" in text
    assert "add --dim a.1=N --dim 'my dim'=N" in text


def test_unknown() -> None:
    model = with_inputs(["batch", "seq"])
    text = refusal(model, {"batch": 1, "seq": 1, "sequence": 1})
    assert text == "the model has no dimension sequence; it has batch, seq"
    fixed = with_inputs([1, 2], output=[1, 2])
    assert "all its dimensions are numbers" in refusal(fixed, {"batch": 1})


@pytest.mark.parametrize("value", (-1, 2**63, 1.5, True, "3", None))
def test_impossible_numbers(value) -> None:
    text = refusal(load(models.linear()), {"batch": value})
    assert text.startswith(f"dimension batch is {value!r}; give a whole number")


def test_numpy_numbers() -> None:
    dims = {"batch": np.int64(3)}
    assert shapes(bind(load(models.linear()), dims))[0] == [3, 37]  # type: ignore[arg-type]


def test_contradictions() -> None:
    model = with_inputs(["past", "past + 1"])
    text = refusal(model, {"past": 2, "past + 1": 4})
    assert "dimension past + 1 is given as 4, the others make it 3" in text
    assert "is -1" in refusal(with_inputs(["n", "n - 3"]), {"n": 2})


def test_too_large() -> None:
    text = refusal(load(models.linear()), {"batch": 10**12}, memory=10**9)
    assert (
        "value x (FLOAT 1000000000000x37) needs 148 TB, 1 GB of memory are free" in text
    )


def test_an_input_without_a_rank() -> None:
    proto = models.chain([models.unary()])
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError, match="input x: has no shape"):
        bind(load(proto), {})


def test_dims_from_inputs() -> None:
    model = with_inputs(["batch", None], ["batch", 7])
    arrays = {"a": np.zeros((4, 5)), "b": np.zeros((4, 7))}
    assert dims_from_inputs(model, arrays) == {"batch": 4, "a.1": 5}
    assert shapes(bind(model, dims_from_inputs(model, arrays)))[:2] == [[4, 5], [4, 7]]
    assert dims_from_inputs(model, {"b": arrays["b"]}) == {"batch": 4}


def test_inputs_that_disagree() -> None:
    model = with_inputs(["batch", 1], ["batch", 7])
    arrays = {"a": np.zeros((4, 1)), "b": np.zeros((3, 7))}
    with pytest.raises(InputError) as caught:
        dims_from_inputs(model, arrays)
    words = "dimension batch is 4 in input a (axis 0) and 3 in input b (axis 0)"
    assert words in str(caught.value)


def test_inputs_of_another_rank() -> None:
    with pytest.raises(
        InputError, match="input a: has 1 dimensions, the model wants 2"
    ):
        dims_from_inputs(with_inputs(["batch", 1]), {"a": np.zeros(3)})


VALUES = {
    "n": 6,
    "2*n + 1": 13,
    "(n-1)*(n - 1)": 25,
    "n//4": 1,
    "n / 2": 3,
    "-n + 8": 2,
    "8": 8,
    "a.b_1 - n": 4,
}


@pytest.mark.parametrize("text", VALUES)
def test_expressions(text: str) -> None:
    assert evaluate(text, {"n": 6, "a.b_1": 10}) == VALUES[text]


@pytest.mark.parametrize(
    "text",
    [
        "m",
        "n / 4",
        "n // 0",
        "n +",
        "(n",
        "n)",
        "",
        "?",
        "n ** 9",
        "2 n",
        "n n",
        "9" * 40,
    ]
    + ["(" * 60 + "n", "__import__('os')", "n" * 500, "\n"],
)
def test_what_is_no_value(text: str) -> None:
    assert evaluate(text, {"n": 6}) is None


def test_names_in_expressions() -> None:
    assert names("a + b.c // 0") == {"a", "b.c"}
    assert names("7") == set()
    assert names("a b") is None
