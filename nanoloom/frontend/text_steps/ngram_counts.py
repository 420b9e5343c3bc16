"""How often each n-gram of a pool occurs in rows of words, all rows at once.

Words become numbers, and n-grams numbers of pairs: of a shorter n-gram and a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
FEW = 8  # pools that are remembered


@dataclass(frozen=True, eq=False)
class Grams:
    """The n-grams of one length.

    tables: sorted numbers of the pairs, a table for each word but the first.
    places: of what the last table tells, in the result.
    """

    tables: tuple[Array, ...]
    places: Array

    def found(self, words: Array, distance: int, count: int) -> Array:
        """Places [rows, positions] of n-grams whose words stand so far apart; or -1.

        words: numbers [rows, columns] below `count`, -1 for a word of no n-gram.
        """
        reach = len(self.tables) * distance
        numbers = words[:, : words.shape[1] - reach]
        for step, table in enumerate(self.tables, 1):
            begin = step * distance
            others = words[:, begin : begin + numbers.shape[1]]
            numbers = numbered(table, numbers, others, count)
        return np.where(numbers >= 0, self.places[numbers], -1)


def numbered(table: Array, first: Array, second: Array, count: int) -> Array:
    """Where each pair of numbers stands in a table of pairs; -1 for others."""
    pairs = np.where((first >= 0) & (second >= 0), first * count + second, -1)
    places = np.minimum(np.searchsorted(table, pairs), len(table) - 1)
    return np.where(table[places] == pairs, places, -1)


@dataclass(frozen=True, eq=False)
class Pool:
    """words: their numbers.  grams: by length."""

    words: Mapping[str, int]
    grams: Mapping[int, Grams]

    @property
    def count(self) -> int:
        return len(self.words)

    def numbers(self, rows: Array) -> Array:
        known, texts = self.words.get, rows.reshape(-1).tolist()
        made = np.fromiter(map(known, texts, repeat(-1)), np.int64, len(texts))
        return made.reshape(rows.shape)


@lru_cache(FEW)
def pool_of(
    texts: tuple[str, ...], starts: tuple[int, ...], places: tuple[int, ...]
) -> Pool:
    """texts: n-grams side by side.  starts: where those of 1, 2, ... words begin.

    places: of each n-gram in the result.
    """
    words = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    numbers = np.array([words[text] for text in texts], np.int64)
    grams: dict[int, Grams] = {}
    begin = 0
    for n, first in enumerate(starts, 1):
        last = starts[n] if n < len(starts) else len(texts)
        rows = numbers[first:last].reshape(-1, n)
        own = np.array(places[begin : begin + len(rows)], np.int64)
        begin += len(rows)
        if len(rows):
            grams[n] = grams_of(rows, own, len(words))
    return Pool(words, grams)


def grams_of(rows: Array, places: Array, count: int) -> Grams:
    tables: list[Array] = []
    numbers = rows[:, 0]
    for column in rows.T[1:]:
        table, numbers = np.unique(numbers * count + column, return_inverse=True)
        tables.append(table)
    made = np.full(int(numbers.max()) + 1 if tables else count, -1, np.int64)
    made[numbers] = places  # of one that is there twice, the last counts
    return Grams(tuple(tables), made)


def ngram_counts(
    pool: Pool, rows: Array, lengths: Sequence[int], skips: int, size: int
) -> Array:
    """f32 [rows, size].  skips: how many words may lie between two of an n-gram."""
    words = pool.numbers(rows)
    counts = np.zeros(len(rows) * size, np.float32)
    base = np.arange(len(rows))[:, None] * size
    for n in lengths:
        grams = pool.grams.get(n)
        for distance in range(1, skips + 2 if n > 1 else 2):
            if grams is None or (n - 1) * distance >= words.shape[1]:
                continue
            found = grams.found(words, distance, pool.count)
            at = (found + base)[found >= 0]
            np.add.at(counts, at, np.float32(1))
    return counts.reshape(len(rows), size)
