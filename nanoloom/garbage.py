"""Garbage is looked for seldom while a model is compiled.

Its graph and its kernels stay to the end, and looking through them again and again
took a tenth of a compilation's time.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

COLLECTED = 100_000  # new objects between two looks; 700 are Python's own number


class _State:
    """Compilations that are under way, and the thresholds before the first of them."""

    lock = threading.Lock()
    inside = 0
    before = gc.get_threshold()


@contextmanager
def seldom_collected() -> Generator[None]:
    """Look less often inside the `with`, in any thread; then as often as before.

    Who has turned collecting off, or looks less often, goes on so.
    """
    with _State.lock:
        if not _State.inside:
            _State.before = gc.get_threshold()
            if 0 < _State.before[0] < COLLECTED:
                gc.set_threshold(COLLECTED, *_State.before[1:])
        _State.inside += 1
    try:
        yield
    finally:
        with _State.lock:
            _State.inside -= 1
            if not _State.inside:
                gc.set_threshold(*_State.before)


def _in_child() -> None:
    """A fork has the one thread that forked: no other one gives the lock back."""
    _State.lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)
