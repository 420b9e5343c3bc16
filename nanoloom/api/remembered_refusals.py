"""Why samples of a model do not do, in the cache for the next process."""

from __future__ import annotations

from nanoloom.cache import Cache, key
from nanoloom.dynamic.dynamic_refusal import Others

# In front of a reason: which others may be tried.
MARKS = {b"=": Others.NONE, b"+": Others.ANY, b"*": Others.OF_IMAGES}


def remember(cache: Cache, binding: str, others: Others, reason: str) -> None:
    """Write down for a binding to samples, by its name, what stops it."""
    mark = next(mark for mark, each in MARKS.items() if each is others)
    cache.put(key("refused", binding), mark + reason.encode())


def remembered(cache: Cache, binding: str) -> tuple[Others, str] | None:
    """Which others may do, and the reason; None where nothing is known to stop it."""
    known = cache.get(key("refused", binding))
    return None if known is None else (MARKS[known[:1]], known[1:].decode())
