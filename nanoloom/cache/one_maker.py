"""One process makes an entry while the others wait for it.

`Cache.folder` is right without: of several that build at once the first is kept.  But
a model takes minutes of all cores, and a hundred workers of an engine begin together.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from nanoloom.cache import file_operations

# Whoever has stopped in the middle holds up the others no longer than this.
PATIENCE_SECONDS = 900.0
POLL_SECONDS = 0.02


@contextmanager
def one_maker(
    folder: Path, entry: Path, patience: float = PATIENCE_SECONDS
) -> Generator[None]:
    """Inside nobody else is, for the same entry, as long as it is not there.

    folder: for the lock's file, which goes at the end.  The lock ends with its process,
    so a killed maker is followed by the next one.  Where the file system has no locks,
    or `patience` seconds have passed, all go in.
    """
    path = folder / f"making-{entry.name}"
    descriptor = _held(path, entry, time.monotonic() + patience)
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):  # first: who waits looks whether it is still there
                path.unlink()
            with suppress(OSError):  # a forked child may have the file open, too
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _held(path: Path, entry: Path, end: float) -> int | None:
    """The lock's file, locked; None where none is wanted, or there is none."""
    while not entry.exists() and time.monotonic() < end:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None
        locked = file_operations.lock(descriptor, fcntl.LOCK_EX)
        if locked and file_operations.is_at(descriptor, path):
            return descriptor
        os.close(descriptor)
        if locked is None:
            return None
        if locked is False:
            time.sleep(POLL_SECONDS)
    return None
