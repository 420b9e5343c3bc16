"""Nodes that are added to a model, among them draws of random numbers.

From opset 22 on ONNX Runtime has no generators for its RandomUniformLike.  There the
numbers are an input of the model, in a row, of which every place takes another part.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
import onnx_ir as ir

DRAWN = "nanoloom.drawn"  # the input with the row of numbers
LENGTH = 65_521  # of the row: a prime, so no axis of a result repeats it
GIVEN = 22  # the opset from which on numbers are given


def hash_of(seed: int, name: str) -> int:
    """A number of 23 bits, so that a float holds it: another for every node."""
    import zlib

    return zlib.crc32(f"{seed} {name}".encode()) & 0x7FFFFF


def row(seed: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Numbers in [-1, 1] for the input DRAWN."""
    return np.random.default_rng(seed).uniform(-1, 1, LENGTH).astype(np.float32)


def new_row() -> ir.Value:
    """The input DRAWN."""
    kind = ir.TensorType(ir.DataType.FLOAT)
    return ir.Value(name=DRAWN, type=kind, shape=ir.Shape([LENGTH]))


class Writer:
    """Collects new nodes, their values named after the first word."""

    def __init__(self, name: str, floats: Set[ir.DataType]) -> None:
        self.name, self.floats = name, floats
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

    def constant(self, number: float, kind: ir.DataType) -> ir.Value:
        tensor = ir.tensor(number, dtype=kind)
        return self.put(ir.node("Constant", [], {"value": tensor}))

    def sum_of_absolutes(self, node: ir.Node) -> ir.Value:
        """The same node on the absolute values of its floats."""
        inputs = [
            x if x is None or x.dtype not in self.floats else self("Abs", x)
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

    def drawn(
        self, like: ir.Value, kind: ir.DataType, error: float, seed: int
    ) -> ir.Value:
        """Numbers in [-error, error] of the shape of `like`, from ONNX's generator."""
        return self(
            "RandomUniformLike",
            like,
            low=-error,
            high=error,
            seed=float(hash_of(seed, self.name)),
            dtype=int(kind),
        )

    def given(
        self, like: ir.Value, kind: ir.DataType, error: float, numbers: ir.Value
    ) -> ir.Value:
        """The same from a row of numbers, repeated as often as the shape needs."""

        def whole(number: int) -> ir.Value:
            return self.integers([number])

        begin = whole(hash_of(0, self.name) % LENGTH)
        size = self("Reshape", self("Size", like), whole(1))
        end = self("Add", size, begin)
        times = self("Add", self("Div", end, whole(LENGTH)), whole(1))
        part = self("Slice", self("Tile", numbers, times), begin, end)
        shaped = self.put(
            ir.node("Reshape", [part, self("Shape", like)], {"allowzero": 1})
        )
        drawn = self.cast(shaped, ir.DataType.FLOAT, kind)
        return self("Mul", drawn, self.constant(error, kind))

    def integers(self, numbers: list[int]) -> ir.Value:
        tensor = ir.tensor(numbers, dtype=ir.DataType.INT64)
        return self.put(ir.node("Constant", [], {"value": tensor}))
