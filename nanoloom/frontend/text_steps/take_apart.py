"""A model that looks into strings: that part as steps, the other as a model.

Steps are what strings of the inputs and constants alone decide.  What looks into
strings that the model computes stays, and is refused where strings become numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from nanoloom.errors import Unsupported
from nanoloom.frontend.microsoft.inferred_types import constant_tensor
from nanoloom.frontend.symbolic_dims import input_dims
from nanoloom.frontend.text_steps.operators import FOLLOWING, LOOKING
from nanoloom.frontend.text_steps.patterns import PatternError, pattern_of
from nanoloom.frontend.text_steps.steps import Known, TextStep

STEPS = "nanoloom.text_steps"  # of a model: inputs as declared, and the steps
STRING = ir.DataType.STRING
Dims = tuple[int | str | None, ...]
DTYPES = {
    "RegexFullMatch": ir.DataType.BOOL,
    "StringSplit": ir.DataType.INT64,  # its second output
    "TfIdfVectorizer": ir.DataType.FLOAT,
}


@dataclass
class Taken:
    """nodes: steps in order.  texts: strings at a call.  made: what steps make of them.

    dims: of both.
    """

    nodes: list[ir.Node] = field(default_factory=list[ir.Node])
    texts: set[ir.Value] = field(default_factory=set[ir.Value])
    dims: dict[ir.Value, Dims] = field(default_factory=dict[ir.Value, Dims])
    made: set[ir.Value] = field(default_factory=set[ir.Value])

    def takes(self, node: ir.Node) -> bool:
        """Whether all that a node reads is strings of a call, and constants."""
        if not node.inputs or not set(node.inputs) & self.texts:
            return False
        others = (x for x in node.inputs if x is not None and x not in self.texts)
        return all(constant_tensor(x) is not None for x in others)


def take_text_steps(model: ir.Model) -> None:
    """In place; a model that looks into no strings stays as it is.

    Raises Unsupported for a pattern that Python does not know.
    """
    if not any(node.op_type in LOOKING for node in model.graph):
        return
    declared = input_dims(model)
    texts = [x for x in model.graph.inputs if x.dtype == STRING and x.name in declared]
    reads_inputs = reading(model, {x: declared[str(x.name)] for x in texts})
    if not any(map(looks, reads_inputs.nodes)):
        return
    taken = needed(reads_inputs, set(texts))
    sides = [
        (x.name, list(declared[str(x.name)]), "string" if x in texts else named(x))
        for x in model.graph.inputs
    ]
    set_outputs_apart(model.graph, taken)
    steps = [step_of(node).written() for node in taken.nodes]
    model.meta[STEPS] = {"declared": sides, "steps": steps}
    remove(model, taken)


def named(value: ir.Value) -> str:
    return np.dtype(value.dtype.numpy()).name if value.dtype else "float32"


def looks(node: ir.Node) -> bool:
    if node.op_type == "Cast":
        return node.attributes["to"].as_int() != STRING
    return node.op_type in LOOKING


def reading(model: ir.Model, inputs: dict[ir.Value, Dims]) -> Taken:
    """All nodes that could be steps."""
    found = Taken(texts=set(inputs), dims=dict(inputs))
    for node in model.graph:
        if node.op_type not in LOOKING and node.op_type not in FOLLOWING:
            continue
        if not found.takes(node):
            continue
        if node.op_type == "TfIdfVectorizer" and "pool_strings" not in node.attributes:
            continue
        found.nodes.append(node)
        for place, dims in enumerate(dims_of(node, found.dims)):
            if place < len(node.outputs):
                found.dims[node.outputs[place]] = dims
                if dtype_of(node, place) == STRING:
                    found.texts.add(node.outputs[place])
    return found


def needed(found: Taken, inputs: set[ir.Value]) -> Taken:
    """Of what could be steps: what looks, what it reads, and what moves the results."""
    wanted: set[ir.Node] = set()
    for node in reversed(found.nodes):
        readers = {reader for value in node.outputs for reader, _ in value.uses()}
        if looks(node) or readers & wanted:
            wanted.add(node)
    made: set[ir.Value] = set()
    for node in found.nodes:
        read = set(node.inputs) & found.texts
        if node in wanted or (read <= made and not read & inputs):
            wanted.add(node)
            made |= set(node.outputs)
    nodes = [node for node in found.nodes if node in wanted]
    return Taken(nodes, found.texts, found.dims, made)


def step_of(node: ir.Node) -> TextStep:
    attributes = {name: plain(a) for name, a in node.attributes.items()}
    if node.op_type == "Cast":
        kind = ir.DataType(node.attributes["to"].as_int())
        attributes = {"dtype": "string" if kind == STRING else kind.numpy().name}
    patterns = [attributes.get("pattern"), attributes.get("tokenexp")]
    for text in [*patterns, *(attributes.get("separators") or ())]:
        require_pattern(node, text)
    inputs = [x for x in node.inputs if x is not None]
    arrays = {str(x.name): constant_tensor(x) for x in inputs}
    known = {name: known_of(x) for name, x in arrays.items() if x is not None}
    names = [str(x.name) for x in inputs], [str(x.name) for x in node.outputs]
    return TextStep(node.op_type, attributes, *names, known)


def plain(attribute: ir.Attr) -> Any:
    """As JSON takes it."""
    value: Any = attribute.value
    return value if isinstance(value, str | int | float) else list(value)


def require_pattern(node: ir.Node, text: str | None) -> None:
    if text is None:
        return
    try:
        pattern_of(text)
    except PatternError as error:
        raise Unsupported(
            str(error),
            where=f"node {node.name} ({node.op_type})",
            hint="write it with what Python's re has, too",
        ) from None


def known_of(tensor: ir.TensorProtocol) -> Known:
    array = tensor.numpy()
    if tensor.dtype == STRING:
        texts = [t.decode() if isinstance(t, bytes) else t for t in array.reshape(-1)]
        return Known("string", list(array.shape), texts)
    return Known(array.dtype.name, list(array.shape), array.reshape(-1).tolist())


# ---- shapes


def dims_of(node: ir.Node, known: dict[ir.Value, Dims]) -> list[Dims]:
    """Of each output, as far as it is known before a call; None for a size."""
    x = shape_at(node.inputs[0], known)
    rule = DIMS.get(node.op_type)
    return [x] if rule is None else rule(node, x, known)


def shape_at(value: ir.Value | None, known: dict[ir.Value, Dims]) -> Dims:
    """Of strings at a call, or of a constant."""
    if value is None or value in known:
        return known[value] if value else ()
    constant = constant_tensor(value)
    return () if constant is None else tuple(constant.shape.numpy())


def normalized(node: ir.Node, x: Dims, known: dict[ir.Value, Dims]) -> list[Dims]:
    return [(*x[:-1], None) if "stopwords" in node.attributes else x]


def parted(node: ir.Node, x: Dims, known: dict[ir.Value, Dims]) -> list[Dims]:
    return [(*x, None), x]


def concatenated(node: ir.Node, x: Dims, known: dict[ir.Value, Dims]) -> list[Dims]:
    y = shape_at(node.inputs[1], known)
    rank = max(len(x), len(y))
    wide = [(1,) * (rank - len(d)) + d for d in (x, y)]
    pairs = zip(*wide, strict=True)
    return [tuple(p if q in (1, p) else q if p == 1 else None for p, q in pairs)]


def flattened(node: ir.Node, x: Dims, known: dict[ir.Value, Dims]) -> list[Dims]:
    axis = node.attributes.get_int("axis", 1)
    axis = axis if axis >= 0 else axis + len(x)
    return [tuple(product(part) for part in (x[:axis], x[axis:]))]


def reshaped(node: ir.Node, x: Dims, known: dict[ir.Value, Dims]) -> list[Dims]:
    shape = node.inputs[1]
    wanted = None if shape is None else constant_tensor(shape)
    numbers = [] if wanted is None else wanted.numpy().tolist()
    kept = [
        x[axis] if number == 0 and axis < len(x) else number
        for axis, number in enumerate(numbers)
    ]
    rest = product(x) if kept.count(-1) == 1 and set(kept) <= {-1, 1} else None
    return [tuple(rest if number == -1 else number for number in kept)]


def vectorized(node: ir.Node, x: Dims, known: dict[ir.Value, Dims]) -> list[Dims]:
    size = max(node.attributes["ngram_indexes"].as_ints(), default=-1) + 1
    return [(*x[:-1], size)]


def product(dims: Dims) -> int | str | None:
    """Of sizes: a name or an unknown one beside ones stays what it is."""
    others = [d for d in dims if d != 1]
    if len(others) < 2:
        return others[0] if others else 1
    numbers = [d for d in others if isinstance(d, int)]
    return int(np.prod(numbers)) if len(numbers) == len(others) else None


DIMS: dict[str, Callable[[ir.Node, Dims, dict[ir.Value, Dims]], list[Dims]]] = {
    "Flatten": flattened, "Reshape": reshaped, "StringConcat": concatenated,
    "StringNormalizer": normalized, "StringSplit": parted, "Tokenizer": parted,
    "TfIdfVectorizer": vectorized,
}  # fmt: skip


# ---- the rest of the model


def remove(model: ir.Model, taken: Taken) -> None:
    """Results of steps that anything else reads become inputs of the model."""
    steps, graph = set(taken.nodes), model.graph
    for node in taken.nodes:
        for place, value in enumerate(node.outputs):
            others = [use for use in value.uses() if use.node not in steps]
            if not others:
                continue
            made = ir.Value(
                name=value.name,
                type=ir.TensorType(dtype_of(node, place)),
                shape=ir.Shape(taken.dims[value]),
            )
            graph.inputs.append(made)
            for use in others:
                use.node.replace_input_with(use.idx, made)
    graph.remove(taken.nodes, safe=True)
    for value in list(graph.inputs):
        read = value.uses() or value.is_graph_output()
        if value.dtype == STRING and not read:
            graph.inputs.remove(value)


def set_outputs_apart(graph: ir.Graph, taken: Taken) -> None:
    """What steps make is no output of the model itself, but its copy is."""
    for place, output in enumerate(graph.outputs):
        if output in taken.made:
            kind, shape, name = output.type, output.shape, str(output.name)
            copy = ir.Value(name=name, type=kind, shape=shape)
            output.name = f"{name}.steps"
            graph.append(
                ir.Node("", "Identity", [output], outputs=[copy], name=output.name)
            )
            graph.outputs[place] = copy


def dtype_of(node: ir.Node, place: int) -> ir.DataType:
    if node.op_type == "Cast":
        return ir.DataType(node.attributes["to"].as_int())
    if node.op_type == "MurmurHash3":
        is_signed = node.attributes.get_int("positive", 1) == 0
        return ir.DataType.INT32 if is_signed else ir.DataType.UINT32
    if node.op_type == "StringSplit" and not place:
        return STRING
    return DTYPES.get(node.op_type, STRING)
