"""Waiting for what takes a moment where nothing is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

LONG = 60.0  # seconds


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + LONG
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def is_alive(number: int) -> bool:
    """Whether a process is there that still does something."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
