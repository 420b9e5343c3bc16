"""Constants that nanoloom's own code computes, once, while a model is compiled.

ONNX's reference does not compute every operator as the code does (folding.py).  A node
of another one, whose inputs are known, is a model of its own, which is compiled and
runs once, by what the stage is handed (run_constant.py).  It is right for every
operator that has code, and takes a tenth of a second or more: those that fold otherwise
come first.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from nanoloom.errors import Error
from nanoloom.graph.alike_nodes import Answers
from nanoloom.graph.evaluate import asked, single
from nanoloom.graph.folding import is_defined
from nanoloom.graph.operator_specs import named
from nanoloom.graph.types import is_static, shape_of

Arrays: TypeAlias = Mapping[str, np.ndarray]
# What a model gives for its inputs; Error where it is refused.
Run: TypeAlias = Callable[[onnx.ModelProto, Arrays], Arrays]
MOST = 1 << 24  # bytes of a constant that takes more memory than what it is made of
# Other numbers at each node, or at each run, are none of a constant's.
RANDOM = named(lambda spec: spec.is_random)
COMPUTED = Answers[Sequence[np.ndarray] | None]()
_running = threading.local()  # node: the one whose program is made


def is_computable(node: ir.Node) -> bool:
    """Of a node of ONNX's domain whose inputs are known and whose shapes are."""
    if getattr(_running, "node", None) is not None:
        return False
    given = known_arrays(node)
    if node.op_type in RANDOM or not is_defined(node) or not given:
        return False
    used = [out for out in node.outputs if out.name]
    most = max(MOST, sum(tensor.nbytes for tensor in given.values()))
    few = all(is_static(out) and 0 < bytes_of(out) <= most for out in used)
    graphs = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    return few and all(a.type not in graphs for a in node.attributes.values())


def bytes_of(value: ir.Value) -> int:
    """Of a value whose shape is known."""
    size = value.dtype.itemsize if value.dtype else 1
    return math.ceil(size * math.prod(shape_of(value)))


def known_arrays(node: ir.Node) -> dict[int, ir.TensorProtocol]:
    """The inputs by their places; none where one is no array of numbers."""
    given = {i: x.const_value for i, x in enumerate(node.inputs) if x is not None}
    whole = {i: t for i, t in given.items() if t is not None and t.size}
    plain = all(t.dtype != ir.DataType.STRING for t in whole.values())
    return whole if plain and len(whole) == len(given) else {}


def fold(
    node: ir.Node, opsets: dict[str, int], run: Run
) -> list[ir.TensorProtocol | None] | None:
    """The constants that a computable node gives; None where its code refuses them."""
    arrays = COMPUTED.of(asked(node, opsets), lambda: computed(node, opsets, run))
    if arrays is None:
        return None
    rest = iter(arrays)
    return [ir.Tensor(next(rest)) if out.name else None for out in node.outputs]


def computed(
    node: ir.Node, opsets: dict[str, int], run: Run
) -> Sequence[np.ndarray] | None:
    """What a program of the node alone gives: its first input is the program's.

    The others are its constants, of which some must be known.
    """
    tensors = known_arrays(node)
    given = [tensors.get(i) for i in range(len(node.inputs))]
    model = single(node, opsets, given, [bool(out.name) for out in node.outputs])
    kinds = {x.name: x for x in (*model.graph.input, *model.graph.output)}
    for i, tensor in tensors.items():
        describe(kinds[f"x{i}"], tensor.dtype, tensor.shape.numpy())
    for i, out in enumerate(node.outputs):
        if out.name and out.dtype is not None:
            describe(kinds[f"y{i}"], out.dtype, shape_of(out))
    first = min(tensors)
    for i, tensor in tensors.items():
        if i != first:
            model.graph.input.remove(kinds[f"x{i}"])
            proto = ir.serde.serialize_tensor(ir.Tensor(tensor.numpy(), name=f"x{i}"))
            model.graph.initializer.append(proto)
    # The bytes of a file begin anywhere.
    given_first = np.require(tensors[first].numpy(), requirements=["C", "A"])
    _running.node = node
    try:
        with warnings.catch_warnings(action="ignore"):
            made = run(model, {f"x{first}": given_first})
    except Error:  # refused, or out of range: the model's program says so itself
        return None
    finally:
        _running.node = None
    return [np.array(made[x.name]) for x in model.graph.output]


def describe(
    value: onnx.ValueInfoProto, dtype: ir.DataType, shape: Sequence[int]
) -> None:
    kind = onnx.helper.make_tensor_type_proto(int(dtype), list(shape))
    value.type.CopyFrom(kind)
