"""Whether the element types of a node's inputs are what its operator takes.

ONNX's inference looks at the first input only, where it looks at all.
"""

from __future__ import annotations

import functools

import onnx
import onnx_ir as ir

from nanoloom.errors import ModelError

WORDS = {"float": "float32", "double": "float64"}  # ONNX's, and everybody's


def require_types(node: ir.Node, opsets: dict[str, int]) -> None:
    """Raise ModelError for an input of a type that the operator does not take."""
    version = node.version or opsets.get(node.domain, 1)
    wanted = parameters(node.domain, node.op_type, version)
    seen: dict[str, str] = {}
    for index, value in enumerate(node.inputs):
        if not wanted or value is None or value.dtype is None:
            continue
        if not isinstance(value.type, ir.TensorType):
            continue
        name, types, is_one = wanted[min(index, len(wanted) - 1)]
        kind = word(value.dtype)
        if types and f"tensor({kind})" not in types:
            raise ModelError(
                f"its input {value.name} is {WORDS.get(kind, kind)}, which the "
                "operator does not take",
                where=f"node {node.name} ({node.op_type})",
            )
        if is_one and seen.setdefault(name, kind) != kind:
            one, other = WORDS.get(seen[name], seen[name]), WORDS.get(kind, kind)
            raise ModelError(
                f"its input {value.name} is {other}, another one is {one}; the "
                "operator takes inputs of one type",
                where=f"node {node.name} ({node.op_type})",
            )


@functools.cache
def word(dtype: ir.DataType) -> str:
    """As ONNX's schemas write it."""
    return {"FLOAT": "float", "DOUBLE": "double"}.get(dtype.name, dtype.name.lower())


@functools.cache
def parameters(
    domain: str, op_type: str, version: int
) -> tuple[tuple[str, frozenset[str], bool], ...]:
    """Of every input: its type parameter, the types allowed, whether it is one type."""
    if not onnx.defs.has(op_type, version, domain):
        return ()
    schema = onnx.defs.get_schema(op_type, version, domain)
    allowed = {
        x.type_param_str: frozenset(x.allowed_type_strs)
        for x in schema.type_constraints
    }
    return tuple(
        (
            x.type_str,
            allowed.get(x.type_str, frozenset({x.type_str})),
            x.is_homogeneous and x.type_str in allowed,
        )
        for x in schema.inputs
    )
