"""Weights along the columns of their products: which ones, and that numbers stay."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir
import pytest
from onnx import numpy_helper, parser

from nanoloom.compiler import Report, partition_model
from nanoloom.ir import mlir
from nanoloom.kernels.retype.transpose_weights import transpose_weights
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.linalg.bounds import sample
from tests.vector.checks import check, contracted
from tests.vector.kernel_harness import build, cut, executable, targets

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
GATES = f"""{HEAD} g (float[7, 1, 20] x) => (float[7, 1, 1, 8] y)
    {{ y, h = GRU<hidden_size = 8>(x, w, r) }}"""


def product(equation: str, weight: np.ndarray | None) -> Callable[..., Any]:
    """Builds a contraction; weight: a parameter, None for a second input."""

    def make(b: Any, x: Any, *w: Any) -> Any:
        right = b.constant(weight) if weight is not None else w[0]
        return b.einsum(equation, x, right)

    return make


def read(equation: str, shape: tuple[int, ...], kind: str, *more: Any) -> str:
    """The type of what a product's second operand is, after all."""
    given = () if more else (sample(1, shape, kind),)
    make = product(equation, given[0] if given else None)
    with mlir.context():
        lowered = build(make, ((5, 20), kind), *more)
        text = str(transpose_weights(lowered).module)
    found = re.search(r"ins\(%\w+, %\w+ : tensor<\S+>, tensor<(\S+)>\)", text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("kind, name", [("float32", "f32"), ("float64", "f64")])
def test_columns_become_innermost(kind: str, name: str) -> None:
    assert read("mk,nk->mn", (7, 20), kind) == f"20x7x{name}"
    assert read("gk,gnk->gn", (5, 7, 20), kind) == f"5x20x7x{name}"


def test_what_lies_so_stays() -> None:
    assert read("mk,kn->mn", (20, 7), "float32") == "20x7xf32"


def test_activations_and_integers_stay() -> None:
    assert read("mk,nk->mn", (), "float32", ((7, 20), "float32")) == "7x20xf32"
    assert read("mk,nk->mn", (7, 20), "int32") == "7x20xi32"


@pytest.mark.parametrize(
    ("name", "strategy", "turned"),
    [
        ("rv64gcv", None, True),
        ("aarch64+sve", None, True),
        ("aarch64", None, False),
        ("x86-64-v4", None, False),
        ("rv64gcv", object(), False),
    ],
)
def test_targets_of_any_width(name: str, strategy: Any, *, turned: bool) -> None:
    assert CompileOptions(by_name(name), strategy=strategy).any_width == turned


@pytest.mark.parametrize(("name", "turned"), [("rv64gcv", True), ("aarch64", False)])
def test_gates_of_recurrences(name: str, *, turned: bool) -> None:
    made, random = parser.parse_model(GATES), np.random.default_rng(2)
    for name_, shape in (("w", (1, 24, 20)), ("r", (1, 24, 8))):
        array = random.standard_normal(shape).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(array, name_))
    options = CompileOptions(by_name(name))
    program = partition_model(onnx_ir.from_proto(made), options, Report())
    text = "".join(kernel.text for kernel in program.kernels.values())
    for shape, other in (("20x24", "24x20"), ("8x16", "16x8")):  # two gates a step
        assert (f"tensor<{shape}xf32>" in text) == turned
        assert (f"tensor<{other}xf32>" in text) != turned


@pytest.mark.parametrize("equation", ["mk,nk->mn", "mk,gnk->mgn", "mgk,gnk->mgn"])
def test_numbers(equation: str) -> None:
    sizes = {"m": 33, "k": 70, "n": 49, "g": 3}
    one, other = equation.split("->")[0].split(",")
    left = sample(1, tuple(sizes[c] for c in one), "float32")
    right = sample(2, tuple(sizes[c] for c in other), "float32")
    for target in targets():
        with mlir.context():
            program = cut(transpose_weights(build(product(equation, right), left)))
        (got,) = executable(program, target)(left)
        exact, magnitude, count = contracted(equation, left, right)
        check(got, exact, count + 1, magnitude)
