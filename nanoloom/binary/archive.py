"""Archives as linkers take them: `ar` without reading what goes in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_MAGIC = b"!<arch>\n"


def archive_head(name: str, size: int, symbols: Sequence[str]) -> bytes:
    """What stands in front of an object of `size` bytes, an even number, in an archive.

    symbols: the names that the object defines for others, for the archive's index.
    """
    texts = b"".join(f"{symbol}\0".encode() for symbol in symbols)
    names = f"{name}/\n".encode()  # a table: a name in a header has 16 bytes at most
    index_size = 4 + 4 * len(symbols) + len(texts)
    texts += bytes(index_size % 2)
    index_size += index_size % 2
    names += b"\n" * (len(names) % 2)
    at = len(_MAGIC) + 60 + index_size + 60 + len(names)
    numbers = [len(symbols), *[at] * len(symbols)]
    index = b"".join(number.to_bytes(4, "big") for number in numbers) + texts
    head = _MAGIC + _member("/", index_size) + index
    return head + _member("//", len(names)) + names + _member("/0", size)


def archive_of(objects: Sequence[bytes]) -> bytes:
    """Objects in one file, for a linker that takes all of them: it has no index."""
    parts = [_MAGIC]
    for number, code in enumerate(objects):
        parts += [_member(f"{number}.o/", len(code)), code, b"\n" * (len(code) % 2)]
    return b"".join(parts)


def members_of(archive: bytes) -> list[bytes]:
    """The objects of `archive_of`."""
    found: list[bytes] = []
    at = len(_MAGIC)
    while at < len(archive):
        begin, size = at + 60, int(archive[at + 48 : at + 58])
        found.append(archive[begin : begin + size])
        at = begin + size + size % 2
    return found


def all_of(objects: Sequence[bytes], scratch: Path) -> list[str]:
    """Arguments for objects, which lie in one file: to make one takes as long as lld
    has for an object."""
    (scratch / "objects.a").write_bytes(archive_of(objects))
    return ["--whole-archive", "objects.a", "--no-whole-archive"]


def _member(name: str, size: int) -> bytes:
    """The header of a member: who made it, and when, is nobody's business."""
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode()
