"""Files that a command writes: whole or not at all, and one sentence if they cannot."""

from __future__ import annotations

import errno
import stat
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from nanoloom.binary.output_files import not_made, replaced, require_writable
from nanoloom.cache.file_operations import is_same
from nanoloom.errors import Error

if TYPE_CHECKING:
    from nanoloom.cache import Cache


@contextmanager
def written(path: Path) -> Generator[IO[bytes]]:
    """A file to write to, which takes the place of `path` when the block is done.

    A symbolic link is followed; a device or pipe is written to as it is.
    Raises Error, naming the path, if it cannot be written.
    """
    with refusing(path):
        check_file(path)
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        with replaced(path.resolve()) as file:
            yield file


def write_text(path: Path, text: str) -> None:
    """Write a whole text file; raises Error as `written` does."""
    with written(path) as file:
        file.write(text.encode("utf-8", "surrogateescape"))


@contextmanager
def refusing(path: Path) -> Generator[None]:
    """Turn what the system says of a place into one sentence."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        hint = ""
        if isinstance(error, FileNotFoundError):
            hint = f"make the folder first: mkdir -p {path.parent}"
        reason = error.strerror or str(error)
        raise Error(
            f"cannot be written: {reason}", where=str(path), hint=hint
        ) from None


def check_file(path: Path, ending: str = "") -> None:
    """A place for a file: raises Error if it is a folder, OSError if it is nowhere."""
    if path.is_dir():
        example = path / f"model{ending}"
        raise Error("is a folder", where=str(path), hint=f"name a file, as {example}")
    check_parent(path)
    if not path.exists() or path.is_file():
        require_writable(path.resolve().parent)


def check_parent(path: Path) -> None:
    """Raise OSError for a path in no folder."""
    there = next(each for each in path.absolute().parents if each.exists())
    if not there.is_dir():
        raise NotADirectoryError(
            errno.ENOTDIR, f"{there} is a file, no folder", str(path)
        )
    if there != path.absolute().parent:
        raise FileNotFoundError(
            errno.ENOENT, f"there is no folder {path.parent}", str(path)
        )


def check_replaceable(path: Path, ending: str = "") -> None:
    """The same for a file that is made elsewhere and renamed: no device, no pipe."""
    with refusing(path):
        check_file(path, ending)
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            raise Error("is a pipe or a device", where=str(path), hint="name a file")
        require_writable(path.parent)


def require_other(path: Path, model: Path) -> None:
    """Raise Error for the model's own file, which would be gone."""
    if is_same(path, model):
        raise Error("is the model itself", where=str(path), hint="name another file")


def require_apart(written: Iterable[tuple[str, Path]]) -> None:
    """Raise Error where one file is for two things; each with the word for it.

    A device or a pipe takes both.
    """
    names: dict[Path, str] = {}
    for name, path in written:
        if path.exists() and not path.is_file():
            continue
        other = names.setdefault(path.resolve(), name)
        if other != name:
            reason = f"is for {other} and for {name}"
            raise Error(reason, where=str(path), hint="name a file for each")


def folder(path: Path) -> Path:
    """A folder to write into, made where there is none; raises Error."""
    with refusing(path):
        if path.exists() and not path.is_dir():
            raise Error("is a file", where=str(path), hint="name a folder")
        check_parent(path)
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise not_made("folder", path.parent, error) from None
        require_writable(path)
    return path


def file_name(name: str) -> str:
    """A file's name for a value's name, which may hold slashes and anything else."""
    plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    return plain.lstrip(".")[:100] or "value"


def write_merged(objects: Mapping[str, bytes], out: Path, cache: Cache) -> None:
    """One relocatable object of many."""
    from nanoloom.binary.link import merged

    if not objects:
        raise Error("the model needs no kernel: its outputs are constants or inputs")
    code = merged(list(objects.values()), out.name, cache)
    with written(out) as file:
        file.write(code)
