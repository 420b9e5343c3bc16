"""An ONNX model, read: checked, functions inlined, weights left in their files."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
from google.protobuf.message import DecodeError, EncodeError

from nanoloom.errors import ModelError
from nanoloom.frontend import detach_weights
from nanoloom.frontend.declared import hold_weights
from nanoloom.frontend.file_kind import Kind, foreign_kind, text_kind
from nanoloom.frontend.files import WeightFiles, map_file
from nanoloom.frontend.functions import check_functions
from nanoloom.frontend.header import check_header
from nanoloom.frontend.inline import inline
from nanoloom.frontend.maps import drop_maps
from nanoloom.frontend.memory_claims import check_sizes
from nanoloom.frontend.microsoft.expand import expand_microsoft
from nanoloom.frontend.node_names import name_nodes
from nanoloom.frontend.operators import check_operators, check_required
from nanoloom.frontend.proto_walk import check_text, drop_devices
from nanoloom.frontend.redundant import drop_redundant
from nanoloom.frontend.shadowed_names import rename_shadows
from nanoloom.frontend.sparse_tensors import make_dense
from nanoloom.frontend.string_encoding import encode
from nanoloom.frontend.structure import check_structure
from nanoloom.frontend.tensors import Weights, check_tensors
from nanoloom.frontend.text_steps.take_apart import take_text_steps
from nanoloom.frontend.torch.given import (
    imported,
    is_archive,
    is_exported,
    read_archive,
)
from nanoloom.frontend.types import check_types, forget_negative
from nanoloom.frontend.wire import Buffer, Scanner

Source = str | Path | bytes | onnx.ModelProto | ir.Model
HEAD = 64  # bytes that tell a file format


@dataclass
class Opened:
    """A model without its large weights.  where: its file or `model` in messages."""

    where: str
    proto: onnx.ModelProto
    weights: Weights


def load(
    source: Source, *, memory: int | None = None, expands: bool = True
) -> ir.Model:
    """The model, valid, its nodes named and in order, its functions inlined.

    Weights of more than 4 KB are `MappedTensor`s: nothing of them is read here.  The
    result is a new model; values that a weight gives a default are weights, no
    inputs.  ONNX's operators stand for those of ONNX Runtime; others that ONNX does not
    know are left for `problems`.
    memory: bytes that one value may take, by default what the machine has free.
    expands: no node stays that ONNX Runtime alone runs, if there is another way.
    Raises ModelError or Unsupported, in one sentence that names file and node.
    """
    opened = open_source(source)
    where, proto = opened.where, opened.proto
    check_text(proto, where)
    check_header(proto, where)
    drop_devices(proto, where)
    make_dense(proto, opened.weights, where)
    drop_redundant(proto, where)
    rename_shadows(proto)
    ordered = check_structure(proto, where)
    check_functions(proto, where)
    check_operators(proto, where)
    drop_maps(proto, where)
    check_types(proto, where)
    forget_negative(proto)
    check_tensors(proto, opened.weights, where)
    model = deserialize(proto, where)
    detach_weights.fill(model, opened.weights.found)
    name_nodes(model)
    if not ordered:
        passes.TopologicalSortPass()(model)
    inline(model, where)
    if expands:
        expand_microsoft(model)
    check_required(model, where)
    passes.RemoveInitializersFromInputsPass()(model)
    hold_weights(model)
    take_text_steps(model)
    encode(model)
    check_sizes(model, where, memory)
    return model


def open_source(source: Source) -> Opened:
    """A model of any kind as a ModelProto of our own, with references to weights."""
    match source:
        case str() | Path():
            return open_file(Path(source))
        case bytes():
            return open_buffer(source, "model", WeightFiles(None), "")
        case onnx.ModelProto():
            try:
                content = source.SerializeToString()
            except (EncodeError, ValueError) as error:
                raise ModelError(
                    f"cannot be serialized: {str(error).splitlines()[0]}",
                    where="model",
                    hint="save it with external data and give the path",
                ) from None
            return open_buffer(content, "model", WeightFiles(None), "")
        case ir.Model():
            proto, tensors = detach_weights.separate(source, "model")
            return Opened("model", proto, Weights(WeightFiles(None), given=tensors))
        case _ if is_exported(source):
            return open_source(imported(source))
        case _:
            raise ModelError(
                f"is a {type(source).__name__}",
                where="model",
                hint="give a path, bytes, an onnx.ModelProto, an onnx_ir.Model, or a"
                " module or ExportedProgram of PyTorch",
            )


def open_file(path: Path) -> Opened:
    buffer = map_file(path, str(path), "model file")
    if is_archive(path):
        return open_source(read_archive(path))
    files = WeightFiles(path.parent, home=path.resolve().parent)
    files.opened[path.name] = buffer
    return open_buffer(buffer, str(path), files, path.name)


def open_buffer(
    buffer: Buffer, where: str, files: WeightFiles, location: str
) -> Opened:
    """location: what the buffer is called where a weight refers to it."""
    if not len(buffer):
        raise ModelError("is empty", where=where, hint="fetch or export it again")
    head = bytes(buffer[:HEAD])
    if kind := foreign_kind(head):
        raise is_no_model(kind, where)
    files.opened[location] = buffer
    try:
        stripped = Scanner(buffer, where, location).strip()
    except ModelError:
        if kind := text_kind(head):  # a text that begins as a model may
            raise is_no_model(kind, where) from None
        raise
    try:
        proto = onnx.ModelProto.FromString(stripped)
    except DecodeError as error:
        deep = "MaxDepth" in str(error)
        raise ModelError(
            "has graphs nested too deep for protobuf"
            if deep
            else "is damaged: a message in it cannot be parsed",
            where=where,
            hint="fetch or export it again",
        ) from None
    return Opened(where, proto, Weights(files))


def is_no_model(kind: Kind, where: str) -> ModelError:
    reason = f"is not an ONNX model but {kind.name}"
    return ModelError(reason, where=where, hint=kind.hint)


def deserialize(proto: onnx.ModelProto, where: str) -> ir.Model:
    try:
        with quiet("onnx_ir"):
            return ir.from_proto(proto)
    except ir.serde.SerdeError as error:
        raise ModelError(
            f"has a part that cannot be read: {detach_weights.root_cause(error)}",
            where=where,
            hint="export it again",
        ) from None


@contextmanager
def quiet(name: str) -> Generator[None]:
    """Keep a library's log lines from the user: our own checks have spoken."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def external_files(path: Path) -> list[str]:
    """Names of the files beside a model, relative to it, that hold its weights."""
    if is_archive(path):
        return []
    opened = open_source(path)
    check_text(opened.proto, opened.where)
    check_tensors(opened.proto, opened.weights, opened.where)
    return sorted(name for name in opened.weights.files.opened if name != path.name)
