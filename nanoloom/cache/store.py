"""The disk cache: compiled kernels as bytes, models as folders of files.

    root/kernels/KEY    MAGIC, digest, bytes
    root/models/KEY/    the files of a model, and MANIFEST with their sizes and digests
    root/tmp/           drafts, and what is on its way out

Everything is made in tmp and appears by one rename, so a reader sees a whole entry or
none, whoever else writes and whoever is killed.  Whoever uses a folder, or works on a
draft, holds a shared `flock` on it; a removal needs an exclusive one, and a lock ends
with its process.  Nothing is synced: after a power cut, sizes and digests tell which
entries are whole.  The cache may fail, the work may not: a root that cannot be written
to gives one warning, and all goes on without it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from nanoloom.cache import digest, files

DEFAULT_LIMIT = 4 << 30
MAGIC = b"nanoloom cache 1\n"
HEADER_BYTES = len(MAGIC) + 64
# A draft of a killed process; where there are no locks, age alone must tell.
STALE_SECONDS, STALE_SECONDS_UNLOCKED = 60, 24 * 3600
# A file changed so lately may change again within one tick of the file system's clock.
SETTLED_SECONDS = 2
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def default_root() -> Path:
    """Where a user's caches are: ~/.cache/nanoloom on Linux."""
    import platformdirs  # 20 ms, and most callers have a root

    return Path(platformdirs.user_cache_dir("nanoloom"))


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)


class Cache:
    """Entries by key under `root`; above the limit the least recently used go.

    Args:
        root: made at the first write; processes may share it.
        limit_bytes: of all entries together.
        warn: called once, with one sentence, when the cache cannot be written to.
    """

    def __init__(
        self,
        root: Path,
        limit_bytes: int = DEFAULT_LIMIT,
        warn: Callable[[str], None] = _warn,
    ) -> None:
        self.root = root
        self.limit_bytes = limit_bytes
        self._kernels, self._models = root / "kernels", root / "models"
        self._tmp = root / "tmp"
        self._warn = warn
        self._broken = False
        self._room = 0  # bytes to write before the next look at the whole cache
        self._in_use: dict[str, int] = {}  # models by key: their locked descriptors
        self._private: dict[str, Path] = {}

    @classmethod
    def temporary(cls) -> Cache:
        """A cache of this process alone, removed when it ends: `--no-cache`."""
        return cls(files.temporary_folder())

    def get(self, key: str) -> bytes | None:
        """The bytes put under `key`; None when absent or damaged."""
        path = self._kernels / key
        try:
            entry = path.read_bytes()
        except OSError:
            return None
        data = entry[HEADER_BYTES:]
        if entry[:HEADER_BYTES] != _header(data):
            self._discard(path, forced=True)
            return None
        with suppress(OSError):  # somebody else's cache may be readable only
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`, in place of what is there."""
        if self._broken or len(data) > self.limit_bytes:
            return
        try:
            self._make_room(len(data))
            draft = self._new_draft()
            with files.gone_at_end(draft), draft.open("xb", buffering=0) as file:
                files.lock(file.fileno(), fcntl.LOCK_SH)
                files.write(file.fileno(), _header(data))
                files.write(file.fileno(), data)
                os.replace(draft, self._kernels / key)
        except OSError as error:
            self._give_up(error)

    def folder(self, key: str) -> Path | None:
        """The folder published under `key`, whole; None when absent or damaged.

        It stays until this process ends, whatever other processes remove.
        """
        if key in self._private:
            return self._private[key]
        path = self._models / key
        if key in self._in_use and path.exists():
            return path
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return None
        # Locked by somebody alone, or elsewhere by now: it is being removed.
        locked = files.lock(descriptor, fcntl.LOCK_SH) is not False
        if locked and files.is_at(descriptor, path):
            if files.is_whole(path, self.file_digest):
                with suppress(OSError):
                    os.utime(path)
                self._hold(key, descriptor)
                return path
            self._discard(path, forced=True)
        os.close(descriptor)
        return None

    def publish_folder(self, key: str, build: Callable[[Path], None]) -> Path:
        """The folder under `key`; where there is none, made by `build(empty folder)`.

        Of several processes that build it at once the first to finish is kept, and all
        get that one.  What `build` raises is raised, and nothing is left of it.  When
        the cache cannot be written to, `build` runs in a folder that is removed when
        the process ends: for the second time, if the disk was full in the first.
        """
        if found := self.folder(key):
            return found
        failures: list[OSError] = []

        def guarded(draft: Path) -> None:
            try:
                build(draft)
            except OSError as error:
                if error.errno not in _FULL:
                    failures.append(error)
                raise

        if not self._broken:
            try:
                return self._publish(key, guarded)
            except OSError as error:
                if failures:
                    raise
                self._give_up(error)
        private = files.temporary_folder()
        build(private)
        return self._private.setdefault(key, private)

    def file_digest(self, path: Path) -> str:
        """The digest of a file's bytes, remembered for as long as its size, inode and
        times stay as they are."""
        before = files.identity(path)
        name = digest.of("file digest", *before)
        if known := self.get(name):
            return known.decode()
        found = digest.of_file(path)
        settled = max(before[2:4]) / 1e9 < time.time() - SETTLED_SECONDS
        if settled and before == files.identity(path):
            self.put(name, found.encode())
        return found

    def _publish(self, key: str, build: Callable[[Path], None]) -> Path:
        draft = self._new_draft()
        draft.mkdir()
        with files.gone_at_end(draft):
            descriptor = os.open(draft, os.O_RDONLY | os.O_DIRECTORY)
            try:
                files.lock(descriptor, fcntl.LOCK_SH)
                build(draft)
                self._make_room(files.seal(draft))
                if theirs := self._place(draft, key):
                    return theirs
                self._hold(key, os.dup(descriptor))  # the same lock, not a second one
            finally:
                os.close(descriptor)
        return self._models / key

    def _place(self, draft: Path, key: str) -> Path | None:
        """Rename the draft to its place; or the folder of another, who was faster."""
        try:
            os.rename(draft, self._models / key)
        except OSError:
            # In the way: a whole folder to be used, or a damaged one, now removed.
            if theirs := self.folder(key):
                return theirs
            os.rename(draft, self._models / key)
        return None

    def _new_draft(self) -> Path:
        """A path in tmp that nothing has."""
        if not self._tmp.is_dir():
            for folder in (self._kernels, self._models, self._tmp):
                folder.mkdir(parents=True, exist_ok=True)
            # For backup programs: https://bford.info/cachedir/
            tag = "Signature: 8a477f597d28d172789f06886806bc55\n"
            (self.root / "CACHEDIR.TAG").write_text(tag)
        return self._tmp / os.urandom(12).hex()

    def _hold(self, key: str, descriptor: int) -> None:
        before = self._in_use.get(key)
        self._in_use[key] = descriptor
        if before is not None:
            os.close(before)

    def _give_up(self, error: OSError) -> None:
        if not self._broken:
            self._broken = True
            reason = error.strerror or str(error)
            self._warn(
                f"the cache {self.root} cannot be written to ({reason}): not used"
            )

    def _make_room(self, size: int) -> None:
        """Count what is written; now and then look at the whole cache.

        Other processes write, too: a look is due after an eighth of the limit at most.
        """
        self._room -= size
        if self._room > 0:
            return
        self._clean()
        entries = sorted(self._entries())
        total = sum(each for _, each, _ in entries) + size
        for _, each, path in entries:
            if total <= self.limit_bytes:
                break
            if path.name not in self._in_use and self._discard(path):
                total -= each
        self._room = min(self.limit_bytes - total, self.limit_bytes // 8)

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """(time of the last use, bytes, path) of each entry."""
        for folder in (self._kernels, self._models):
            for path in files.children(folder):
                with suppress(OSError):  # another process may remove it meanwhile
                    used = path.stat().st_mtime
                    parts = path.rglob("*") if path.is_dir() else [path]
                    yield used, sum(part.stat().st_size for part in parts), path

    def _clean(self) -> None:
        """Remove the drafts of processes that were killed."""
        for path in files.children(self._tmp):
            with suppress(OSError):
                age = time.time() - path.stat().st_mtime
                if age > STALE_SECONDS:
                    self._discard(path, unlocked=age > STALE_SECONDS_UNLOCKED)

    def _discard(
        self, path: Path, *, forced: bool = False, unlocked: bool = True
    ) -> bool:
        """Remove an entry or draft that nobody uses, or one that is damaged (`forced`).

        Where the file system knows no locks, only if `unlocked`: what others have
        mapped stays readable.  Returns whether it is gone.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            return False
        try:
            locked = forced or files.lock(descriptor, fcntl.LOCK_EX)
            if locked is False or (locked is None and not unlocked):
                return False
            trash = self._tmp / os.urandom(12).hex()
            os.rename(path, trash)  # nobody shall find half of it
            files.remove(trash)
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)


def _header(data: bytes) -> bytes:
    return MAGIC + digest.of(data).encode()
