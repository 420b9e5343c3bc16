"""Numbers of trips and conditions, as far as they are known while compiling."""

from __future__ import annotations

import onnx_ir as ir


def scalar(value: ir.Value | None) -> int | None:
    """The number of a one-element constant; None if it is not known now."""
    if value is None or value.const_value is None:
        return None
    return int(value.const_value.numpy().reshape(-1)[0])


def root(value: ir.Value) -> ir.Value:
    """The value behind Identity nodes."""
    producer = value.producer()
    while producer is not None and producer.op_type == "Identity":
        assert producer.inputs[0] is not None
        value = producer.inputs[0]
        producer = value.producer()
    return value


def keeps_running(body: ir.Graph) -> bool:
    """Whether a Loop's body never turns a true condition into a false one."""
    after = root(body.outputs[0])
    return bool(scalar(after)) or after is body.inputs[1]


def never_stops(node: ir.Node) -> bool:
    """Whether a Loop runs all its trips: no condition is or becomes false.

    Without a condition the body still decides, as in ONNX Runtime.
    """
    condition = node.inputs[1]
    starts = condition is None or bool(scalar(condition))
    return starts and keeps_running(node.attributes["body"].as_graph())
