"""Nodes that are added to a graph: errors, and what they are made of."""

from __future__ import annotations

import zlib
from collections.abc import Container, Sequence

import numpy as np
import onnx_ir as ir

SMALL = 1024.0  # whole numbers up to here are not rounded
FAST = 1e4  # radians of a sine for 1: neighbours have others
SLOW = 1e-3  # so that numbers in the thousands differ, too


class Writer:
    """Collects new nodes, their values named after the first word."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[ir.Node] = []

    def __call__(
        self, op_type: str, *inputs: ir.Value | None, **attributes: float | int
    ) -> ir.Value:
        return self.put(ir.node(op_type, inputs, attributes))

    def put(self, node: ir.Node) -> ir.Value:
        """Add a node; its first output."""
        node.name = f"{self.name}.{len(self.nodes)}"
        for place, value in enumerate(node.outputs):
            value.name = f"{node.name}.{place}"
        self.nodes.append(node)
        return node.outputs[0]

    def cast(self, value: ir.Value, kind: ir.DataType, to: ir.DataType) -> ir.Value:
        return value if kind == to else self("Cast", value, to=int(to))

    def constant(self, number: float | np.ndarray, kind: ir.DataType) -> ir.Value:
        tensor = ir.tensor(np.asarray(number, kind.numpy()))
        return self.put(ir.node("Constant", [], {"value": tensor}))

    def sum_of_absolutes(
        self, node: ir.Node, floats: Container[ir.DataType | None]
    ) -> ir.Value:
        """The same node on the absolute values of its floats."""
        inputs = [
            x if x is None or x.dtype not in floats else self("Abs", x)
            for x in node.inputs
        ]
        attributes = dict(node.attributes)
        for name in ("alpha", "beta"):
            if name in attributes:
                factor = abs(attributes[name].as_float())
                attributes[name] = ir.AttrFloat32(name, factor)
        made = ir.node(node.op_type, inputs, domain=node.domain, version=node.version)
        for attribute in attributes.values():
            made.attributes.add(attribute)
        return self.put(made)


def signed_random(
    write: Writer,
    value: ir.Value,
    shape: Sequence[int] | None,
    trial: ir.Value,
    kind: ir.DataType,
) -> ir.Value:
    """Numbers in [-1, 1), one for each element of a value, the same at every run.

    A random number for each place along each axis, added up without the whole part:
    by operators that every implementation has at every opset.  Where the shape is not
    known, a sine that goes fast with the value itself, as far as that is finite: of
    the infinities in masks it is one number each.
    """
    rng = np.random.default_rng(hash_of(write.name))
    total = write("Mul", trial, write.constant(rng.random(), kind))
    if shape is None:
        slow = write("Mul", value, write.constant(SLOW, kind))
        phase = write("Add", write("Tanh", value), write("Tanh", slow))
        phase = write("Mul", phase, write.constant(FAST, kind))
        return write("Sin", write("Add", phase, total))
    for axis, size in enumerate(shape):
        if size > 1:
            places = [1] * axis + [size] + [1] * (len(shape) - axis - 1)
            along = write.constant(rng.random(places), kind)
            total = write("Add", total, along)
    part = write("Sub", total, write("Floor", total))
    twice = write("Mul", part, write.constant(2, kind))
    return write("Sub", twice, write.constant(1, kind))


def unless_integer(write: Writer, size: ir.Value, kind: ir.DataType) -> ir.Value:
    """size, and 0 where it is a small whole number: that came out exactly.

    So masks stay 0 or 1, and what is compared with a number stays equal to it.
    """
    part = write("Sign", write("Sub", size, write("Floor", size)))
    above = write("Sub", size, write.constant(SMALL, kind))
    large = write("Sign", write("Relu", above))
    return write("Mul", size, write("Max", part, large))


def hash_of(name: str) -> int:
    """The same number in every process, another for every node."""
    return zlib.crc32(name.encode())
