"""RNN, GRU and LSTM: projections of all time steps at once, then a loop over time.

The input's product with W is one contraction for the whole sequence; a step of the loop
is one of the cells in `cells`.  States are kept in f32 for f16 and bf16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nanoloom.ir.mlir import arith, ir
from nanoloom.linalg.builder.builder import Builder, computed_as
from nanoloom.linalg.builder.index_checks import check
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import BOOL, select
from nanoloom.linalg.builder.slices import index, read_at, write
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.control.cells import (
    Cell,
    Direction,
    Function,
    activation_functions,
    gru_cell,
    lstm_cell,
    rnn_cell,
)

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class Kind:
    """What tells the three operators apart.

    states: the inputs that hold initial states.  splits_bias: whether the bias of R
    belongs to the step, because a gate acts on its product with the state.
    """

    gates: int
    states: tuple[int, ...]
    functions: tuple[str, ...]
    cell: Cell
    splits_bias: bool = False


@dataclass(frozen=True)
class Layer:
    """One direction of a node in front of its loop.

    projected: what enters in every time step, [time, batch, gates, hidden].  initial:
    states, [batch, hidden].
    """

    part: Direction
    projected: Tensor
    initial: list[Tensor]
    backwards: bool


RNN = Kind(1, (5,), ("Tanh",), rnn_cell)
GRU = Kind(3, (5,), ("Sigmoid", "Tanh"), gru_cell, splits_bias=True)
LSTM = Kind(4, (5, 6), ("Sigmoid", "Tanh", "Tanh"), lstm_cell)


def lower(kind: Kind) -> Callable[[Builder, Node], list[Tensor | None]]:
    def lower_kind(b: Builder, node: Node) -> list[Tensor | None]:
        return recurrent(b, node, kind)

    return lower_kind


def recurrent(b: Builder, node: Node, kind: Kind) -> list[Tensor | None]:
    """Outputs Y [time, directions, batch, hidden] and the last states, as wanted.

    layout 1 has the batch first in inputs and outputs.
    """
    reverse = DIRECTIONS.get(node.string("direction", "forward"))
    if reverse is None:
        raise node.unsupported(f"direction {node.string('direction')} is not known")
    batch_first = bool(node.int("layout"))
    x = node.input(0)
    if x.shape[0 if batch_first else 1] == 0:
        return [b.full(shape, 0, x.dtype) for shape in node.output_shapes]
    if batch_first:
        x = b.transpose(x, (1, 0, 2))
    functions = activation_functions(node, kind.functions, len(reverse))
    layers = [
        Layer(
            direction(b, node, kind, d, functions[d]),
            project(b, node, kind, x, d),
            [initial_state(b, node, x, i, d) for i in kind.states],
            backwards,
        )
        for d, backwards in enumerate(reverse)
    ]
    wanted = bool(node.wanted) and node.wanted[0]
    sequence, finals = run(b, node, kind, layers, wanted)
    outputs: list[Tensor | None] = [None]
    if sequence is not None:
        outputs = [b.transpose(sequence, (2, 0, 1, 3)) if batch_first else sequence]
    for states in zip(*finals, strict=True):
        made = [b.cast(s, x.dtype) for s in states]
        outputs.append(stacked(b, made, 1 if batch_first else 0))
    return outputs


def stacked(b: Builder, parts: list[Tensor], axis: int) -> Tensor:
    """[batch, hidden] of each direction with the directions along a new axis."""
    shape = list(parts[0].shape)
    shape.insert(axis, 1)
    return b.concat([b.reshape(x, shape) for x in parts], axis)


def taken(b: Builder, x: Tensor, number: int) -> Tensor:
    """x[number]: cut out now if x is a constant."""
    starts = [number] + [0] * (x.rank - 1)
    part = x if x.shape[0] == 1 else b.slice(x, starts, (1, *x.shape[1:]))
    return b.reshape(part, x.shape[1:])


def bias_of(b: Builder, node: Node, kind: Kind, d: int) -> tuple[Tensor, Tensor] | None:
    """The biases of the products with W and with R: [gates, hidden] each."""
    bias = node.optional(3)
    if bias is None:
        return None
    pair = b.reshape(taken(b, bias, d), (2, kind.gates, hidden_size(node)))
    return taken(b, pair, 0), taken(b, pair, 1)


def hidden_size(node: Node) -> int:
    return node.input(2).shape[-1]


def direction(
    b: Builder,
    node: Node,
    kind: Kind,
    d: int,
    functions: tuple[Function, ...],
) -> Direction:
    bias, peepholes = None, None
    if kind.splits_bias:
        pair = bias_of(b, node, kind, d)
        bias = None if pair is None else pair[1]
    given = node.optional(7)
    if given is not None:
        peepholes = b.reshape(taken(b, given, d), (3, hidden_size(node)))
    return Direction(
        node,
        computed_as(node.input(0).dtype),
        taken(b, node.input(2), d),
        bias,
        peepholes,
        functions,
        node.float("clip") if node.has("clip") else None,
    )


def project(b: Builder, node: Node, kind: Kind, x: Tensor, d: int) -> Tensor:
    """x W^T with biases for every time step: [time, batch, gates, hidden]."""
    wide = computed_as(x.dtype)
    made = b.einsum("tbi,gi->tbg", x, taken(b, node.input(1), d), dtype=wide)
    made = b.reshape(made, (*x.shape[:2], kind.gates, hidden_size(node)))
    pair = bias_of(b, node, kind, d)
    if pair is None:
        return made
    if kind.splits_bias:
        return b.elementwise(lambda s, w: s + w, made, pair[0], dtype=wide)
    return b.elementwise(lambda s, w, r: s + w + r, made, *pair, dtype=wide)


def initial_state(b: Builder, node: Node, x: Tensor, place: int, d: int) -> Tensor:
    """The first state of one direction, [batch, hidden]; zeros if it is not given."""
    wide = computed_as(x.dtype)
    shape = (x.shape[1], hidden_size(node))
    given = node.optional(place)
    if given is None:
        return b.full(shape, 0, wide)
    if node.int("layout"):
        given = b.transpose(given, (1, 0, 2))
    return b.cast(taken(b, given, d), wide)


def run(
    b: Builder, node: Node, kind: Kind, layers: list[Layer], wanted: bool
) -> tuple[Tensor | None, list[list[Tensor]]]:
    """A loop over time for each direction, beside each other.

    Gives [time, directions, batch, hidden] if wanted, and the last states of each.
    """
    steps, batch, _, hidden = layers[0].projected.shape
    dtype, count = node.input(0).dtype, len(kind.states)
    valid = running(b, node, steps, batch)
    shape, size = (steps, len(layers), batch, hidden), (1, 1, batch, hidden)
    sequence = [Tensor(shape, dtype, b.empty(shape, dtype))] if wanted else []
    finals = list[list[Tensor]]()
    for d, layer in enumerate(layers):

        def step(
            i: ir.Value, carried: list[Tensor], d: int = d, layer: Layer = layer
        ) -> list[Tensor]:
            time = arith.subi(index(steps - 1), i) if layer.backwards else i
            shown, new = advance(b, kind, layer, carried[:count], time, valid)
            row, place = b.cast(shown, dtype), (time, d, 0, 0)
            return [*new, *(write(b, row, y, place, size) for y in carried[count:])]

        made = repeat(
            b, steps, [*layer.initial, *sequence], step, in_kernels=True, beside=d > 0
        )
        finals.append(made[:count])
        sequence = made[count:]
    return sequence[0] if wanted else None, finals


def advance(
    b: Builder,
    kind: Kind,
    layer: Layer,
    states: list[Tensor],
    time: ir.Value,
    valid: Tensor | None,
) -> tuple[Tensor, list[Tensor]]:
    """A step of one direction: what it shows, and its states.

    A sequence that has ended keeps its state and gives zeros.
    """
    entering = read_at(b, layer.projected, 0, time)
    new = kind.cell(b, layer.part, entering, states)
    if valid is None:
        return new[0], new
    now = b.reshape(read_at(b, valid, 0, time), (states[0].shape[0], 1))
    shown = b.elementwise(lambda s, v: select(v, s, 0), new[0], now)
    kept = [
        b.elementwise(lambda s, old, v: select(v, s, old), s, old, now)
        for s, old in zip(new, states, strict=True)
    ]
    return shown, kept


def running(b: Builder, node: Node, steps: int, batch: int) -> Tensor | None:
    """[time, batch]: whether the sequence goes on; None if all have full length."""
    lengths = node.optional(4)
    if lengths is None:
        return None
    check(b, node, lengths, range(steps + 1), "sequence length")
    source = b.value(lengths)
    return b.generate(
        (steps, batch),
        BOOL,
        lambda t, n: t < b.load(source, lengths.dtype, [n]).cast(INT64),
    )


OPERATORS = {"GRU": lower(GRU), "LSTM": lower(LSTM), "RNN": lower(RNN)}
