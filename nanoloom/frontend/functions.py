"""Functions that a model brings along: checked, then put where they are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes

from nanoloom.errors import ModelError
from nanoloom.frontend.bodies import FunctionId, callee, function_id, normal, walk
from nanoloom.frontend.header import check_opsets
from nanoloom.frontend.names import free
from nanoloom.frontend.operators import schema_of

MOST_NODES = 250_000  # after inlining; the largest language models have a tenth
DEEPEST_CALLS = 32  # functions that call functions
CALL = "nanoloom.call"  # metadata of a node: the call whose body it came from
OWN_NAME = "nanoloom.name"  # and what it was called in that body
Functions = Mapping[FunctionId, onnx.FunctionProto]


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
    sizes: dict[FunctionId, int] = {}
    for name in functions:
        expanded_size(name, functions, sizes, (), where)
    total = sum(node_sizes(model.graph.node, sizes, where))
    if total > MOST_NODES:
        raise ModelError(
            f"its functions expand to {total} nodes, {MOST_NODES} at most can be"
            " compiled",
            where=where,
            hint="export a smaller part of the model",
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


def expanded_size(
    name: FunctionId,
    functions: Functions,
    sizes: dict[FunctionId, int],
    callers: tuple[FunctionId, ...],
    where: str,
) -> int:
    """The number of nodes in a function once the calls in it are expanded, too."""
    if name in sizes:
        return sizes[name]
    if name in callers or len(callers) >= DEEPEST_CALLS:
        circle = name in callers
        reason = "calls itself" if circle else f"is {DEEPEST_CALLS} calls deep"
        raise ModelError(
            f"function {name[1]} {reason}",
            where=where,
            hint="export the model without functions",
        )
    inside = list(walk(functions[name].node, where))
    for node, _ in inside:
        if callee(node) in functions:
            expanded_size(callee(node), functions, sizes, (*callers, name), where)
    sizes[name] = sum(sizes.get(callee(node), 1) for node, _ in inside)
    return sizes[name]


def node_sizes(
    nodes: Sequence[onnx.NodeProto], sizes: dict[FunctionId, int], where: str
) -> Iterator[int]:
    for node, _ in walk(nodes, where):
        yield sizes.get(callee(node), 1)


def inline(model: ir.Model) -> None:
    """Replace every call by the function's body, in place (after `check_functions`).

    A node from a body is called after the call: `layer_3/Add_1`.
    """
    if not model.functions:
        return
    share_opsets(model)
    for function in model.functions.values():
        separate_outputs(function)
    for node in all_nodes(model):
        prepare_call(node, model)
    for node in model.graph.all_nodes():
        if node.op_identifier() in model.functions:
            node.metadata_props[CALL] = node.name or node.op_type
    for function in model.functions.values():
        for node in function.all_nodes():
            node.metadata_props[OWN_NAME] = node.name or node.op_type
    passes.InlinePass()(model)
    model.functions.clear()  # what was never called
    taken = {node.name for node in model.graph.all_nodes() if node.name}
    for node in model.graph.all_nodes():
        call = node.metadata_props.pop(CALL, None)
        own = node.metadata_props.pop(OWN_NAME, node.name)
        if call is not None:
            node.name = free(f"{call}/{own}", taken)
            taken.add(node.name)


def all_nodes(model: ir.Model) -> Iterator[ir.Node]:
    yield from model.graph.all_nodes()
    for function in model.functions.values():
        yield from function.all_nodes()


def share_opsets(model: ir.Model) -> None:
    """Give functions the model's versions; checked: they mean the same operators."""
    for function in model.functions.values():
        for domain, version in function.opset_imports.items():
            model.opset_imports.setdefault(domain, version)
    for function in model.functions.values():
        known = {d: model.opset_imports[d] for d in function.opset_imports}
        function.opset_imports.update(known)


def separate_outputs(function: ir.Function) -> None:
    """Copy outputs that are inputs: inlining would rename the caller's value."""
    for i, output in enumerate(function.outputs):
        if output in function.inputs:
            copy = ir.node("Identity", [output], name=f"{output.name}_copy")
            copy.outputs[0].name = f"{output.name}_copy"
            function.append(copy)
            function.outputs[i] = copy.outputs[0]


def prepare_call(node: ir.Node, model: ir.Model) -> None:
    """Make a call's outputs as many as the function's; the omitted have no name."""
    function = model.functions.get(node.op_identifier())
    if function is None:
        return
    node.resize_outputs(len(function.outputs))
    for output in node.outputs:
        # onnx_ir takes over a name, even an empty one, for the function's value.
        output.name = output.name or None
