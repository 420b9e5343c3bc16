"""The path of a file, as somebody gave it."""

from __future__ import annotations

import os
from pathlib import Path

from nanoloom.errors import Error


def named_file(path: object) -> Path:
    """A path that the user gave; it need not exist.

    Raises Error for what names no file, and for a device or a pipe.
    """
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path):
        raise Error(f"{path!r} is not the path of a file")
    found = Path(path)
    if not found.name:
        raise Error("names no file", where=str(path))
    if found.exists() and not found.is_file() and not found.is_dir():
        raise Error("is a pipe or a device", where=str(path), hint="name a file")
    return found


def require_file(path: Path) -> None:
    """Raise Error, with the reason, for what is no file that can be read."""
    if path.is_dir():
        raise Error("is a folder", where=str(path), hint="name a file")
    if not path.is_file():
        raise Error("no such file", where=str(path))
