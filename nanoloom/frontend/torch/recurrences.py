"""LSTM, GRU and RNN: torch's layers and directions as ONNX's nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from nanoloom.frontend.torch.call import Call

# By kind: ONNX's operator, and the places of torch's gates in ONNX's order.
KINDS: dict[str, tuple[str, tuple[int, ...]]] = {
    "lstm": ("LSTM", (0, 3, 1, 2)),  # torch: input, forget, cell, output
    "gru": ("GRU", (1, 0, 2)),  # torch: reset, update, new
    "rnn_tanh": ("RNN", (0,)),
    "rnn_relu": ("RNN", (0,)),
}


def recurrence(name: str) -> Callable[[Call], Any]:
    op, order = KINDS[name]

    def made(call: Call) -> Any:
        if call.has("data") or "batch_sizes" in call.args:
            raise call.refuse("takes a packed sequence", hint="give it padded")
        if call["train"] and call["dropout"]:
            reason = "drops numbers at random"
            raise call.refuse(reason, hint="call module.eval() first")
        return layers(call, name, op, order)

    return made


def layers(call: Call, name: str, op: str, order: tuple[int, ...]) -> Any:
    """All layers, one after the other; what each ends with is stacked."""
    w, x = call.w, call.value("input")
    turned = bool(call["batch_first"])
    if turned:
        x = w("Transpose", x, perm=[1, 0, 2])
    hx = call["hx"]
    states = [call.of(s) for s in (hx if isinstance(hx, list | tuple) else [hx])]
    directions = 2 if call["bidirectional"] else 1
    params, count = list(call["params"]), int(call["num_layers"])
    each = len(params) // (count * directions)
    if each > (4 if call["has_biases"] else 2):
        raise call.refuse("projects its states")
    ends: list[list[ir.Value]] = []
    for layer in range(count):
        first = layer * directions
        own = [params[(first + d) * each :][:each] for d in range(directions)]
        begin = [part(call, s, first, directions) for s in states]
        made = one_layer(call, name, op, order, x, own, begin)
        x = joined(call, made[0], directions)
        ends.append(list(made[1:]))
    if turned:
        x = w("Transpose", x, perm=[1, 0, 2])
    last = [list(state) for state in zip(*ends, strict=True)]
    return (x, *[w("Concat", *s, axis=0) if len(s) > 1 else s[0] for s in last])


def part(call: Call, state: ir.Value, first: int, count: int) -> ir.Value:
    bounds = [call.w.constant([n]) for n in (first, first + count, 0)]
    return call.w("Slice", state, *bounds)


def joined(call: Call, y: ir.Value, directions: int) -> ir.Value:
    """[steps, directions, batch, size] as [steps, batch, directions * size]."""
    w = call.w
    if directions == 1:
        return w("Squeeze", y, w.constant([1]))
    apart = [w("Gather", y, w.constant(d), axis=1) for d in range(2)]
    return w("Concat", *apart, axis=-1)


def one_layer(
    call: Call, name: str, op: str, order: tuple[int, ...], x: ir.Value,
    own: list[list[Any]], begin: list[ir.Value],
) -> tuple[ir.Value, ...]:  # fmt: skip
    w = call.w
    size = int(own[0][1].meta["val"].shape[1])
    gates = [[reordered(call, p, order, size) for p in each] for each in own]
    weights = [stacked(call, [g[i] for g in gates]) for i in (0, 1)]
    biases = None
    if call["has_biases"]:
        rows = [w("Concat", g[2], g[3], axis=0) for g in gates]
        biases = stacked(call, rows)
    attributes: dict[str, Any] = {"hidden_size": size}
    if len(own) == 2:
        attributes["direction"] = "bidirectional"
    if op == "GRU":
        attributes["linear_before_reset"] = 1
    if name == "rnn_relu":
        attributes["activations"] = ["Relu"] * len(own)
    outputs = 3 if op == "LSTM" else 2
    made = w(op, x, *weights, biases, None, *begin, count=outputs, **attributes)
    return tuple(made)


def reordered(call: Call, weight: Any, order: tuple[int, ...], size: int) -> ir.Value:
    value = call.of(weight)
    if order == (0,):
        return value
    places = [gate * size + row for gate in order for row in range(size)]
    return call.w("Gather", value, call.w.constant(places), axis=0)


def stacked(call: Call, values: list[ir.Value]) -> ir.Value:
    w = call.w
    wide = [w("Unsqueeze", v, w.constant([0])) for v in values]
    return w("Concat", *wide, axis=0) if len(wide) > 1 else wide[0]


OPERATORS = {name: recurrence(name) for name in KINDS}
