"""Forks wait until no thread works in the compiler's libraries.

A child has the locks that were held when it was made, in libraries that cannot be told
of it, but not the threads that would give them back: it would wait for ever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

PATIENCE = 60.0  # seconds; after them, a child that may hang is better than a parent


class _Gate:
    """Many may work, or one may fork."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.working = 0  # threads
        self.forking = 0
        self.own = threading.local()

    def depth(self) -> int:
        """Of the calling thread in works of its own."""
        return getattr(self.own, "depth", 0)

    def enter(self) -> None:
        if self.depth() == 0:
            with self.changed:
                self.changed.wait_for(lambda: not self.forking, PATIENCE)
                self.working += 1
        self.own.depth = self.depth() + 1

    def leave(self) -> None:
        self.own.depth = self.depth() - 1
        if self.depth() == 0:
            with self.changed:
                self.working -= 1
                self.changed.notify_all()

    def before(self) -> None:
        """The lock is held from here to the end of the fork."""
        self.changed.acquire()
        self.forking += 1
        own = min(self.depth(), 1)
        self.changed.wait_for(lambda: self.working <= own, PATIENCE)

    def in_parent(self) -> None:
        self.forking -= 1
        self.changed.notify_all()
        self.changed.release()

    def in_child(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.working = min(self.depth(), 1)
        self.forking = 0


_gate = _Gate()
os.register_at_fork(
    before=_gate.before,
    after_in_parent=_gate.in_parent,
    after_in_child=_gate.in_child,
)


@contextmanager
def wait_for_compiler() -> Generator[None]:
    """Forks of other threads wait for the end of the block.

    It must not wait for another thread that enters one: that may wait for a fork.
    """
    _gate.enter()
    try:
        yield
    finally:
        _gate.leave()


@contextmanager
def between_compiler_calls() -> Generator[None]:
    """Forks need not wait for the calling thread, which is in no such library now.

    For what is done in the midst of a block of `wait_for_compiler`.
    """
    depth = _gate.depth()
    if depth:
        _gate.own.depth = 1
        _gate.leave()
    try:
        yield
    finally:
        if depth:
            _gate.enter()
            _gate.own.depth = depth
