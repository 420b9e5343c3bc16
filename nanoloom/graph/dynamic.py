"""Values whose shapes nobody knows while compiling: the first one, as an error."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.errors import DataDependent, Unsupported
from nanoloom.graph.custom_types import RULES
from nanoloom.graph.data_dependent.count import counts_of
from nanoloom.graph.types import deciding_sources, integer_sources, is_static
from nanoloom.graph.unique_names import nested

# Operators whose inputs from here on decide about shapes, floats too
DECIDING = {"Compress": 1, "NonZero": 0, "Resize": 1, "Unique": 0, "Upsample": 1}


def first_dynamic(graph: ir.Graph) -> Unsupported | None:
    """The first value without a static shape, in bodies too, as an error."""
    for node in nested(graph):
        for value in node.outputs:
            used = value.uses() or value.is_graph_output()
            if value.name and used and not is_static(value):
                return lost(node, value, "nanoloom compiles static shapes only")
    return None


def lost(node: ir.Node, value: ir.Value, hint: str) -> Unsupported:
    """Why an output has no static shape, as an error.

    hint: what to do where it depends on data.
    """
    where = f"node {node.name} ({node.op_type})"
    given = all(x is None or is_static(x) for x in node.inputs)
    if node.domain == "nanoloom" and given and (node.domain, node.op_type) not in RULES:
        return Unsupported(
            f"nothing says which shape its output {value.name} has: nanoloom's own "
            f"{node.op_type} is for what the compiler makes, not for models",
            where=where,
            hint="use operators of ONNX, or one of your own (nanoloom.operator)",
        )
    reason = f"the shape of its output {value.name} depends on the data"
    return DataDependent(reason, sources(node), where=where, hint=hint)


def first_unfit(body: ir.Graph, most: int | None = None) -> Unsupported | None:
    """The same, or the first output of a body whose size the program computes.

    most: of its first so many outputs; None for all.
    """
    for value in body.outputs[:most]:
        for count in counts_of(value).values():
            return DataDependent(
                f"the shape of what its body gives, {value.name}, depends on the data",
                count.sources,
                where=count.where,
                hint="nanoloom compiles static shapes only",
            )
    return first_dynamic(body)


def sources(node: ir.Node) -> tuple[str, ...]:
    """The model's inputs that decide about the shapes of a node's outputs."""
    first = DECIDING.get(node.op_type)
    if first is None:
        return integer_sources(node.inputs)
    found = [name for x in node.inputs[first:] for name in deciding_sources(x)]
    return tuple(dict.fromkeys(found))


def require_static(graph: ir.Graph) -> None:
    """Every value's shape is known, or one sentence names the first that is not."""
    error = first_dynamic(graph)
    if error is not None:
        raise error
