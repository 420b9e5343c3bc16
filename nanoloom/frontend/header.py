"""Whether a ModelProto is a model that this version of ONNX knows how to read."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from nanoloom.errors import ModelError
from nanoloom.frontend.proto_walk import normal, walk

OLDEST_IR = 3  # the first IR version with operator set imports
OLDEST_OPSET, NEWEST_OPSET = 7, 28  # of the default domain


def check_header(model: onnx.ModelProto, where: str) -> None:
    """Judge IR version and operator sets; write their domains in the normal spelling.

    Raises ModelError for what is no model, too old or too new.
    """
    if not model.HasField("graph") or not model.HasField("ir_version"):
        missing = "graph" if model.HasField("ir_version") else "IR version"
        raise ModelError(
            f"is not a whole ONNX model: it has no {missing}",
            where=where,
            hint="it may be cut off; fetch or export it again",
        )
    if not OLDEST_IR <= model.ir_version <= onnx.IR_VERSION:
        old = model.ir_version < OLDEST_IR
        raise ModelError(
            f"IR version {model.ir_version} is too {'old' if old else 'new'},"
            f" {OLDEST_IR} to {onnx.IR_VERSION} can be read",
            where=where,
            hint="export it again with a recent exporter"
            if old
            else "export it with a lower opset_version",
        )
    raise_old(model, where)
    check_opsets(model.opset_import, where)
    if not model.opset_import:
        raise ModelError(
            "imports no operator set",
            where=where,
            hint="the file may be cut off; fetch or export it again",
        )


def raise_old(model: onnx.ModelProto, where: str) -> None:
    """Import the oldest operator set that is known in place of an older one, if the
    model's nodes are the same in both.

    skl2onnx imports the first set that has all of a model's nodes: the first of all for
    an Identity.
    """
    for entry in model.opset_import:
        if normal(entry.domain) or not 0 < entry.version < OLDEST_OPSET:
            continue
        nodes = [x.node for x in walk(model.graph.node, where)]
        own = {node.op_type for node in nodes if not normal(node.domain)}
        if all(is_same(op, entry.version) for op in own) and not model.functions:
            entry.version = OLDEST_OPSET


def is_same(op: str, version: int) -> bool:
    """Whether an operator of ONNX is in a set what it is in the oldest known one."""
    try:
        found = [onnx.defs.get_schema(op, v) for v in (version, OLDEST_OPSET)]
    except onnx.defs.SchemaError:
        return False
    return found[0].since_version == found[1].since_version


def check_opsets(imports: Iterable[onnx.OperatorSetIdProto], where: str) -> None:
    """Each domain has one version, the default one's is known (model or function)."""
    newest = min(NEWEST_OPSET, onnx.defs.onnx_opset_version())
    seen: dict[str, int] = {}
    for entry in imports:
        entry.domain = normal(entry.domain)
        if not 0 < entry.version < 2**31:
            raise ModelError(
                f"imports the impossible version {entry.version} of operator set"
                f" {entry.domain or 'ai.onnx'}",
                where=where,
                hint="export it again",
            )
        before = seen.setdefault(entry.domain, entry.version)
        if before != entry.version:
            raise ModelError(
                f"imports versions {before} and {entry.version} of operator set"
                f" {entry.domain or 'ai.onnx'}",
                where=where,
                hint="export it again",
            )
        if entry.domain == "" and not OLDEST_OPSET <= entry.version <= newest:
            raise ModelError(
                f"opset {entry.version} is not supported,"
                f" {OLDEST_OPSET} to {newest} are",
                where=where,
                hint="export it with opset_version=18 or convert it with"
                " onnx.version_converter",
            )
