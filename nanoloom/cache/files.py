"""What the cache asks of a file system: locks, drafts that vanish, whole folders."""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from nanoloom.cache import digest

MANIFEST = "MANIFEST"
_TITLE = "nanoloom folder 1"
# Files up to here are read before each use; a longer one, of parameters, only when its
# time of change or inode is not the one noted when it was written.
READ_AT_MOST = 16 << 20


def lock(descriptor: int, mode: int) -> bool | None:
    """`flock` without waiting: False when another has it, None where there is none."""
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN) else None
    return True


def is_at(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one that `path` leads to."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def identity(path: Path) -> tuple[str, int, int, int, int]:
    """(path, bytes, time of content, time of inode, inode): other content, others."""
    now = path.stat()
    times = now.st_mtime_ns, now.st_ctime_ns
    return os.path.realpath(path), now.st_size, *times, now.st_ino


def children(folder: Path) -> list[Path]:
    """What is in a folder, if there is one."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def write(descriptor: int, data: bytes) -> None:
    """Write all of it: one call writes 2 GB at most, or up to the end of the disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def remove(path: Path) -> None:
    """Remove a file or folder, or as much of it as can be."""
    import shutil  # with bz2 and lzma: only when something is removed

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


@contextmanager
def gone_at_end(draft: Path) -> Generator[None]:
    """Remove the draft, unless it was renamed to its place."""
    try:
        yield
    finally:
        if draft.exists():
            remove(draft)


def temporary_folder() -> Path:
    """A folder that is removed when this process ends."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="nanoloom-"))
    atexit.register(_remove_own, folder, os.getpid())
    if "multiprocessing" in sys.modules:  # whose workers end without atexit
        from multiprocessing.util import Finalize

        Finalize(None, _remove_own, args=(folder, os.getpid()), exitpriority=0)
    return folder


def _remove_own(folder: Path, maker: int) -> None:
    if os.getpid() == maker:  # a forked child ends earlier, and has no right to it
        remove(folder)


def seal(folder: Path) -> int:
    """Write the manifest of a finished folder and return the bytes of its files.

    A line a file: bytes, digest, time of change, inode, name.
    """
    total, lines = 0, list[str]()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            assert "\n" not in name and name != MANIFEST
            content = digest.of_file(path)
            now = path.stat()
            total += now.st_size
            noted = f"{now.st_size} {content} {now.st_mtime_ns} {now.st_ino}"
            lines.append(f"{noted} {name}\n")
    text = f"{_TITLE}: {len(lines)} files\n" + "".join(lines)
    with (folder / MANIFEST).open("xb", buffering=0) as file:
        write(file.fileno(), text.encode())
    return total


def is_whole(folder: Path, file_digest: Callable[[Path], str]) -> bool:
    """Whether every file of a sealed folder is there with the content it had.

    `file_digest` digests a long file that was moved; it may remember.
    """
    try:
        title, *lines = (folder / MANIFEST).read_text().splitlines()
        if title != f"{_TITLE}: {len(lines)} files":
            return False
        return all(_same(folder, line, file_digest) for line in lines)
    except (OSError, ValueError):
        return False


def _same(folder: Path, line: str, file_digest: Callable[[Path], str]) -> bool:
    size, content, changed, inode, name = line.split(" ", 4)
    now = (folder / name).stat()
    if now.st_size != int(size):
        return False
    if now.st_size <= READ_AT_MOST:
        return digest.of_file(folder / name) == content
    if (now.st_mtime_ns, now.st_ino) == (int(changed), int(inode)):
        return True
    return file_digest(folder / name) == content
