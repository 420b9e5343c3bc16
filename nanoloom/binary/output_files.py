"""Files for the user: each takes its place when it is whole, and leaves nothing else.

While it is written it has no name, so that even a killed process leaves nothing behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from nanoloom.cache import file_operations
from nanoloom.errors import refused

_DRAFT = ".nanoloom-"  # how the names of drafts begin, where there must be names
_STALE_SECONDS = 60
_NO_NAMELESS = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS}
_OWN_FILES = "/proc/self/fd"


@contextmanager
def refusing(output: Path) -> Generator[None]:
    """Turn what the system refuses into an Error of one sentence."""
    try:
        yield
    except OSError as error:
        place = {"where": str(output.parent), "stage": "binary"}
        raise refused(f"cannot write {output.name}", error, **place) from error


@contextmanager
def replaced(path: Path, mode: int = 0o666) -> Generator[BinaryIO]:
    """A new file to write and read, which takes the place of `path` at the end.

    What stood there stays if the block or the disk fails.  Raises OSError.
    """
    require_replaceable(path)
    clean(path.parent)
    descriptor, draft = _opened(path.parent, mode)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            if draft is None:
                draft = _named(descriptor, path)
            if draft is not None:
                os.replace(draft, path)
    except BaseException:
        if draft is not None:
            with suppress(OSError):
                draft.unlink()
        raise


def require_replaceable(path: Path) -> None:
    """Raise OSError for a folder, and for a device or a pipe, which would be gone."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is a pipe or a device", str(path))


def require_writable(folder: Path) -> None:
    """Raise OSError for a folder that takes no new file, whatever its mode says."""
    try:
        descriptor, draft = _opened(folder, 0o600)
    except OSError as error:
        raise not_made("file", folder, error) from None
    os.close(descriptor)
    if draft is not None:
        draft.unlink()


def not_made(what: str, folder: Path, error: OSError) -> OSError:
    """Why there is no new one in a folder that is there itself."""
    missing = isinstance(error, FileNotFoundError)  # what /proc says of any name
    number = errno.EPERM if missing or error.errno is None else error.errno
    reason = f"no {what} can be made in {folder}"
    return OSError(number, reason if missing else f"{reason}: {error.strerror}")


def _opened(folder: Path, mode: int) -> tuple[int, Path | None]:
    """A new file in a folder, and its name where the file system wants one."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir(_OWN_FILES):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR, mode), None
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
    draft = _draft(folder)
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
    file_operations.lock(descriptor, fcntl.LOCK_SH)
    return descriptor, draft


def _named(descriptor: int, path: Path) -> Path | None:
    """Give a nameless file its name; that of a draft, if there is a file to replace."""
    file = f"{_OWN_FILES}/{descriptor}"
    # Only with a folder's descriptor does Python ask to follow the link to the file.
    try:
        os.link(file, path, src_dir_fd=descriptor)
    except FileExistsError:
        draft = _draft(path.parent)
        os.link(file, draft, src_dir_fd=descriptor)
        return draft
    return None


@contextmanager
def scratch_beside(output: Path) -> Generator[Path]:
    """A folder on the file system of `output`, gone at the end.

    Raises:
        Error: whatever the system refused inside the `with`, as one sentence.
    """
    with refusing(output):
        require_replaceable(output)
        clean(output.parent)
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=_DRAFT) as name:
            descriptor = os.open(name, os.O_RDONLY)
            try:
                file_operations.lock(descriptor, fcntl.LOCK_SH)
                yield Path(name)
            finally:
                os.close(descriptor)


def clean(folder: Path) -> None:
    """Remove the drafts of processes that were killed."""
    for path in file_operations.children(folder):
        if path.name.startswith(_DRAFT):
            with suppress(OSError):
                if time.time() - path.lstat().st_mtime > _STALE_SECONDS:
                    _remove_unused(path)


def _remove_unused(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if file_operations.lock(descriptor, fcntl.LOCK_EX):
            file_operations.remove(path)
    finally:
        os.close(descriptor)


def _draft(folder: Path) -> Path:
    return folder / f"{_DRAFT}{os.urandom(6).hex()}"
