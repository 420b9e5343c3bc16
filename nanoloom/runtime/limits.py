"""What may end a run early: a deadline, and a word from another thread."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

from nanoloom.errors import Cancelled, Error, TimedOut
from nanoloom.runtime import layout

CANCELLED, LATE = 13, 14  # enum nanoloom_status
NO_TIME = 1  # of CLOCK_MONOTONIC, which is over long since
MOST_SECONDS = 1e9
NUMBERS = int, float, np.integer, np.floating


class Cancellation:
    """What `program.run(inputs, cancel=stop)` takes: `stop.cancel()`, from any thread,
    ends all calls that have it.  It stays so: later calls take a new one.
    """

    def __init__(self) -> None:
        self._word = ctypes.c_int32(0)
        self.address = ctypes.addressof(self._word)

    def cancel(self) -> None:
        """End the calls that are under way with this, and let none begin."""
        self._word.value = 1

    @property
    def is_cancelled(self) -> bool:
        return bool(self._word.value)

    def __repr__(self) -> str:
        return f"<nanoloom.Cancellation: {'done' if self.is_cancelled else 'not yet'}>"


class Limits:
    """Of one call: what its runs look at, at `address`.

    timeout: seconds from now on.  Raises Error for what is no number of seconds.
    """

    @classmethod
    def of(cls, timeout: float | None, cancel: Cancellation | None) -> Limits | None:
        """None for a call without any."""
        free = timeout is None and cancel is None
        return None if free else cls(timeout, cancel)

    def __init__(self, timeout: float | None, cancel: Cancellation | None) -> None:
        self.timeout, self._cancel = checked_seconds(timeout), checked(cancel)
        deadline = 0
        if self.timeout is not None:
            deadline = time.monotonic_ns() + int(self.timeout * 1e9)
        where = cancel.address if cancel is not None else None
        self._struct = layout.Control(max(deadline, NO_TIME) if deadline else 0, where)
        self.address = ctypes.addressof(self._struct)

    def require(self) -> None:
        """Raise Cancelled or TimedOut if it is time to; in front of a long step."""
        if self._cancel is not None and self._cancel.is_cancelled:
            raise cancelled()
        if self._struct.deadline and time.monotonic_ns() >= self._struct.deadline:
            raise self.late()

    def late(self) -> TimedOut:
        return TimedOut(
            f"the call takes longer than its timeout, {self.timeout:g} s",
            hint="give it more time, or smaller inputs",
        )

    def failure(self, status: int) -> Error | None:
        """What a run's status means; None for one that has other reasons."""
        if status == CANCELLED:
            return cancelled()
        return self.late() if status == LATE else None


def cancelled() -> Cancelled:
    return Cancelled("the call was cancelled")


def checked_seconds(timeout: object) -> float | None:
    """None for no end, as infinity is, and what nobody waits for."""
    if timeout is None:
        return None
    if isinstance(timeout, NUMBERS) and not isinstance(timeout, bool) and timeout >= 0:
        return None if timeout > MOST_SECONDS else float(timeout)
    hint = "give seconds, 0 or more, or None"
    raise Error(f"timeout is {timeout!r}", hint=hint)


def checked(cancel: object) -> Cancellation | None:
    if cancel is None or isinstance(cancel, Cancellation):
        return cancel
    hint = "give a nanoloom.Cancellation, or None"
    raise Error(f"cancel is {cancel!r}", hint=hint)


class _Current(threading.local):
    """The limits of the call that this thread is in."""

    limits: Limits | None = None


current = _Current()
under_way: list[Limits] = []  # of all threads: where there are none nobody asks


@contextmanager
def limited(limits: Limits | None) -> Generator[None]:
    """All runs of this thread meanwhile end by these; by none for None.

    Raises Cancelled or TimedOut where it is time already.
    """
    if limits is None:
        yield
        return
    before, current.limits = current.limits, limits
    under_way.append(limits)
    try:
        limits.require()
        yield
    finally:
        under_way.remove(limits)
        current.limits = before
