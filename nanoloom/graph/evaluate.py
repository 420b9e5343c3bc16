"""Constants: what a Constant node holds, and nodes whose inputs are all known."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from nanoloom.errors import Unsupported
from nanoloom.frontend.mapped_tensors import MappedTensor
from nanoloom.frontend.memory_claims import available_memory
from nanoloom.graph.alike_nodes import Answers, data_key, operator_key
from nanoloom.graph.derived_constants import DerivedTensor, derived
from nanoloom.graph.folding import is_defined
from nanoloom.graph.own_evaluation import OwnEvaluator, is_own
from nanoloom.graph.types import is_static, shape_of
from nanoloom.weights.derivations import Transposed

SMALL = 16 * 1024  # elements; larger results are computed only when asked for

# From which version on the reference has an operator whose earlier ones are the same.
REFERENCE_SINCE = {"DequantizeLinear": 19, "QuantizeLinear": 19}
COMPUTED = Answers[Sequence[np.ndarray | None] | None]()


def view(node: ir.Node) -> ir.TensorProtocol | None:
    """What Identity and Transpose make of a constant: it is not copied."""
    x = node.inputs[0] if node.op_type in ("Identity", "Transpose") else None
    if x is None or x.const_value is None:
        return None
    if node.op_type == "Identity":
        return derived(x)
    attribute = node.attributes.get("perm")
    order = range(len(shape_of(x)))[::-1]
    if isinstance(attribute, ir.Attr):
        order = attribute.as_ints()
    return derived(x, Transposed(tuple(order)))


def constant_of(node: ir.Node) -> ir.TensorProtocol | None:
    """The tensor of a Constant node, whichever attribute holds it."""
    name, attribute = next(iter(node.attributes.items()))
    assert isinstance(attribute, ir.Attr)
    match name:
        case "value":
            # as_tensor asks the tensor for each member of a protocol: a millisecond
            return attribute.value
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

    For operators that `folding.agrees` names.

    Small ones are computed now (shapes may depend on them), large ones on demand.
    """
    used = [out for out in node.outputs if out.name]
    if not is_defined(node) or not all(fits(out) for out in used):
        return None
    if all(is_static(out) for out in used) and any(
        np.prod(shape_of(out), dtype=np.int64) > SMALL for out in used
    ):
        evaluation = Evaluation.of(node, opsets)
        if evaluation is None:
            return None
        return [evaluation.lazy(out, i) for i, out in enumerate(node.outputs)]
    arrays = COMPUTED.of(asked(node, opsets), lambda: computed(node, opsets))
    if arrays is None:
        return None
    return [None if a is None else ir.Tensor(a.copy()) for a in arrays]


def folded_before(
    node: ir.Node, opsets: dict[str, int]
) -> list[ir.TensorProtocol | None] | None:
    """The same for a node like one whose constants are computed already.

    None where there is none.  Inference has let that one pass.
    """
    arrays = COMPUTED.known(asked(node, opsets))
    if arrays is None:
        return None
    return [None if a is None else ir.Tensor(a.copy()) for a in arrays]


def asked(node: ir.Node, opsets: dict[str, int]) -> Hashable | None:
    """What decides about a node's constants; None for too much of it."""
    inputs = data_key([None if x is None else x.const_value for x in node.inputs])
    parts = operator_key(node, opsets), inputs
    return None if None in parts else parts


def computed(
    node: ir.Node, opsets: dict[str, int]
) -> Sequence[np.ndarray | None] | None:
    evaluation = Evaluation.of(node, opsets)
    return None if evaluation is None else evaluation.run()


def fits(value: ir.Value) -> bool:
    """Whether there is memory for a constant; what is too large is computed later."""
    if not is_static(value):
        return True
    count = math.prod(shape_of(value))
    return count <= SMALL or 8 * count <= available_memory()


class Folded(ir.LazyTensor):
    """A constant computed each time that somebody asks for it, from `sources`."""

    def __init__(
        self,
        make: Callable[[], ir.TensorProtocol],
        dtype: ir.DataType,
        shape: ir.Shape,
        sources: Sequence[ir.TensorProtocol | None],
        name: str,
    ) -> None:
        super().__init__(make, dtype, shape, name=name)
        self.sources = sources


def mapped_sources(tensor: ir.TensorProtocol | None) -> Iterator[MappedTensor]:
    """The tensors in files that a constant is made of."""
    if isinstance(tensor, MappedTensor):
        yield tensor
    elif isinstance(tensor, DerivedTensor):
        origin = tensor.weight.source.origin
        assert isinstance(origin, ir.TensorProtocol)
        yield from mapped_sources(origin)
    elif isinstance(tensor, Folded):
        for source in tensor.sources:
            yield from mapped_sources(source)


def reference(
    node: ir.Node, opsets: dict[str, int], arrays: Sequence[np.ndarray | None]
) -> np.ndarray | None:
    """What ONNX's reference gives for a node's only output, None where it fails.

    arrays: of the inputs, whose shapes need not be those of the graph.
    """
    inputs = [None if a is None else ir.Tensor(a) for a in arrays]
    evaluation = Evaluation.on(node, opsets, inputs)
    results = None if evaluation is None else evaluation.run()
    return None if results is None else results[0]


@dataclass(frozen=True)
class Evaluation:
    """One node on constants, independent of the graph it was taken from."""

    inputs: list[ir.TensorProtocol | None]
    outputs: list[bool]
    evaluator: ReferenceEvaluator | OwnEvaluator
    view: ir.TensorProtocol | None

    @classmethod
    def of(cls, node: ir.Node, opsets: dict[str, int]) -> Evaluation | None:
        """Of a node whose inputs are constants."""
        inputs = [None if x is None else x.const_value for x in node.inputs]
        return cls.on(node, opsets, inputs)

    @classmethod
    def on(
        cls,
        node: ir.Node,
        opsets: dict[str, int],
        inputs: Sequence[ir.TensorProtocol | None],
    ) -> Evaluation | None:
        """None if ONNX's reference does not know the operator or its attributes."""
        outputs = [bool(out.name) for out in node.outputs]
        if is_own(node):
            return cls(list(inputs), outputs, OwnEvaluator(node), None)
        try:
            evaluator = ReferenceEvaluator(single(node, opsets, inputs, outputs))
        except Exception:  # noqa: BLE001 - whatever it is: computed later, or refused
            return None
        return cls(list(inputs), outputs, evaluator, view(node))

    def lazy(self, value: ir.Value, index: int) -> ir.TensorProtocol | None:
        """A large result, computed each time that somebody asks for it."""
        if not value.name or value.dtype is None or value.shape is None:
            return None

        if self.view is not None:
            return self.view

        node = value.producer()
        where = "" if node is None else f"node {node.name} ({node.op_type})"

        def make() -> ir.TensorProtocol:
            arrays = self.run()
            if arrays is None:
                raise Unsupported(
                    "its result is a constant, which ONNX's reference cannot compute "
                    "in the memory there is",
                    where=where,
                    hint="use smaller dimensions or a machine with more",
                )
            return ir.Tensor(np.asarray(arrays[index]))

        return Folded(make, value.dtype, value.shape, self.inputs, value.name)

    def run(self) -> list[np.ndarray | None] | None:
        """The outputs' arrays; None if the reference fails on these inputs."""
        return self.given([None if x is None else x.numpy() for x in self.inputs])

    def given(
        self, arrays: Sequence[np.ndarray | None]
    ) -> list[np.ndarray | None] | None:
        """The same of other inputs."""
        feeds = {f"x{i}": x for i, x in enumerate(arrays) if x is not None}
        try:
            with np.errstate(all="ignore"):
                results = iter(self.evaluator.run(None, feeds))
        except Exception:  # noqa: BLE001 - any failure means: computed later, not here
            return None
        made = [next(results) if wanted else None for wanted in self.outputs]
        kinds = (np.ndarray, np.generic, type(None))
        if not all(isinstance(a, kinds) for a in made):
            return None
        return [None if a is None else np.asarray(a) for a in made]


def single(
    node: ir.Node,
    opsets: dict[str, int],
    inputs: Sequence[ir.TensorProtocol | None],
    outputs: list[bool],
) -> onnx.ModelProto:
    """A model of one node: inputs x0, x1 ..., outputs y0, y1 ..."""
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    for attribute in node.attributes.values():
        ir.serde.serialize_attribute_into(proto.attribute.add(), attribute)  # type: ignore[arg-type]
    proto.input.extend("" if t is None else f"x{i}" for i, t in enumerate(inputs))
    proto.output.extend(f"y{i}" if wanted else "" for i, wanted in enumerate(outputs))
    graph = onnx.helper.make_graph(
        [proto],
        "fold",
        [onnx.ValueInfoProto(name=name) for name in proto.input if name],
        [onnx.ValueInfoProto(name=name) for name in proto.output if name],
    )
    given = node.version or opsets.get(node.domain, 1)
    version = max(given, REFERENCE_SINCE.get(node.op_type, given))
    imports = [onnx.helper.make_opsetid(node.domain, version)]
    return onnx.helper.make_model(graph, opset_imports=imports)
