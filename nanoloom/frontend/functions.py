"""Functions that a model brings along: whether their calls can all be expanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import onnx

from nanoloom.errors import ModelError
from nanoloom.frontend.header import check_opsets
from nanoloom.frontend.operators import schema_of
from nanoloom.frontend.proto_walk import (
    FunctionId,
    bodies,
    callee,
    function_id,
    normal,
    walk,
)

MOST_NODES = 250_000  # after inlining; the largest language models have a tenth
DEEPEST_CALLS = 32  # functions that call functions
DEEPEST_GRAPHS = 30  # graphs inside of nodes: three messages of protobuf's 100 each
Functions = Mapping[FunctionId, onnx.FunctionProto]


class Size(NamedTuple):
    """A list of nodes with calls expanded: nodes, levels of calls and of graphs."""

    nodes: int
    calls: int
    graphs: int


def check_functions(model: onnx.ModelProto, where: str) -> None:
    """Check that inlining ends, with a graph of reasonable size and one opset.

    Raises ModelError for functions that call themselves, grow without bound, are
    defined twice or mean another version of an operator than the model.
    """
    functions: dict[FunctionId, onnx.FunctionProto] = {}
    for function in model.functions:
        if function_id(function) in functions:
            raise ModelError(
                f"function {function.name} is defined twice",
                where=where,
                hint="export the model without functions",
            )
        functions[function_id(function)] = function
    versions = {entry.domain: entry.version for entry in model.opset_import}
    for function in model.functions:
        check_opsets(function.opset_import, f"{where}: function {function.name}")
        for entry in function.opset_import:
            versions.setdefault(entry.domain, entry.version)
    for function in model.functions:
        check_versions(function, versions, where)
    sizes: dict[FunctionId, Size] = {}
    for name in functions:
        expanded(name, functions, sizes, (), where)
    check_size(size_of(model.graph.node, sizes), where)


def check_size(size: Size, where: str) -> None:
    if size.nodes > MOST_NODES:
        raise ModelError(
            f"has {size.nodes} nodes with its functions expanded, {MOST_NODES} at most"
            " can be compiled",
            where=where,
            hint="export a smaller part of the model",
        )
    if size.graphs > DEEPEST_GRAPHS:
        raise ModelError(
            f"has graphs nested {size.graphs} deep with its functions expanded,"
            f" {DEEPEST_GRAPHS} at most can be compiled",
            where=where,
            hint="export the model with fewer nested branches and loops",
        )


def check_versions(
    function: onnx.FunctionProto, versions: dict[str, int], where: str
) -> None:
    """An operator must mean the same by the function's opset and by the model's."""
    own = {entry.domain: entry.version for entry in function.opset_import}
    for node, at in walk(function.node, f"{where}: function {function.name}"):
        domain = normal(node.domain)
        ours, theirs = own.get(domain), versions.get(domain)
        if ours is None or theirs is None or ours == theirs:
            continue
        meant = schema_of(domain, node.op_type, ours)
        taken = schema_of(domain, node.op_type, theirs)
        if meant and taken and meant.since_version != taken.since_version:
            raise ModelError(
                f"means opset {ours}, the model has opset {theirs}, and the operator"
                " differs between them",
                where=at,
                hint="export model and functions with the same opset_version",
            )


def expanded(
    name: FunctionId,
    functions: Functions,
    sizes: dict[FunctionId, Size],
    callers: tuple[FunctionId, ...],
    where: str,
) -> Size:
    """The size of a function once the calls in it are expanded, too."""
    if name in sizes:
        return sizes[name]
    if name in callers:
        raise ModelError(
            f"function {name[1]} calls itself",
            where=where,
            hint="export the model without functions",
        )
    if len(callers) < DEEPEST_CALLS:
        for node, _ in walk(functions[name].node, where):
            if callee(node) in functions:
                expanded(callee(node), functions, sizes, (*callers, name), where)
        size = size_of(functions[name].node, sizes)
        sizes[name] = size._replace(calls=size.calls + 1)
    if len(callers) >= DEEPEST_CALLS or sizes[name].calls > DEEPEST_CALLS:
        raise ModelError(
            f"function {name[1]} is one of more than {DEEPEST_CALLS} that call each"
            " other",
            where=where,
            hint="export the model without functions",
        )
    return sizes[name]


def size_of(nodes: Sequence[onnx.NodeProto], sizes: Mapping[FunctionId, Size]) -> Size:
    """The size of a list of nodes, calls of functions of known size expanded."""
    count = calls = graphs = 0
    for node in nodes:
        inner = [size_of(body.node, sizes) for body in bodies(node)]
        deeper = [size._replace(graphs=size.graphs + 1) for size in inner]
        own = sizes.get(callee(node), Size(1, 0, 0))
        count += own.nodes + sum(size.nodes for size in inner)
        calls = max(calls, own.calls, *(size.calls for size in inner), 0)
        graphs = max(graphs, own.graphs, *(size.graphs for size in deeper), 0)
    return Size(count, calls, graphs)
