"""Names for content: digests of values, of files and of nanoloom itself (BLAKE3)."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import sys
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import cast

from blake3 import blake3

from nanoloom import file_digest

# What turns a model into code beside nanoloom's own files; onnx holds the bodies of
# the functions that are expanded, and computes constants with the last two.
_WHEELS = re.compile(
    r"(torch_mlir|llvmlite|ziglang|onnx|onnx_ir|numpy|ml_dtypes)-.*\.dist-info"
)


def key(*parts: object) -> str:
    """A name for what nanoloom, as it is now, makes of these parts: 64 hex digits.

    Parts are None, numbers, strings, bytes, enums, and tuples, lists, sets, dicts and
    dataclasses of such (of a dataclass: the fields that compare).  Equal parts have
    equal keys in every process; 1, 1.0, True and "1" have four.

    Raises:
        TypeError: for anything else.  A path is no content: pass its file's digest.
    """
    return of(toolchain(), *parts)


def of(*parts: object) -> str:
    """The digest of the parts alone: `key` without the version of nanoloom."""
    pieces: list[bytes] = []
    for part in parts:
        _feed(pieces, part)
    return blake3(b"".join(pieces)).hexdigest()  # a call for each would take longer


def of_buffer(data: memoryview) -> str:
    """The digest of bytes in memory, by all threads; they are not copied."""
    return blake3(max_threads=file_digest.threads()).update(data).hexdigest()


def of_file(path: Path | str) -> str:
    """The digest of a file's bytes, by all threads, a part in memory at a time."""
    with file_digest.opened(path) as descriptor:
        return file_digest.of_descriptor(descriptor)


@functools.cache
def toolchain() -> str:
    """The digest of nanoloom's files and of the versions of the wheels it builds on.

    Versions are the names of folders beside the wheels: importlib.metadata would take
    ten times as long as all the rest.
    """
    package = Path(__file__).parent.parent
    pieces: list[bytes] = []
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            file = Path(folder, name)
            _feed(pieces, file.relative_to(package).as_posix())
            _feed(pieces, file.read_bytes())
    _feed(pieces, _wheels())
    return blake3(b"".join(pieces)).hexdigest()


def _wheels() -> tuple[str, ...]:
    """llvmlite-0.50.0.dist-info and its like: the first of each along sys.path."""
    found: dict[str, str] = {}
    for entry in sys.path:
        if not os.path.isdir(entry or "."):
            continue
        for name in os.listdir(entry or "."):
            if match := _WHEELS.fullmatch(name):
                found.setdefault(match[1], name)
    return tuple(sorted(found.values()))


def _feed(pieces: list[bytes], part: object) -> None:
    """Kind and length first, so that no two different lists of parts run together."""
    match part:
        case None | bool() | int() | float() | str() if not isinstance(part, Enum):
            _leaf(pieces, type(part).__name__, repr(part).encode())
        case bytes() | bytearray() | memoryview():
            _leaf(pieces, "bytes", cast("bytes", part))
        case Enum():
            _leaf(pieces, f"enum {_type_name(part)}", part.name.encode())
        case tuple() | list():
            _sequence(pieces, "sequence", cast("tuple[object, ...]", part))
        case set() | frozenset():
            each = sorted(of(item) for item in cast("set[object]", part))
            _sequence(pieces, "set", each)
        case dict():
            pairs = cast("dict[object, object]", part).items()
            _sequence(pieces, "dict", sorted(of(*pair) for pair in pairs))
        case _ if dataclasses.is_dataclass(part) and not isinstance(part, type):
            names = [field.name for field in dataclasses.fields(part) if field.compare]
            values = [(name, getattr(part, name)) for name in names]
            _sequence(pieces, f"dataclass {_type_name(part)}", values)
        case _:
            raise TypeError(f"a {type(part).__name__} cannot be part of a cache key")


def _leaf(pieces: list[bytes], kind: str, data: bytes) -> None:
    pieces += f"{kind} {memoryview(data).nbytes}\n".encode(), data


def _sequence(pieces: list[bytes], kind: str, parts: Iterable[object]) -> None:
    each = tuple(parts)
    pieces.append(f"{kind} {len(each)}\n".encode())
    for part in each:
        _feed(pieces, part)


def _type_name(part: object) -> str:
    return f"{type(part).__module__}.{type(part).__qualname__}"
