"""What nanoloom cannot compile in a valid model, all of it at once."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

import onnx
import onnx_ir as ir

from nanoloom.errors import Unsupported
from nanoloom.frontend.operators import schema_of

DEFAULT = "ai.onnx"
MICROSOFT = "com.microsoft"
# ONNX Runtime's own orders of an image's elements, for the machine that saved a model.
LAYOUTS = {"com.microsoft.nchwc", "com.ms.internal.nhwc"}
# They call a decoder once for each token.
SEARCHES = {"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"}
REFUSAL = "nanoloom.refusal"  # of a node: why nothing takes its place, and what to do


@dataclass(frozen=True)
class Problem:
    """One reason why a model does not compile.

    node: its name, or the words `input x`; operator: its type, empty for a value.
    """

    node: str
    reason: str
    hint: str
    operator: str = ""

    def __str__(self) -> str:
        kind = f" ({self.operator})" if self.operator else ""
        return f"{self.node}{kind}: {self.reason}; {self.hint}"


def problems(model: ir.Model, also: Collection[tuple[str, str]] = ()) -> list[Problem]:
    """Every operator that ONNX does not define and every value that is no tensor.

    model: as `load` returns it, its functions inlined.
    also: (domain, operator) pairs that nanoloom lowers beside ONNX's own.
    """
    found = [*value_problems("input", model.graph.inputs)]
    found += value_problems("output", model.graph.outputs)
    opsets = dict(model.opset_imports)
    for node in model.graph.all_nodes():
        lowered = (node.domain, node.op_type) in also
        found += operator_problems(node, opsets, lowered=lowered)
    return found


def refuse(found: Collection[Problem]) -> None:
    """Raise one Unsupported that counts all of them, or return if there are none.

    found: problems of operators.
    """
    if not found:
        return
    first, *rest = found
    more = f"; and {len(rest)} more (nanoloom check lists them)" if rest else ""
    where = f"node {first.node} ({first.operator})"
    raise Unsupported(first.reason, where=where, hint=first.hint + more)


def operator_problems(
    node: ir.Node, opsets: Mapping[str, int], *, lowered: bool
) -> list[Problem]:
    """What is wrong with a node's operator, if anything.

    lowered: nanoloom has it, as its own or beside ONNX's newest of that name.
    """
    version = node.version or opsets.get(node.domain)
    name = node.name or node.op_type
    full = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    since = first_version(node.domain, node.op_type)
    if lowered and (since is None or version is None or version >= since):
        return []

    def problem(reason: str, hint: str) -> list[Problem]:
        return [Problem(name, reason, hint, full)]

    refusal = of_onnx_runtime(node)
    if refusal is not None:
        return problem(*refusal)
    if version is None or node.domain not in known_domains():
        return problem(
            f"its domain {node.domain} is unknown and the model has no function for it",
            "export it as a model-local function or with ONNX operators, or say with "
            "nanoloom.operator what it computes",
        )
    if since is None:
        return problem(*unknown(node))
    if version < since:
        return problem(
            f"is in {node.domain or DEFAULT} only from opset {since} on, "
            f"the model has {version}",
            f"export it with opset_version={since} or later",
        )
    schema = schema_of(node.domain, node.op_type, version)
    if schema is not None and schema.deprecated:
        return problem(
            f"was removed from ONNX in opset {schema.since_version}",
            "export it again with a recent exporter",
        )
    return []


def of_onnx_runtime(node: ir.Node) -> tuple[str, str] | None:
    """Reason and hint for what only ONNX Runtime writes; None for other operators."""
    if REFUSAL in node.meta:
        return node.meta[REFUSAL]
    if node.domain in LAYOUTS:
        return (
            "lays images out for the machine on which ONNX Runtime saved the model",
            "save it with the graph optimization level extended or lower, which is "
            "without layout optimization",
        )
    if node.domain == MICROSOFT and node.op_type in SEARCHES:
        return (
            "searches with a decoder that it calls once for each token",
            "save the graph of its attribute `decoder` as a model of its own, compile "
            "that and search over its scores (docs/decoding.md)",
        )
    if node.domain == MICROSOFT:
        return (
            "is an operator of ONNX Runtime, not of ONNX, that nothing can stand for",
            "use the model as it was before ONNX Runtime's optimizer fused it, or "
            "quantized it in another format than QDQ",
        )
    return None


def unknown(node: ir.Node) -> tuple[str, str]:
    """Reason and hint for an operator that a known domain does not have."""
    names = {name for domain, name in first_versions() if domain == node.domain}
    close = difflib.get_close_matches(node.op_type, names, n=1)
    hint = f"did you mean {close[0]}?" if close else "give the model a function for it"
    return f"is no operator of {node.domain or DEFAULT}", hint


def first_version(domain: str, op_type: str) -> int | None:
    """The version of its domain that an operator came with; None if ONNX has none."""
    return first_versions().get((domain, op_type))


@cache
def first_versions() -> Mapping[tuple[str, str], int]:
    """Of all operators of ONNX."""
    found: dict[tuple[str, str], int] = {}
    for each in onnx.defs.get_all_schemas_with_history():
        name = (each.domain, each.name)
        found[name] = min(each.since_version, found.get(name, each.since_version))
    return found


@cache
def known_domains() -> frozenset[str]:
    return frozenset(schema.domain for schema in onnx.defs.get_all_schemas())


def is_list(kind: ir.TypeProtocol | None) -> bool:
    """Whether a value is a sequence of tensors, which Python gets as a list."""
    return isinstance(kind, ir.SequenceType) and isinstance(
        kind.elem_type, ir.TensorType
    )


def value_problems(what: str, values: Collection[ir.Value]) -> list[Problem]:
    """Inputs that are sequences, and what is a map, optional or holds strings."""
    found: list[Problem] = []
    for value in values:
        kind = value.type
        if what == "output" and is_list(kind):
            continue
        if kind is not None and not isinstance(kind, ir.TensorType):
            name = type(kind).__name__.removesuffix("Type").lower()
            article = "an" if name[0] in "aeio" else "a"
            reason, hint = f"is {article} {name}", "export the model with tensors there"
            if what == "input" and is_list(kind):
                reason += ", and only a call knows how many tensors are in it"
        elif value.dtype == ir.DataType.STRING:
            reason, hint = "holds strings", "do the text part before the model"
        else:
            continue
        found.append(Problem(f"{what} {value.name}", reason, hint))
    return found
