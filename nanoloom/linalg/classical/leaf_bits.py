"""Which leaf a row reaches, by comparing it with all nodes of a tree: QuickScorer
(Lucchese et al., SIGIR 2015), a row a lane (RapidScorer, Ye et al., KDD 2018).

At most 32 leaves that follow each other are the bits of a word.  A node that a row
turns left at clears the bits to its right, and the other way round: of the words of a
tree one keeps one bit, the others none.  No step waits for the one in front of it, and
what all rows do is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nanoloom.linalg.builder.tensor import Array
from nanoloom.linalg.classical.forest import LEAF, Forest

BITS, ALL = 32, (1 << 32) - 1
# A step of a row down a tree takes as long as two comparisons of a row, and as two of
# this many rows where they are in vectors, as measured with AVX-512 and two threads.
A_STEP, LANES = 2, 6


@dataclass(frozen=True)
class Word:
    """At most BITS leaves of a tree, by their rows of the forest.

    nodes: rows of those that clear bits of it, each with the bits that stay where its
    test holds and where it does not.
    """

    leaves: list[int]
    nodes: list[tuple[int, int, int]]


@dataclass(frozen=True)
class LeafBits:
    """Words of one length, for each target as many, or all for all targets.

    forest: its nodes in the order of words, [words * nodes] rows.  taken, refused: the
    bits that stay, int32 of the same length; taken is None where it clears none: the
    lowest bit of a word counts.  leaves: [words, BITS + 1], rows of the whole forest,
    -1 where a bit is of none; the last one is for a word without a bit.
    nodes: of a word.  groups: 1, or the number of targets.
    """

    forest: Forest
    taken: Array | None
    refused: Array
    leaves: Array
    nodes: int
    groups: int


@dataclass(frozen=True)
class Split:
    """A node over leaves [begin, end) of a tree; those before middle where it holds."""

    node: int
    begin: int
    middle: int
    end: int


def in_order(forest: Forest, root: int) -> tuple[list[Split], list[int]]:
    """The inner nodes of a tree and its leaves, from the left to the right."""
    splits: list[Split] = []
    leaves: list[int] = []
    waiting: list[tuple[int, int, int]] = [(root, 0, 0)]  # node, visits, first leaf
    middles: list[int] = []
    while waiting:
        node, visits, begin = waiting.pop()
        if forest.modes[node] == LEAF:
            leaves.append(node)
        elif visits == 0:
            waiting += [(node, 1, len(leaves)), (int(forest.yes[node]), 0, 0)]
        elif visits == 1:
            middles.append(len(leaves))
            waiting += [(node, 2, begin), (int(forest.no[node]), 0, 0)]
        else:
            splits.append(Split(node, begin, middles.pop(), len(leaves)))
    return splits, leaves


def bits(begin: int, end: int, first: int, count: int) -> int:
    """Leaves [begin, end) in the word of leaves [first, first + count)."""
    begin, end = max(begin - first, 0), min(end - first, count)
    return ((1 << end) - 1) & ~((1 << begin) - 1) if end > begin else 0


def words_of(forest: Forest) -> list[Word]:
    """Of every tree in turn, its leaves in words of nearly the same length."""
    words: list[Word] = []
    for root in forest.roots:
        splits, leaves = in_order(forest, int(root))
        length = -(-len(leaves) // -(-len(leaves) // BITS))
        for first in range(0, len(leaves), length):
            part = leaves[first : first + length]
            own = first, len(part)
            nodes = [
                (s.node, ALL & ~bits(s.middle, s.end, *own),
                 ALL & ~bits(s.begin, s.middle, *own))
                for s in splits
                if s.begin < first + len(part) and s.end > first
            ]  # fmt: skip
            words.append(Word(part, nodes))
    return words


def by_target(words: list[Word], forest: Forest) -> list[list[Word]]:
    """The words that vote for each target, where each votes for one; else all in one.

    Not where most of the words that make the groups alike would stand for nothing.
    """
    votes = np.array([forest.given[word.leaves].any(axis=0) for word in words])
    if (votes.sum(axis=1) > 1).any():
        return [words]
    groups = [[words[w] for w in np.flatnonzero(column)] for column in votes.T]
    most = max(len(group) for group in groups)
    return groups if 0 < most * len(groups) <= 2 * len(words) else [words]


def leaf_bits(forest: Forest, steps: int, rows: int) -> LeafBits | None:
    """The forest as words; None where walking takes less, so many steps a row."""
    walked = A_STEP * steps * rows // max(-(-rows // LANES), 1)
    visited = nodes_visited(forest)
    if visited is None or not 0 < visited <= walked:
        return None
    words = words_of(forest)
    single = len(words) == len(forest.roots)
    groups = by_target(words, forest)
    most, count = max(len(g) for g in groups), max(len(w.nodes) for w in words)
    if most * len(groups) * count > walked:
        return None
    none = Word([], [])
    alike = [w for g in groups for w in g + [none] * (most - len(g))]
    some_leaf = int(np.flatnonzero(forest.modes == LEAF)[0])
    rest = (some_leaf, ALL, ALL)
    nodes = [n for w in alike for n in w.nodes + [rest] * (count - len(w.nodes))]
    places, taken, refused = np.array(nodes, np.int64).reshape(-1, 3).T
    leaves = np.full((len(alike), BITS + 1), -1)
    for number, each in enumerate(alike):
        leaves[number, : len(each.leaves)] = each.leaves
    return LeafBits(
        replace(
            forest, features=forest.features[places], modes=forest.modes[places],
            thresholds=forest.thresholds[places], missing=forest.missing[places],
            members=forest.members[places],
        ),
        None if single else as_words(taken), as_words(refused),
        leaves, count, len(groups),
    )  # fmt: skip


def as_words(values: Array) -> Array:
    return values.astype(np.uint32).view(np.int32)


def nodes_visited(forest: Forest) -> int | None:
    """Inner nodes of all trees, counted once for each way to them; None for circles."""
    counts: dict[int, int] = {}
    waiting, under_way = [int(r) for r in forest.roots], set[int]()
    while waiting:
        node = waiting[-1]
        children = int(forest.yes[node]), int(forest.no[node])
        if node in counts or forest.modes[node] == LEAF:
            counts.setdefault(node, 0)
            waiting.pop()
        elif all(child in counts for child in children):
            counts[node] = 1 + sum(counts[child] for child in children)
            waiting.pop()
        elif node in under_way:
            return None
        else:
            under_way.add(node)
            waiting += [child for child in children if child not in counts]
    return sum(counts[int(root)] for root in forest.roots)
