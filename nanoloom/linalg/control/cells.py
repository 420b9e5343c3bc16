"""One time step of RNN, GRU and LSTM: each a product with R and one generic.

States are [batch, hidden], gates stand side by side as [batch, gate, hidden].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, Builder, Map
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.elementwise.activations import (
    elu,
    hard_sigmoid,
    leaky_relu,
    sigmoid,
    softplus,
    thresholded_relu,
)

Function = Callable[[Scalar], Scalar]

# name: formula of (x, alpha, beta) and the defaults of those parameters that it takes
ACTIVATIONS: dict[str, tuple[Callable[..., Scalar], tuple[float, ...]]] = {
    "affine": (lambda x, a, c: x * a + c, (1.0, 0.0)),
    "elu": (elu, (1.0,)),
    "hardsigmoid": (hard_sigmoid, (0.2, 0.5)),
    "leakyrelu": (leaky_relu, (0.01,)),
    "relu": (lambda x: x.maximum(0), ()),
    "scaledtanh": (lambda x, a, c: (x * c).math("tanh") * a, (1.0, 1.0)),
    "sigmoid": (sigmoid, ()),
    "softplus": (softplus, ()),
    "softsign": (lambda x: x / (x.absolute() + 1), ()),
    "tanh": (lambda x: x.math("tanh"), ()),
    "thresholdedrelu": (thresholded_relu, (1.0,)),
}


@dataclass(frozen=True)
class Direction:
    """The parts of one direction.

    weights: [gates * hidden, hidden], R.  bias: [gates, hidden], added to the product
    with R, or None.  peepholes: [3, hidden] or None.  functions: f, g, h of ONNX.
    clip: bounds what goes into the gates' functions (not the cell state), or None.
    """

    node: Node
    dtype: np.dtype
    weights: Tensor
    bias: Tensor | None
    peepholes: Tensor | None
    functions: tuple[Function, ...]
    clip: float | None

    def gate(self, function: int) -> Function:
        """One of the functions, with clipped input."""
        chosen, clip = self.functions[function], self.clip
        if clip is None:
            return chosen
        return lambda x: chosen(x.maximum(-clip).minimum(clip))


Cell = Callable[[Builder, Direction, Tensor, Sequence[Tensor]], list[Tensor]]


def activation_functions(
    node: Node, defaults: Sequence[str], directions: int
) -> list[tuple[Function, ...]]:
    """The functions of each direction; alpha and beta go to those that take them."""
    names = node.strings("activations") or list(defaults) * directions
    if len(names) != len(defaults) * directions:
        raise node.unsupported(
            f"it needs {len(defaults) * directions} activations and has {len(names)}"
        )
    alphas = iter(node.floats("activation_alpha"))
    betas = iter(node.floats("activation_beta"))
    made = list[Function]()
    for name in names:
        if name.lower() not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise node.unsupported(f"activation {name} is not known", f"use {known}")
        formula, default = ACTIVATIONS[name.lower()]
        sources = zip((alphas, betas), default, strict=False)
        numbers = [next(given, other) for given, other in sources]
        made.append(with_numbers(formula, numbers))
    count = len(defaults)
    return [tuple(made[i : i + count]) for i in range(0, len(made), count)]


def with_numbers(formula: Callable[..., Scalar], numbers: Sequence[float]) -> Function:
    return lambda x: formula(x, *numbers)


def gate_rows(x: Tensor, count: int) -> list[tuple[Tensor, ir.AffineMap]]:
    """x of [batch, gate, hidden] or [gate, hidden] once for each gate, with its map."""
    batch, hidden = ir.AffineDimExpr.get(0), ir.AffineDimExpr.get(1)
    lead = [batch] if x.rank == 3 else []
    return [
        (x, Map.get(2, 0, [*lead, ir.AffineConstantExpr.get(k), hidden]))
        for k in range(count)
    ]


def fused(
    b: Builder,
    part: Direction,
    inputs: Sequence[tuple[Tensor, ir.AffineMap]],
    shape: Sequence[int],
    count: int,
    body: Callable[..., Sequence[Scalar]],
) -> list[Tensor]:
    """`count` tensors [batch, hidden] from the elements that the maps name."""
    made = [
        Tensor(tuple(shape), part.dtype, b.empty(shape, part.dtype))
        for _ in range(count)
    ]
    return b.generic(
        inputs,
        [(out, Map.get_identity(2)) for out in made],
        [PARALLEL] * 2,
        lambda *scalars: body(*scalars[:-count]),
    )


def state_product(b: Builder, part: Direction, h: Tensor, weights: Tensor) -> Tensor:
    """h times the weights of some gates, as [batch, gate, hidden]."""
    made = b.einsum("bk,gk->bg", h, weights, dtype=part.dtype)
    hidden = weights.shape[1]
    return b.reshape(made, (h.shape[0], weights.shape[0] // hidden, hidden))


def rnn_cell(
    b: Builder, part: Direction, x: Tensor, states: Sequence[Tensor]
) -> list[Tensor]:
    """H = f(x + R h)."""
    (h,) = states
    product, f = state_product(b, part, h, part.weights), part.gate(0)
    inputs = [*gate_rows(x, 1), *gate_rows(product, 1)]
    return fused(b, part, inputs, h.shape, 1, lambda a, r: [f(a + r)])


def lstm_cell(
    b: Builder, part: Direction, x: Tensor, states: Sequence[Tensor]
) -> list[Tensor]:
    """Gates i, o, f, c; peepholes i, o, f read the cell state, o the new one."""
    h, c = states
    product = state_product(b, part, h, part.weights)
    coupled = bool(part.node.int("input_forget"))
    f, g, last = part.gate(0), part.gate(1), part.functions[2]
    inputs = [*gate_rows(x, 4), *gate_rows(product, 4), (c, Map.get_identity(2))]
    if part.peepholes is not None:
        inputs += gate_rows(part.peepholes, 3)

    def body(*scalars: Scalar) -> list[Scalar]:
        sums = [a + r for a, r in zip(scalars[:4], scalars[4:8], strict=True)]
        old, peep = scalars[8], scalars[9:]
        enter = f(sums[0] + peep[0] * old if peep else sums[0])
        forget = f(sums[2] + peep[2] * old if peep else sums[2])
        if coupled:
            forget = 1 - enter
        new = forget * old + enter * g(sums[3])
        leave = f(sums[1] + peep[1] * new if peep else sums[1])
        return [leave * last(new), new]

    return fused(b, part, inputs, h.shape, 2, body)


def gru_cell(
    b: Builder, part: Direction, x: Tensor, states: Sequence[Tensor]
) -> list[Tensor]:
    """Gates z, r, h.  The reset gate acts before or after the product with R."""
    if part.node.int("linear_before_reset"):
        return reset_after_product(b, part, x, states[0])
    return reset_before_product(b, part, x, states[0])


def reset_after_product(
    b: Builder, part: Direction, x: Tensor, h: Tensor
) -> list[Tensor]:
    """One product with R for all gates."""
    f, g = part.gate(0), part.gate(1)
    product = state_product(b, part, h, part.weights)
    biases = [] if part.bias is None else gate_rows(part.bias, 3)
    identity = (h, Map.get_identity(2))
    inputs = [*gate_rows(x, 3), *gate_rows(product, 3), identity, *biases]

    def body(*scalars: Scalar) -> list[Scalar]:
        enter, old = scalars[:3], scalars[6]
        back = with_bias(scalars[3:6], scalars[7:])
        update, reset = f(enter[0] + back[0]), f(enter[1] + back[1])
        new = g(enter[2] + reset * back[2])
        return [(1 - update) * new + update * old]

    return fused(b, part, inputs, h.shape, 1, body)


def reset_before_product(
    b: Builder, part: Direction, x: Tensor, h: Tensor
) -> list[Tensor]:
    """A product with R for two gates, and one of the state that they let through."""
    hidden, f, g = h.shape[1], part.gate(0), part.gate(1)
    biases = [] if part.bias is None else gate_rows(part.bias, 3)
    identity = (h, Map.get_identity(2))
    first = b.slice(part.weights, (0, 0), (2 * hidden, hidden))
    second = b.slice(part.weights, (2 * hidden, 0), (hidden, hidden))
    product = state_product(b, part, h, first)
    inputs = [*gate_rows(x, 2), *gate_rows(product, 2), identity, *biases[:2]]

    def gates(*scalars: Scalar) -> list[Scalar]:
        back = with_bias(scalars[2:4], scalars[5:])
        update, reset = f(scalars[0] + back[0]), f(scalars[1] + back[1])
        return [update, reset * scalars[4]]

    update, kept = fused(b, part, inputs, h.shape, 2, gates)
    product = state_product(b, part, kept, second)
    inputs = [gate_rows(x, 3)[2], *gate_rows(product, 1), identity]
    inputs += [(update, Map.get_identity(2)), *biases[2:]]

    def result(enter: Scalar, back: Scalar, *rest: Scalar) -> list[Scalar]:
        old, update = rest[:2]
        new = g(enter + with_bias([back], rest[2:])[0])
        return [(1 - update) * new + update * old]

    return fused(b, part, inputs, h.shape, 1, result)


def with_bias(values: Sequence[Scalar], biases: Sequence[Scalar]) -> list[Scalar]:
    """values + biases, or the values where there are no biases."""
    if not biases:
        return list(values)
    return [v + c for v, c in zip(values, biases, strict=True)]
