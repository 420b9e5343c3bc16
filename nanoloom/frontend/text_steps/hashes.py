"""MurmurHash3 of 32 bits, of many texts at once (Appleby's x86_32 variant)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint32]]
FIRST, SECOND, ADDED = (np.uint32(x) for x in (0xCC9E2D51, 0x1B873593, 0xE6546B64))
FINAL = ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1))


def murmur_hashes(texts: Sequence[bytes], seed: int) -> Words:
    """One u32 for each text, in order."""
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    made, counts = np.empty(len(texts), np.uint32), -(-sizes // 4)
    for count in np.unique(counts):  # those of as many words at once
        places = np.flatnonzero(counts == count)
        padded = b"".join([texts[int(at)].ljust(4 * count, b"\0") for at in places])
        words = np.frombuffer(padded, "<u4").reshape(len(places), count)
        made[places] = hashes_of(words, sizes[places], seed % 2**32)
    return made


def hashes_of(words: Words, sizes: np.ndarray, seed: int) -> Words:
    """words: [texts, n], where n - 1 of each are whole.  sizes: in bytes."""
    state, last = np.full(len(words), seed, np.uint32), words.shape[1] - 1
    for place in range(words.shape[1]):
        mixed = rotated(words[:, place] * FIRST, 15) * SECOND
        whole = rotated(state ^ mixed, 13) * np.uint32(5) + ADDED
        is_part = (place == last) & (sizes % 4 > 0)
        state = np.where(is_part, state ^ mixed, whole)
    state = state ^ sizes.astype(np.uint32)
    for shift, factor in FINAL:
        state = (state ^ (state >> np.uint32(shift))) * np.uint32(factor)
    return state


def rotated(x: Words, by: int) -> Words:
    return (x << np.uint32(by)) | (x >> np.uint32(32 - by))
