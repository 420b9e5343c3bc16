"""Constants: what a Constant node holds, and nodes whose inputs are all known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from nanoloom.graph.types import is_static, shape_of

SMALL = 16 * 1024  # elements; larger results are computed only when asked for
DIRECT: dict[str, Callable[[np.ndarray, ir.Node], np.ndarray]] = {
    "Identity": lambda x, _: x,
    "Transpose": lambda x, node: np.transpose(x, permutation(node)),
}


def permutation(node: ir.Node) -> list[int] | None:
    attribute = node.attributes.get("perm")
    return list(attribute.as_ints()) if isinstance(attribute, ir.Attr) else None


def constant_of(node: ir.Node) -> ir.TensorProtocol | None:
    """The tensor of a Constant node, whichever attribute holds it."""
    name, attribute = next(iter(node.attributes.items()))
    assert isinstance(attribute, ir.Attr)
    match name:
        case "value":
            return attribute.as_tensor()
        case "value_float":
            return ir.Tensor(np.array(attribute.as_float(), np.float32))
        case "value_int":
            return ir.Tensor(np.array(attribute.as_int(), np.int64))
        case "value_floats":
            return ir.Tensor(np.array(attribute.as_floats(), np.float32))
        case "value_ints":
            return ir.Tensor(np.array(attribute.as_ints(), np.int64))
        case _:
            return None


def shape_constant(node: ir.Node) -> ir.TensorProtocol | None:
    """What Shape and Size give for an input of static shape: no data is needed."""
    if node.op_type not in ("Shape", "Size") or node.domain not in ("", "ai.onnx"):
        return None
    x = node.inputs[0]
    if x is None or not is_static(x):
        return None
    shape = shape_of(x)
    if node.op_type == "Size":
        return ir.Tensor(np.array(np.prod(shape, dtype=np.int64)))
    limits = [node.attributes.get(name) for name in ("start", "end")]
    first, last = (None if a is None else a.as_int() for a in limits)
    return ir.Tensor(np.array(shape[first:last], np.int64))


def fold(
    node: ir.Node, opsets: dict[str, int]
) -> list[ir.TensorProtocol | None] | None:
    """The constants a node gives, or None where ONNX's reference cannot tell.

    Small ones are computed now (shapes may depend on them), large ones on demand.
    """
    used = [out for out in node.outputs if out.name]
    if all(is_static(out) for out in used) and any(
        np.prod(shape_of(out), dtype=np.int64) > SMALL for out in used
    ):
        return [lazy(node, opsets, i) for i, _ in enumerate(node.outputs)]
    arrays = compute(node, opsets)
    if arrays is None:
        return None
    return [None if a is None else ir.Tensor(a) for a in arrays]


def lazy(node: ir.Node, opsets: dict[str, int], index: int) -> ir.TensorProtocol | None:
    value = node.outputs[index]
    if not value.name or value.dtype is None or value.shape is None:
        return None
    inputs = [None if x is None else x.const_value for x in node.inputs]

    def make() -> ir.TensorProtocol:
        direct = DIRECT.get(node.op_type)
        if direct is not None:
            assert inputs[0] is not None
            return ir.Tensor(direct(inputs[0].numpy(), node))
        arrays = compute(node, opsets, inputs)
        assert arrays is not None and arrays[index] is not None, node.op_type
        return ir.Tensor(np.asarray(arrays[index]))

    return ir.LazyTensor(make, value.dtype, value.shape, name=value.name)


def compute(
    node: ir.Node,
    opsets: dict[str, int],
    inputs: list[ir.TensorProtocol | None] | None = None,
) -> list[np.ndarray | None] | None:
    """Run one node in ONNX's reference evaluator; None if that has no answer."""
    if inputs is None:
        inputs = [None if x is None else x.const_value for x in node.inputs]
    arrays = [None if t is None else t.numpy() for t in inputs]
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    for attribute in node.attributes.values():
        ir.serde.serialize_attribute_into(proto.attribute.add(), attribute)  # type: ignore[arg-type]
    proto.input.extend("" if a is None else f"x{i}" for i, a in enumerate(arrays))
    names = [f"y{i}" if out.name else "" for i, out in enumerate(node.outputs)]
    proto.output.extend(names)
    version = node.version or opsets.get(node.domain, 1)
    graph = onnx.helper.make_graph(
        [proto],
        "fold",
        [onnx.ValueInfoProto(name=f"x{i}") for i, a in enumerate(arrays) if a is not None],
        [onnx.ValueInfoProto(name=name) for name in names if name],
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid(node.domain, version)]
    )
    feeds = {f"x{i}": a for i, a in enumerate(arrays) if a is not None}
    try:
        with np.errstate(all="ignore"):
            results = iter(ReferenceEvaluator(model).run(None, feeds))
    except Exception:  # noqa: BLE001 - any failure means: not folded, computed later
        return None
    made = [next(results) if name else None for name in names]
    if any(a is not None and not isinstance(a, (np.ndarray, np.generic)) for a in made):
        return None
    return [None if a is None else np.asarray(a) for a in made]
