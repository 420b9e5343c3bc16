"""Protobuf's wire format of an ONNX file, walked without reading the weights.

`strip` copies a ModelProto and leaves every large `raw_data` where it is: the copy
holds an external-data reference (offset, length) into the same buffer instead.  What
is no larger than `THRESHOLD` is copied unseen; protobuf's own parser judges it.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import islice
from typing import NamedTuple

from nanoloom.errors import ModelError

THRESHOLD = 4096  # bytes; a page, below which a mapping saves nothing
DEEPEST = 100  # nested messages; where protobuf's own parser stops
MOST_TENSOR_FIELDS = 1000  # a tensor with more holds its data in them, not raw
COPIED = 64 * 1024  # bytes; larger spans are copied once, into the result
MOST_FIELDS = 4_000_000  # walked one by one; beyond it messages are copied unseen

Buffer = bytes | mmap.mmap
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
FIXED_SIZE = {FIXED64: 8, FIXED32: 4}


class Message(Enum):
    """The messages of onnx.proto that may hold a tensor, at any depth."""

    MODEL = auto()
    GRAPH = auto()
    FUNCTION = auto()
    NODE = auto()
    ATTRIBUTE = auto()
    SPARSE = auto()
    TENSOR = auto()


# Field numbers of onnx.proto.  training_info (20) of a model is not walked.
CHILDREN: dict[Message, dict[int, Message]] = {
    Message.MODEL: {7: Message.GRAPH, 25: Message.FUNCTION},
    Message.GRAPH: {1: Message.NODE, 5: Message.TENSOR, 15: Message.SPARSE},
    Message.FUNCTION: {7: Message.NODE, 11: Message.ATTRIBUTE},
    Message.NODE: {5: Message.ATTRIBUTE},
    Message.ATTRIBUTE: {
        5: Message.TENSOR,
        6: Message.GRAPH,
        10: Message.TENSOR,
        11: Message.GRAPH,
        22: Message.SPARSE,
        23: Message.SPARSE,
    },
    Message.SPARSE: {1: Message.TENSOR, 2: Message.TENSOR},
    Message.TENSOR: {},
}
RAW_DATA, EXTERNAL_DATA, DATA_LOCATION = 9, 13, 14  # fields of TensorProto


class Field(NamedTuple):
    """One field: its number and wire type, where its tag, value and end are."""

    number: int
    wire: int
    tag: int
    start: int
    end: int


@dataclass
class Pieces:
    """A message under construction: spans of the buffer and bytes of our own."""

    parts: list[bytes | memoryview] = field(default_factory=list[bytes | memoryview])
    size: int = 0

    def add(self, part: bytes | memoryview) -> None:
        """Append a span; a small one is copied now, before its page is given back."""
        if len(part):
            self.parts.append(part if len(part) > COPIED else bytes(part))
            self.size += len(part)

    def add_message(self, number: int, body: Pieces) -> None:
        self.add(encode(number << 3 | BYTES) + encode(body.size))
        self.parts += body.parts
        self.size += body.size


@dataclass
class Scanner:
    """Walks one buffer.  location: what its references to itself are called.

    Raises ModelError (naming `where`) if the buffer is not well-formed protobuf.
    """

    buffer: Buffer
    where: str
    location: str
    fields_left: int = MOST_FIELDS

    def strip(self) -> bytes:
        """A ModelProto with large weights replaced by references, serialized."""
        with memoryview(self.buffer) as view:
            pieces = self.message(view, Message.MODEL, 0, len(view), 0)
            stripped = b"".join(pieces.parts)
        drop_pages(self.buffer, 0, len(self.buffer))
        return stripped

    def message(
        self, view: memoryview, kind: Message, start: int, end: int, depth: int
    ) -> Pieces:
        if depth > DEEPEST:
            raise ModelError(
                f"graphs are nested more than {DEEPEST} messages deep",
                where=self.where,
                hint="no exporter writes such a file, so it is damaged or hostile",
            )
        pieces, copied = Pieces(), start
        if kind is Message.TENSOR:
            return self.tensor(view, start, end)
        for item in self.fields(start, end):
            if self.fields_left <= 0:
                break
            child = CHILDREN[kind].get(item.number)
            large = item.wire == BYTES and item.end - item.start > THRESHOLD
            if child is None or not large:
                continue
            pieces.add(view[copied : item.tag])
            copied = item.end
            body = self.message(view, child, item.start, item.end, depth + 1)
            pieces.add_message(item.number, body)
        pieces.add(view[copied:end])
        return pieces

    def tensor(self, view: memoryview, start: int, end: int) -> Pieces:
        """Drop a large raw_data for a reference; anything else stays as it is."""
        pieces = Pieces()
        found = list(islice(self.fields(start, end), MOST_TENSOR_FIELDS + 1))
        raw = [f for f in found if f.number == RAW_DATA and f.wire == BYTES]
        external = any(f.number in (EXTERNAL_DATA, DATA_LOCATION) for f in found)
        # Of an optional field given twice, protobuf keeps the last.
        small = not raw or raw[-1].end - raw[-1].start <= THRESHOLD
        if small or external or len(found) > MOST_TENSOR_FIELDS:
            pieces.add(view[start:end])
            return pieces
        copied = start
        for item in raw:
            pieces.add(view[copied : item.tag])
            copied = item.end
        pieces.add(view[copied:end])
        pieces.add(reference(self.location, raw[-1].start, raw[-1].end))
        # One touched byte may map megabytes of the file around it (large folios).
        drop_pages(self.buffer, start, end)
        return pieces

    def fields(self, start: int, end: int) -> Iterator[Field]:
        """The fields between two offsets, none of them read."""
        at = start
        while at < end:
            found = self.field_at(at, end)
            self.fields_left -= 1
            yield found
            at = found.end

    def field_at(self, tag: int, end: int) -> Field:
        key, at = self.number_at(tag, end)
        number, wire = key >> 3, key & 7
        if number == 0 or wire not in (VARINT, BYTES, *FIXED_SIZE):
            raise self.damaged(tag, f"field {number} of wire type {wire}")
        if wire == VARINT:
            return Field(number, wire, tag, at, self.number_at(at, end)[1])
        size = FIXED_SIZE.get(wire, 0)
        if wire == BYTES:
            size, at = self.number_at(at, end)
        if size > end - at:
            raise self.cut_off(at, size, end)
        return Field(number, wire, tag, at, at + size)

    def number_at(self, at: int, end: int) -> tuple[int, int]:
        """A base-128 number and the offset after it."""
        value = shift = 0
        while at < end and shift < 70:
            byte = self.buffer[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        if shift >= 70:
            raise self.damaged(at, "a number of more than ten bytes")
        raise self.cut_off(at, 1, end)

    def cut_off(self, at: int, size: int, end: int) -> ModelError:
        if end < len(self.buffer):
            return self.damaged(
                at, f"a field of {size} bytes where {end - at} are left"
            )
        return ModelError(
            f"the file is cut off: {size} bytes are announced at offset {at}"
            f" and {end - at} are left",
            where=self.where,
            hint="fetch or export it again",
        )

    def damaged(self, at: int, what: str) -> ModelError:
        return ModelError(
            f"the file is damaged at offset {at} ({what})",
            where=self.where,
            hint="fetch or export it again",
        )


def drop_pages(buffer: Buffer, start: int, end: int) -> None:
    """Unmap what was read of a file; the next access reads it again."""
    if isinstance(buffer, mmap.mmap) and end > start:
        first = start // mmap.PAGESIZE * mmap.PAGESIZE
        buffer.madvise(mmap.MADV_DONTNEED, first, end - first)


def reference(location: str, start: int, end: int) -> bytes:
    """The external_data and data_location fields of a TensorProto."""
    entries = {"location": location, "offset": str(start), "length": str(end - start)}
    made = b"".join(
        delimited(EXTERNAL_DATA, delimited(1, k.encode()) + delimited(2, v.encode()))
        for k, v in entries.items()
    )
    return made + encode(DATA_LOCATION << 3 | VARINT) + encode(1)


def delimited(number: int, body: bytes) -> bytes:
    return encode(number << 3 | BYTES) + encode(len(body)) + body


def encode(value: int) -> bytes:
    """A number in base 128, least significant seven bits first."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
