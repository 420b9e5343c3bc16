"""What ONNX says of nodes that are alike, asked once.

A model has the same block a dozen times, and is walked through for each sample of its
sizes: most of its nodes ask again what the same operator makes of the same shapes and
small constants.  ONNX's answer takes a hundred times as long as finding it here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import onnx_ir as ir

Answer = TypeVar("Answer")
MOST = 8192  # answers; when there are more, all are forgotten
FEW = 1 << 15  # bytes of a constant that is looked at
DIGEST = 32  # bytes
PLAIN = frozenset(
    ir.AttributeType[name] for name in ("FLOAT", "FLOATS", "INT", "INTS", "STRING")
)


class Answers(Generic[Answer]):
    """Answers of a pure function by what it was asked."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Answer] = {}

    def known(self, asked: Hashable | None) -> Answer | None:
        """The answer, where there is one already."""
        return None if asked is None else self._known.get(asked)

    def of(self, asked: Hashable | None, answer: Callable[[], Answer]) -> Answer:
        """The answer; None is asked where nobody can tell whether two are the same."""
        if asked is None:
            return answer()
        try:
            return self._known[asked]
        except KeyError:
            made = answer()
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[asked] = made
        return made


def operator_key(node: ir.Node, opsets: dict[str, int]) -> tuple[Hashable, ...] | None:
    """A node without its inputs; None for one with graphs or tensors in it."""
    attributes: list[Hashable] = []
    for name, attribute in node.attributes.items():
        if attribute.is_ref() or attribute.type not in PLAIN:
            return None
        attributes.append((name, attribute.type, repr(attribute.value)))
    versions = tuple(sorted(opsets.items()))
    wanted = tuple([bool(out.name) for out in node.outputs])
    return node.domain, node.op_type, node.version, versions, wanted, *attributes


def type_key(values: Sequence[ir.Value | None]) -> tuple[Hashable, ...] | None:
    """Element types and shapes, as far as they are known; None for no tensors."""
    found: list[Hashable] = []
    for value in values:
        if value is None or not value.name:
            found.append(None)
        elif value.type is None or isinstance(value.type, ir.TensorType):
            sizes = None if value.shape is None else value.shape.dims
            found.append((value.dtype, sizes))
        else:
            return None
    return tuple(found)


def data_key(
    tensors: Sequence[ir.TensorProtocol | None],
) -> tuple[Hashable, ...] | None:
    """The numbers of small constants; None if one is not small."""
    found: list[Hashable] = []
    for tensor in tensors:
        if tensor is None:
            found.append(None)
        elif tensor.dtype == ir.DataType.STRING or tensor.nbytes > FEW:
            return None
        else:
            sizes = tuple(tensor.shape.numpy())
            found.append((tensor.dtype, sizes, shortened(tensor.numpy().tobytes())))
    return tuple(found)


def shortened(content: bytes) -> bytes:
    """The digest of what is longer than one."""
    if len(content) <= DIGEST:
        return content
    return hashlib.blake2b(content, digest_size=DIGEST).digest()
