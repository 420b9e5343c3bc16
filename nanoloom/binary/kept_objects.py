"""Objects that are always wanted together: one entry of the cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nanoloom.binary.archive import archive_of, members_of
from nanoloom.cache import Cache


def kept_together(
    name: str, cache: Cache, make: Callable[[Path], list[bytes]]
) -> list[bytes]:
    """The objects under this name; made in a folder where the cache has none."""
    entry = cache.get(name)
    if entry is not None:
        return members_of(entry)
    made = cache.in_draft(make)
    cache.put(name, archive_of(made))
    return made
