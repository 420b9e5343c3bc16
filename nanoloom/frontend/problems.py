"""What nanoloom cannot compile in a valid model, all of it at once."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

import onnx
import onnx_ir as ir

from nanoloom.errors import Unsupported
from nanoloom.frontend.operators import schema_of

CONTRIB = {"com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc"}


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
        if (node.domain, node.op_type) not in also:
            found += operator_problems(node, opsets)
    return found


def refuse(found: Collection[Problem], where: str) -> None:
    """Raise one Unsupported that names all problems, or return if there are none."""
    if not found:
        return
    first, *rest = found
    more = f"; and {len(rest)} more (nanoloom check lists them)" if rest else ""
    raise Unsupported(
        f"{first.node}{f' ({first.operator})' * bool(first.operator)}: {first.reason}",
        where=where,
        hint=first.hint + more,
    )


def operator_problems(node: ir.Node, opsets: dict[str, int]) -> list[Problem]:
    version = node.version or opsets.get(node.domain)
    name = node.name or node.op_type
    full = f"{node.domain}::{node.op_type}" if node.domain else node.op_type

    def problem(reason: str, hint: str) -> list[Problem]:
        return [Problem(name, reason, hint, full)]

    if node.domain in CONTRIB:
        return problem(
            "is an operator of ONNX Runtime, not of ONNX",
            "use the model as it was before ONNX Runtime's optimizer fused it",
        )
    if version is None or node.domain not in known_domains():
        return problem(
            f"its domain {node.domain} is unknown and the model has no function for it",
            "export it as a model-local function or with ONNX operators",
        )
    schema = schema_of(node.domain, node.op_type, version)
    if schema is None:
        return problem(*unknown(node, version))
    if schema.deprecated:
        return problem(
            f"was removed from ONNX in opset {schema.since_version}",
            "export it again with a recent exporter",
        )
    return []


def unknown(node: ir.Node, version: int) -> tuple[str, str]:
    """Reason and hint for an operator that a known domain does not have."""
    domain = node.domain or "ai.onnx"
    schemas = onnx.defs.get_all_schemas_with_history()
    since = [
        s.since_version
        for s in schemas
        if (s.domain, s.name) == (node.domain, node.op_type)
    ]
    if since:
        return (
            f"is in {domain} only from opset {min(since)} on, the model has {version}",
            f"export it with opset_version={min(since)} or later",
        )
    names = {s.name for s in schemas if s.domain == node.domain}
    close = difflib.get_close_matches(node.op_type, names, n=1)
    hint = f"did you mean {close[0]}?" if close else "give the model a function for it"
    return f"is no operator of {domain}", hint


@cache
def known_domains() -> frozenset[str]:
    return frozenset(schema.domain for schema in onnx.defs.get_all_schemas())


def value_problems(what: str, values: Collection[ir.Value]) -> list[Problem]:
    """Inputs and outputs that are sequences, maps, optional or hold strings."""
    found: list[Problem] = []
    for value in values:
        kind = value.type
        if kind is not None and not isinstance(kind, ir.TensorType):
            name = type(kind).__name__.removesuffix("Type").lower()
            reason, hint = f"is a {name}", "export the model with tensors there"
        elif value.dtype == ir.DataType.STRING:
            reason, hint = "holds strings", "do the text part before the model"
        else:
            continue
        found.append(Problem(f"{what} {value.name}", reason, hint))
    return found
