"""Whether a ModelProto is a model that this version of ONNX knows how to read."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from nanoloom.errors import ModelError
from nanoloom.frontend.proto_walk import normal

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
    check_opsets(model.opset_import, where)
    if not model.opset_import:
        raise ModelError(
            "imports no operator set",
            where=where,
            hint="the file may be cut off; fetch or export it again",
        )


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
