"""What a node is to give: ONNX Runtime, or ONNX's own reference where that has none.

A graph's results are known up to rounding: `Trial` runs its nodes again with a random
error within each operation's bound added to every result (see inspect/rounding.py).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from nanoloom.errors import Error
from nanoloom.inspect import graph_writer, rounding
from nanoloom.inspect.references import Run, open_reference
from tests.fuzz.asked import asked_about
from tests.fuzz.exceptions import COARSE, COORDINATES, SCALES, WEIGHTED
from tests.fuzz.magnitudes import MAGNITUDES
from tests.fuzz.wrong import is_wrong

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]
NEWEST_RUNTIME = 26  # the newest operator set of ONNX Runtime
IR_VERSION = 10
WIDENED = 22


class Rejected(Exception):
    """A drawn node that the references do not run: another one is drawn."""


@dataclass
class Step:
    """A node and the reference that runs it."""

    node: onnx.NodeProto
    opset: int
    source: str
    reference: Run
    absolute: Run | None = None  # the same sum, of absolute values

    @property
    def inputs(self) -> list[str]:
        return used_names(self.node)

    def run(self, values: Arrays) -> dict[str, Array]:
        """Its results by name."""
        return self.results(self.reference, {x: values[x] for x in self.inputs})

    def results(self, reference: Run, feeds: Arrays) -> dict[str, Array]:
        try:
            made = reference(feeds)
        except Error as error:
            raise Rejected(str(error)) from None
        names = [name for name in self.node.output if name]
        return dict(zip(names, made, strict=True))

    def disturbed(self, values: Arrays, rng: np.random.Generator) -> dict[str, Array]:
        """Its results with a rounding error in each."""
        values = {**values, **self.moved(values, rng)}
        made = self.run(values)
        if self.is_exact():
            return made
        for name, array in made.items():
            kind = ir.DataType.from_numpy(array.dtype)
            if kind in rounding.ROUNDING:
                coarse = (self.source, self.node.op_type) in COARSE
                if coarse and kind == ir.DataType.DOUBLE:
                    kind = ir.DataType.FLOAT
                error = self.error(values, made, array) * rounding.ROUNDING[kind]
                size = self.magnitude(values, name, array)
                drawn = rng.uniform(-error, error, array.shape)
                with np.errstate(all="ignore"):
                    wide = array.astype(np.float64) + size * drawn
                    made[name] = np.asarray(wide).astype(array.dtype)
        return made

    def moved(self, values: Arrays, rng: np.random.Generator) -> dict[str, Array]:
        """Scales and coordinates that are a few roundings off."""
        made: dict[str, Array] = {}
        ways = ((SCALES, 0.0), (COORDINATES, 1.0))
        for known, least in ways:
            for place in known.get(self.node.op_type, ()):
                name = self.node.input[place]
                array = values[name]
                size = np.maximum(np.abs(array), least)
                off = size * rng.uniform(-4, 4, array.shape) * 2.0**-24
                made[name] = np.asarray(array + off).astype(array.dtype)
        return made

    def error(self, values: Arrays, made: Arrays, array: Array) -> float:
        """In roundings of the result."""
        node = described(self.node, {**values, **made})
        if rounding.is_exact_cast(node):
            return 0.0
        return rounding.relative_error(node) + WEIGHTED.get(node.op_type, 0.0)

    def is_exact(self) -> bool:
        """Whether the results are parts of the inputs."""
        op = self.node.op_type
        rounded = is_control(self.node) or (self.source, op) in COARSE
        return op in rounding.EXACT and not rounded

    def magnitude(self, values: Arrays, name: str, array: Array) -> Array:
        """What the error is relative to, at every element."""
        with np.errstate(all="ignore"):
            size = np.abs(array.astype(np.float64))
        op = self.node.op_type
        if op in rounding.SUMS:
            return self.of_absolutes(values)[name].astype(np.float64)
        known = MAGNITUDES.get(op)
        if known is not None and array.size:
            size = known(asked_about(self.node, values, self.opset), size)
        if op in rounding.COMPOSITE or is_control(self.node):
            finite = size[np.isfinite(size)]
            return np.maximum(size, finite.max(initial=0))
        if array.dtype.itemsize == 2:  # where nearly all large numbers are whole
            return size
        if known is not None or (self.source, op) in COARSE:
            return size
        small_whole = (size == np.floor(size)) & (size <= graph_writer.SMALL)
        return np.where(small_whole, 0.0, size)

    def of_absolutes(self, values: Arrays) -> dict[str, Array]:
        """The same node on the absolute values of its floats."""
        feeds = {name: values[name] for name in self.inputs}
        for name, array in feeds.items():
            if array.dtype.kind not in "iub":
                feeds[name] = np.asarray(np.abs(array))
        if self.absolute is None:
            node = onnx.NodeProto()
            node.CopyFrom(self.node)
            for attribute in node.attribute:
                if attribute.name in ("alpha", "beta"):
                    attribute.f = abs(attribute.f)
            self.absolute = opened(self.source, node, self.opset, feeds)
        return self.results(self.absolute, feeds)


def is_control(node: onnx.NodeProto) -> bool:
    """Whether the node has others inside: one of them may round."""
    return any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute)


def used_names(node: onnx.NodeProto) -> list[str]:
    """The node's inputs, and what its graphs take from around them."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            inside = {x.name for x in attribute.g.input}
            inside |= {x.name for x in attribute.g.initializer}
            for inner in attribute.g.node:
                names += [name for name in used_names(inner) if name not in inside]
                inside |= set(inner.output)
            names += [x.name for x in attribute.g.output if x.name not in inside]
    return list(dict.fromkeys(names))


def step_of(node: onnx.NodeProto, opset: int, values: Arrays) -> Step:
    """The node with the first reference that runs it.  Raises Rejected if none does."""
    feeds = {name: values[name] for name in used_names(node)}
    reasons: list[str] = []
    for source, version in sources(node, opset, feeds):
        try:
            run = opened(source, node, version, feeds)
            run(feeds)
        except Error as error:
            reasons.append(str(error))
            continue
        return Step(node, version, source, run)
    raise Rejected(f"{node.op_type}: {'; '.join(reasons)}")


def sources(
    node: onnx.NodeProto, opset: int, feeds: Arrays
) -> Sequence[tuple[str, int]]:
    """Which references to ask, in order, and in which operator set.

    Set 22 brought many operators anew, for one more element type only: ONNX Runtime has
    some of them as they were in 21.
    """
    both = [("reference", opset)]
    since = 1
    if not node.domain:
        since = onnx.defs.get_schema(node.op_type, opset).since_version
    if since <= NEWEST_RUNTIME:
        both.insert(0, ("ort", min(opset, NEWEST_RUNTIME)))
    if since == WIDENED:
        both.insert(1, ("ort", WIDENED - 1))
    asked = asked_about(node, feeds, opset)
    both = [pair for pair in both if not is_wrong(pair[0], asked)]
    if any(array.dtype.name == "bfloat16" for array in feeds.values()):
        both = [pair for pair in both if pair[0] != "ort"]
    return both


def opened(source: str, node: onnx.NodeProto, opset: int, feeds: Arrays) -> Run:
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        model = single(node, opset, feeds)
        Path(file.name).write_bytes(model.SerializeToString())
        return open_reference(source, Path(file.name), 1)


def single(
    node: onnx.NodeProto, opset: int, feeds: Arrays, constants: Arrays | None = None
) -> onnx.ModelProto:
    """A model of this node alone.  constants: inputs that it has as initializers."""
    held = constants or {}
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in feeds.items()
        if name not in held
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    tensors = [
        onnx.numpy_helper.from_array(array, name) for name, array in held.items()
    ]
    graph = helper.make_graph([node], "single", inputs, outputs, tensors)
    return helper.make_model(
        graph, opset_imports=opsets(opset, [node]), ir_version=IR_VERSION
    )


def opsets(
    opset: int, nodes: Sequence[onnx.NodeProto]
) -> list[onnx.OperatorSetIdProto]:
    """Classical models in the last set that has all of their operators but one."""
    made = [helper.make_opsetid("", opset)]
    if any(node.domain == "ai.onnx.ml" for node in nodes):
        newest = any(node.op_type == "TreeEnsemble" for node in nodes)
        made.append(helper.make_opsetid("ai.onnx.ml", 5 if newest else 3))
    return made


def described(node: onnx.NodeProto, values: Arrays) -> ir.Node:
    """The node as the bounds read it: types and shapes of what goes in and out."""

    def value(name: str) -> ir.Value | None:
        if not name:
            return None
        array = values[name]
        kind = ir.TensorType(ir.DataType.from_numpy(array.dtype))
        return ir.Value(name=name, shape=ir.Shape(array.shape), type=kind)

    outputs = [value(name) or ir.Value(name="") for name in node.output]
    return ir.Node(
        node.domain, node.op_type, list(map(value, node.input)), outputs=outputs
    )


@dataclass(frozen=True)
class Trial:
    """All steps once more, with errors."""

    steps: Sequence[Step]

    def run(self, given: Arrays, seed: int) -> dict[str, Array]:
        rng = np.random.default_rng(seed)
        values = dict(given)
        for step in self.steps:
            values |= step.disturbed(values, rng)
        return values
