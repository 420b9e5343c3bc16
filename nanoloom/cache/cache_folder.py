"""One folder of entries, of bounded size: whole ones are found, others made again.

    root/kernels/KEY    MAGIC, digest, bytes
    root/models/KEY/    the files of a model, and MANIFEST with their sizes and digests
    root/weights/KEY    bytes to map, and a seal (sealed_files.py)
    root/tmp/           drafts, and what is on its way out
    root/written        how many bytes there are (written.py)

Everything is made in tmp and appears by one rename, so a reader sees a whole entry or
none, whoever else writes and whoever is killed.  Whoever reads a folder, or works on a
draft, holds a shared `flock` on it; a removal needs an exclusive one, and a lock ends
with its process.  Nothing is synced: whatever is read is checked by its digest first.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from nanoloom import file_digest, sealed_files, trusted_files
from nanoloom.cache import digest, file_operations, written

MAGIC = b"nanoloom cache 2\n"
HEADER_BYTES = len(MAGIC) + 64
# A draft of a killed process; where there are no locks, age alone must tell.
STALE_SECONDS, STALE_SECONDS_UNLOCKED = 60, 24 * 3600
# For backup programs: https://bford.info/cachedir/
TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"
# Who maps a file anew writes its time at most so often: another time, another look.
USED_SECONDS = 3600

Made = TypeVar("Made")
Held = tuple[int, Path]  # a folder and the descriptor that has the lock on it
Write = Callable[[BinaryIO], None]
Use = Callable[[int], bool]  # of an open file; False: it is damaged


class Root:
    """Entries by key under `path`; above the limit the least recently used go.

    What cannot be written raises OSError.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self._kernels, self._models = path / "kernels", path / "models"
        self._weights = path / "weights"
        self._tmp, self._written = path / "tmp", path / "written"
        self._room = 0  # bytes to write before the next look at all entries

    def get(self, key: str) -> bytes | None:
        """The bytes put under `key`; None when absent or damaged."""
        path = self._kernels / key
        try:
            trusted_files.require_own(self.path)
            with file_digest.opened(path) as descriptor:
                if trusted_files.others(os.fstat(descriptor)):
                    return None  # it is made again, in place of this
                entry = file_operations.read(descriptor)
        except OSError:
            return None
        data = entry[HEADER_BYTES:]
        if entry[:HEADER_BYTES] != _header(key, data):
            self._set_aside(path)
            return None
        with suppress(OSError):  # somebody else's cache may be readable only
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`, in place of what is there."""
        self._make_room(len(data))
        draft, path = self._new_draft(), self._kernels / key
        with file_operations.gone_at_end(draft), draft.open("xb", buffering=0) as file:
            file_operations.lock(file.fileno(), fcntl.LOCK_SH)
            file_operations.write(file.fileno(), _header(key, data))
            file_operations.write(file.fileno(), data)
            try:
                os.replace(draft, path)
            except IsADirectoryError:
                self._set_aside(path)
                os.replace(draft, path)

    def whole(self, key: str) -> Held | None:
        """The folder under `key`, locked; None when absent or damaged."""
        path = self._models / key
        try:
            trusted_files.require_own(self.path)
            descriptor = self._lock(path)
        except OSError:
            return None
        if descriptor is None:
            return None
        whole = False
        try:
            own = not trusted_files.others(os.fstat(descriptor))
            whole = own and file_operations.is_whole(path)
            if not whole:
                self._set_aside(path)
                return None
            with suppress(OSError):
                os.utime(path)
            return descriptor, path
        finally:
            if not whole:
                os.close(descriptor)

    def _lock(self, path: Path) -> int | None:
        """A descriptor with a lock on a folder; None if that is being removed."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        locked = file_operations.lock(descriptor, fcntl.LOCK_SH) is not False
        if locked and file_operations.is_at(descriptor, path):
            return descriptor
        os.close(descriptor)
        return None

    def publish(self, key: str, draft: Path) -> Held:
        """Rename a finished draft to its place; or the folder of another, who was
        faster."""
        self._make_room(file_operations.seal(draft))
        path = self._models / key
        try:
            os.rename(draft, path)
        except OSError:
            # In the way: a whole folder to be used, or something damaged.
            if theirs := self.whole(key):
                return theirs
            self._set_aside(path)
            os.rename(draft, path)
        descriptor = self._lock(path)  # the draft's own lock still keeps it there
        if descriptor is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
        return descriptor, path

    def forget(self, key: str) -> None:
        """The folder under `key` is of no use to anybody."""
        self._set_aside(self._models / key)

    def use_file(self, key: str, use: Use) -> bool:
        """Whether there is a file under `key`, and `use` takes it.

        Nobody removes it meanwhile, but for `use` that finds it damaged.
        """
        path = self._weights / key
        try:
            trusted_files.require_own(self.path)
            with file_digest.opened(path) as descriptor:
                if file_operations.lock(descriptor, fcntl.LOCK_SH) is False:
                    return False  # it is being removed
                if trusted_files.others(os.fstat(descriptor)):
                    return False
                if os.fstat(descriptor).st_mtime < time.time() - USED_SECONDS:
                    with suppress(OSError):
                        os.utime(descriptor)
                if use(descriptor):
                    return True
        except OSError as error:
            if error.errno in file_operations.OF_THE_PROCESS:
                raise
            return False
        self._set_aside(path)
        return False

    def make_file(self, key: str, draft: Path, write: Write, use: Use) -> None:
        """Write a file and use it; or the one of another, who was faster.

        draft: an empty folder.
        """
        made, path = draft / "file", self._weights / key
        with made.open("xb+", buffering=0) as file:
            file_operations.lock(file.fileno(), fcntl.LOCK_SH)
            write(file)  # type: ignore[arg-type]  # unbuffered
            sealed_files.seal(file)  # type: ignore[arg-type] - a file that is made here
            self._make_room(made.stat().st_size)
            try:
                os.link(made, path)
            except OSError:
                # In the way: a file to be used, or what is damaged; or no links here.
                if self.use_file(key, use):
                    return
                if path.is_dir():
                    self._set_aside(path)
                os.replace(made, path)
            if not self.use_file(key, use):  # the lock still keeps it there
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    def in_draft(self, work: Callable[[Path], Made]) -> Made:
        """What `work(empty folder)` returns; then the folder goes, unless published."""
        draft = self._new_draft()
        draft.mkdir()
        with file_operations.gone_at_end(draft):
            descriptor = os.open(draft, os.O_RDONLY | os.O_DIRECTORY)
            try:
                file_operations.lock(descriptor, fcntl.LOCK_SH)
                return work(draft)
            finally:
                os.close(descriptor)

    def _new_draft(self) -> Path:
        """A path in tmp that nothing has; whatever folder is missing is made."""
        trusted_files.require_own(self.path)
        for folder in (self._kernels, self._models, self._weights, self._tmp):
            folder.mkdir(parents=True, exist_ok=True)
        tag = self.path / "CACHEDIR.TAG"
        if not tag.exists():
            tag.write_text(TAG)
        return self._tmp / os.urandom(12).hex()

    def _make_room(self, size: int) -> None:
        """Look at all entries once an eighth of the limit was written, by whom ever."""
        self._room -= size
        written.add(self._written, size)
        if self._room > 0:
            return
        total, since = written.counted(self._written) or (self.limit_bytes, 0)
        self._room = min(self.limit_bytes - total, self.limit_bytes // 8 - since)
        if self._room > 0:
            self._clean()
            return
        total = self.shrink(self.limit_bytes - size) + size
        self._room = min(self.limit_bytes - total, self.limit_bytes // 8)
        written.begin(self._written, total, self._tmp / os.urandom(12).hex())

    def shrink(self, most: int) -> int:
        """Remove drafts that are left, and entries, those first that were not used for
        the longest time, until `most` bytes are kept; the bytes that are.

        What somebody uses stays.
        """
        self._clean()
        entries = sorted(self.entries())
        total = sum(each for _, each, _ in entries)
        for _, each, path in entries:
            if total <= most:
                break
            if self._discard(Path(path)):
                total -= each
        return total

    def entries(self) -> Iterator[tuple[float, int, str]]:
        """(time of the last use, bytes, path) of each entry."""
        for folder in (self._kernels, self._models, self._weights):
            for entry in file_operations.entries(folder):
                with suppress(OSError):  # another process may remove it meanwhile
                    found = entry.stat()
                    size = (
                        file_operations.size_in(entry)
                        if entry.is_dir()
                        else found.st_size
                    )
                    yield found.st_mtime, size, entry.path

    def _clean(self) -> None:
        """Remove the drafts of processes that were killed."""
        for path in file_operations.children(self._tmp):
            with suppress(OSError):
                age = time.time() - path.stat().st_mtime
                if age > STALE_SECONDS:
                    self._discard(path, unlocked=age > STALE_SECONDS_UNLOCKED)

    def _discard(self, path: Path, *, unlocked: bool = True) -> bool:
        """Remove an entry or draft that nobody reads; whether it is gone.

        Where the file system knows no locks, only if `unlocked`: what others have
        mapped stays readable.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            return False
        try:
            locked = file_operations.lock(descriptor, fcntl.LOCK_EX)
            if locked is False or (locked is None and not unlocked):
                return False
            return self._set_aside(path)
        finally:
            os.close(descriptor)

    def _set_aside(self, path: Path) -> bool:
        """Remove an entry at once, whoever reads it: nobody shall find half of it."""
        trash = self._tmp / os.urandom(12).hex()
        try:
            os.rename(path, trash)
        except OSError:
            return False
        file_operations.remove(trash)
        return True


def _header(key: str, data: bytes) -> bytes:
    return MAGIC + digest.of(key, data).encode()
