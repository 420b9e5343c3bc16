"""How a target counts the ones of numbers in a vector."""

from __future__ import annotations

from nanoloom.target.facts import Target


def counts_words(target: Target) -> bool:
    """Whether an instruction counts those of 32 bits (vpopcntd)."""
    return target.has("avx512vpopcntdq")


def counts_at_once(target: Target) -> bool:
    """Whether one does for words or bytes: cnt, of bytes, with NEON."""
    return counts_words(target) or target.has("neon")
