"""Numbers for readers: times, bytes, operations."""

from __future__ import annotations


def seconds(value: float) -> str:
    """A time: 1.25 s, 3.10 ms, 12.0 us."""
    if value >= 1:
        return f"{value:.2f} s"
    if value >= 1e-3:
        return f"{value * 1e3:.2f} ms"
    return f"{value * 1e6:.1f} us"


def size(count: float) -> str:
    """Bytes: 1.5 MiB, 12 B."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def amount(count: float, unit: str) -> str:
    """Operations, or of them a second: 10.7 Mop, 104 Gop/s."""
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {prefix}{unit}"
    return f"{count:.0f} {unit}"


def percent(value: float | None) -> str:
    """Of one; "" for what is not known."""
    return "" if value is None else f"{value:.0%}"
