"""The disk cache: compiled code as bytes, models as folders of files, and weights.

The cache may fail, the work may not: where its root cannot be written to, one warning
is given, and a temporary folder takes its place.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nanoloom.cache import digest, file_operations
from nanoloom.cache.cache_folder import Held, Made, Root, Use, Write
from nanoloom.cache.one_maker import one_maker
from nanoloom.errors import Error

CACHE_VARIABLE = "NANOLOOM_CACHE"
DEFAULT_LIMIT = 4 << 30
# A file changed so lately may change again within one tick of the file system's clock.
SETTLED_SECONDS = 2


def default_root() -> Path:
    """NANOLOOM_CACHE, or where a user's caches are: ~/.cache/nanoloom on Linux."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    import platformdirs  # 20 ms, and most callers have a root

    return Path(platformdirs.user_cache_dir("nanoloom"))


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)


@dataclass(frozen=True)
class Entry:
    """One thing that is kept.  kind: kernels, models or weights.

    used: when it was used last, in seconds since 1970.
    """

    kind: str
    key: str
    bytes: int
    used: float


class Cache:
    """Entries by key under `root`; above the limit the least recently used go.

    Args:
        root: made at the first write; processes may share it.
        limit_bytes: of all entries together.
        warn: called once, with one sentence, when the root cannot be written to.
    """

    def __init__(
        self,
        root: Path,
        limit_bytes: int = DEFAULT_LIMIT,
        warn: Callable[[str], None] = _warn,
    ) -> None:
        self.root = root
        self.limit_bytes = limit_bytes
        self._warn = warn
        self._own = Root(root, limit_bytes)
        self._spare: Root | None = None  # takes what the own one cannot
        self._candidate: Root | None = None  # a spare that has not helped yet
        self._choice = threading.Lock()  # of the spare: threads compile kernels

    @classmethod
    def temporary(cls) -> Cache:
        """A cache of this process alone, removed when it ends: `--no-cache`."""
        return cls(file_operations.temporary_folder())

    @classmethod
    def of(cls, given: object) -> Cache:
        """The cache that a caller names: itself, its folder, or the user's for None."""
        if isinstance(given, Cache):
            return given
        if given is not None and not isinstance(given, str | os.PathLike):
            raise Error(f"cache is {given!r}", hint="give the path of a folder")
        root = default_root() if given is None else Path(os.fsdecode(given))
        if root.exists() and not root.is_dir():
            raise Error("the cache is no folder", where=str(root), hint="name another")
        return cls(root)

    def entries(self) -> list[Entry]:
        """What is kept, the least recently used first."""
        return [
            Entry(Path(path).parent.name, Path(path).name, size, used)
            for used, size, path in sorted(self._own.entries())
        ]

    def shrink(self, most: int) -> int:
        """Remove the least recently used until `most` bytes are kept; those that are.

        What a process uses stays.
        """
        return self._own.shrink(most)

    def get(self, key: str) -> bytes | None:
        """The bytes put under `key`; None when absent or damaged."""
        found = self._own.get(key)
        if found is None and self._spare:
            return self._spare.get(key)
        return found

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`, in place of what is there."""
        if len(data) > self.limit_bytes:
            return
        place = self._spare or self._own
        try:
            place.put(key, data)
        except OSError as error:
            if place is self._own and self._place_after(error):
                self._give_up(error)
                self.put(key, data)

    @contextmanager
    def folder(self, key: str, build: Callable[[Path], None]) -> Generator[Path]:
        """The folder under `key`; where there is none, made by `build(empty folder)`.

        It is whole, and nobody removes it inside the `with`; what is mapped by then
        stays readable.  Of several processes that build it at once the first to finish
        is kept, and all get that one.  What `build` raises is raised, and nothing is
        left of it; it is called again, with a folder elsewhere, where it raises OSError
        or the tools fail: the disk may be full.
        """
        held = self._own.whole(key) or (self._spare and self._spare.whole(key))
        if not held:

            def publish(root: Root, draft: Path) -> Held:
                build(draft)
                return root.publish(key, draft)

            held = self._anywhere(publish)
        try:
            yield held[1]
        finally:
            os.close(held[0])

    @contextmanager
    def making(self, key: str) -> Generator[None]:
        """Where there is no folder under `key`, nobody else is inside meanwhile.

        Who gets in after another finds what that one made.
        """
        root = (self._spare or self._own).path
        with one_maker(root / "tmp", root / "models" / key):
            yield

    def forget(self, key: str) -> None:
        """Remove the folder under `key`: it is whole, but of no use."""
        for root in self._roots():
            root.forget(key)

    def file(self, key: str, write: Write, use: Use) -> None:
        """Give `use` the descriptor of the file under `key`, to map it.

        Where there is none, `write` makes it, unless another process is faster.  `use`
        is called again if it returns False: the file is damaged, and made anew.  What
        was mapped stays readable.  Errors of `write` are treated as `folder` does.
        """
        if not any(root.use_file(key, use) for root in self._roots()):
            self._anywhere(lambda root, draft: root.make_file(key, draft, write, use))

    def _roots(self) -> list[Root]:
        return [self._own, *([self._spare] if self._spare else [])]

    def in_draft(self, work: Callable[[Path], Made]) -> Made:
        """What `work(empty folder)` returns; nothing is left of the folder.

        Called again, with a folder elsewhere, as `build` of `folder` is.
        """
        return self._anywhere(lambda _, draft: work(draft))

    def file_digest(self, path: Path) -> str:
        """The digest of a file's bytes, remembered for as long as its size, inode and
        times stay as they are."""
        before = file_operations.identity(path)
        name = digest.of("file digest", *before)
        if known := self.get(name):
            return known.decode()
        found = digest.of_file(path)
        settled = max(before[2:4]) / 1e9 < time.time() - SETTLED_SECONDS
        if settled and before == file_operations.identity(path):
            self.put(name, found.encode())
        return found

    def _anywhere(self, work: Callable[[Root, Path], Made]) -> Made:
        """What the work makes in a draft: in the spare, if it fails in the own only.

        A tool that fails names no reason that a program could read.
        """
        first = self._spare or self._own
        try:
            return first.in_draft(lambda draft: work(first, draft))
        except (OSError, Error) as error:
            if first is not self._own or is_answer(error):
                raise
            # Others may have found out meanwhile that the own root is of no use.
            spare = self._place_after(error)
            if spare is None:
                raise
            try:
                made = spare.in_draft(lambda draft: work(spare, draft))
            except (OSError, Error) as other:
                if is_answer(other):
                    raise
                raise error from None
            self._give_up(error)
            return made

    def _place_after(self, error: Exception) -> Root | None:
        """Where to try again: the same place for every thread whose work failed."""
        with self._choice:
            if self._candidate is None:
                self._candidate = elsewhere(error, self.limit_bytes)
            return self._candidate

    def _give_up(self, error: Exception) -> None:
        with self._choice:
            if self._spare is not None:
                return  # another thread has said so
            self._spare = self._candidate
        reason = getattr(error, "strerror", None) or str(error)
        self._warn(f"the cache {self.root} cannot be written to ({reason}): not used")


def is_answer(error: OSError | Error) -> bool:
    """Whether it says something of the work: it would elsewhere, too."""
    return isinstance(error, Error) and error.stage != "binary"


def elsewhere(error: Exception, limit_bytes: int) -> Root | None:
    """A temporary folder in place of one that failed, if it helps and can be had."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError) and cause.errno in file_operations.OF_THE_PROCESS:
        return None
    try:
        return Root(file_operations.temporary_folder(), limit_bytes)
    except OSError:
        return None
