"""What the cache asks of a file system: locks, drafts that vanish, whole folders."""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from nanoloom.cache import digest

MANIFEST = "MANIFEST"
_TITLE = "nanoloom folder 2"
OF_THE_PROCESS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}  # not of a file
# In memory: where the disk of all other folders is full.
SHARED_MEMORY = Path("/dev/shm")
ENOUGH = 256 << 20  # bytes free, of a folder that is taken without a look at others
TEMPORARY = "nanoloom-cache-"
NEW_SECONDS = 60.0  # such a folder may have no lock yet


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


def is_same(path: Path, other: Path) -> bool:
    """Whether both are one file, by whatever name or link."""
    return path.exists() and other.exists() and path.samefile(other)


def identity(path: Path) -> tuple[str, int, int, int, int]:
    """(path, bytes, time of content, time of inode, inode): other content, others."""
    now = path.stat()
    times = now.st_mtime_ns, now.st_ctime_ns
    return os.path.realpath(path), now.st_size, *times, now.st_ino


def is_other(path: Path, seen: object) -> bool:
    """Whether a file has another identity than `seen`; one that is gone has none."""
    try:
        return identity(path) != seen
    except FileNotFoundError:
        return False


def children(folder: Path) -> list[Path]:
    """What is in a folder, if there is one."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """The same with what the system tells of each at once: there may be thousands."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def size_in(folder: os.DirEntry[str]) -> int:
    """The bytes of all that is in a folder."""
    return sum(
        size_in(entry) if entry.is_dir() else entry.stat().st_size
        for entry in entries(folder.path)
    )


def read(descriptor: int) -> bytes:
    """All of an open file."""
    with os.fdopen(os.dup(descriptor), "rb", buffering=0) as file:
        return file.read()


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
    """A folder with room in it, which is removed when this process ends.

    Of a process that is killed, the next one that makes such a folder removes it: its
    lock has ended.  Raises OSError where there is none to be had.
    """
    place = _with_room()
    for left in place.glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            _remove_left(left)
    folder = _made_in(place)
    lock(os.open(folder, os.O_RDONLY), fcntl.LOCK_SH)  # open to the end
    atexit.register(_remove_own, folder, os.getpid())
    if "multiprocessing" in sys.modules:  # whose workers end without atexit
        from multiprocessing.util import Finalize

        Finalize(None, _remove_own, args=(folder, os.getpid()), exitpriority=0)
    return folder


def _with_room() -> Path:
    """The system's place for temporary files, or memory, if there is more room."""
    import tempfile

    places = [SHARED_MEMORY]
    with suppress(OSError):  # it tries them all by writing
        places.insert(0, Path(tempfile.gettempdir()))
    for place in places:
        if _room(place) >= ENOUGH:
            return place
    return max(places, key=_room)


def _room(folder: Path) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def _made_in(folder: Path) -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=folder))


def _remove_left(folder: Path) -> None:
    """Remove a temporary folder of this user whose process is gone."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        made = os.fstat(descriptor)
        old = time.time() - made.st_mtime > NEW_SECONDS
        own = made.st_uid == os.geteuid()
        if old and own and lock(descriptor, fcntl.LOCK_EX):
            remove(folder)
    finally:
        os.close(descriptor)


def _remove_own(folder: Path, maker: int) -> None:
    if os.getpid() == maker:  # a forked child ends earlier, and has no right to it
        remove(folder)


def seal(folder: Path) -> int:
    """Write the manifest of a finished folder and return the bytes of its files.

    A line a file: bytes, digest, name.
    """
    total, lines = 0, list[str]()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            assert "\n" not in name and name != MANIFEST
            size = path.stat().st_size
            total += size
            lines.append(f"{size} {digest.of_file(path)} {name}\n")
    body = f"{len(lines)} files\n" + "".join(lines)
    text = f"{_TITLE}: {digest.of(body)}\n{body}"
    with (folder / MANIFEST).open("xb", buffering=0) as file:
        write(file.fileno(), text.encode())
    return total


def is_whole(folder: Path) -> bool:
    """Whether every file of a sealed folder is there with the content it had.

    Raises OSError where this process can open no file at all.
    """
    try:
        title, _, body = (folder / MANIFEST).read_text().partition("\n")
        if title != f"{_TITLE}: {digest.of(body)}":
            return False
        return all(_same(folder, line) for line in body.splitlines()[1:])
    except ValueError:
        return False
    except OSError as error:
        if error.errno in OF_THE_PROCESS:
            raise
        return False


def _same(folder: Path, line: str) -> bool:
    size, content, name = line.split(" ", 2)
    path = folder / name
    return path.stat().st_size == int(size) and digest.of_file(path) == content
