"""What was used lately, within a bound; the rest is let go."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Values by key: at most so many, and so many bytes, but always the last one.

    Where a new one is too much, those go that were used longest ago.  Going means that
    nothing here refers to them: who still works with one keeps it.
    """

    def __init__(
        self, most: int, most_bytes: int, size: Callable[[Key, Value], int]
    ) -> None:
        """size: bytes of an entry, asked again whenever a new one comes."""
        self._most, self._most_bytes, self._size = most, most_bytes, size
        self._entries: dict[Key, tuple[Value, list[int]]] = {}  # and the last use
        self._uses = itertools.count()
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Value | None:
        """The value, which is used now; None if there is none (any more)."""
        if (found := self._entries.get(key)) is None:
            return None
        value, last = found
        last[0] = next(self._uses)
        return value

    def values(self) -> list[Value]:
        """All that is kept; none is used by that."""
        return [value for value, _ in list(self._entries.values())]

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, in place of another one under its key."""
        with self._changing:
            self._entries[key] = value, [next(self._uses)]
            last_first = sorted(self._entries.items(), key=lambda x: -x[1][1][0])
            taken = 0
            for number, (other, (kept, _)) in enumerate(last_first):
                taken += self._size(other, kept)
                if number >= self._most or (number and taken > self._most_bytes):
                    del self._entries[other]
