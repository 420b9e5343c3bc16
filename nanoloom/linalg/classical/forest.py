"""Decision trees as tables, whichever attributes a model keeps them in.

Every node and leaf is a row; a leaf's branches lead to itself, so that walking a tree
is the same step repeated as often as the deepest tree is deep.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Array

MODES = {
    "BRANCH_LEQ": 0, "BRANCH_LT": 1, "BRANCH_GTE": 2, "BRANCH_GT": 3, "BRANCH_EQ": 4,
    "BRANCH_NEQ": 5, "BRANCH_MEMBER": 6, "LEAF": 7,
}  # fmt: skip
LEAF, MEMBER = MODES["LEAF"], MODES["BRANCH_MEMBER"]


@dataclass(frozen=True)
class Forest:
    """features, thresholds, modes, yes, no, missing: [rows]; roots: [trees].

    members: [rows, most members], filled up with NaN.  weights: [rows, targets], zero
    where a row says nothing about a target; given: the same shape, where it does.
    """

    features: Array
    thresholds: Array
    modes: Array
    yes: Array
    no: Array
    missing: Array
    roots: Array
    members: Array
    weights: Array
    given: Array

    def depth(self) -> int | None:
        """Steps from a root to the deepest leaf; None if branches lead in circles."""
        seen, reached = 0, np.unique(self.roots)
        while (self.modes[reached] != LEAF).any():
            seen += 1
            if seen > len(self.modes):
                return None
            inner = reached[self.modes[reached] != LEAF]
            reached = np.unique(np.concatenate([self.yes[inner], self.no[inner]]))
        return seen


def votes(
    rows: Array, targets: Array, weights: Array, shape: tuple[int, int]
) -> tuple[Array, Array]:
    """Weights of several votes added into tables [rows, targets]."""
    table, given = np.zeros(shape, weights.dtype), np.zeros(shape, np.bool_)
    np.add.at(table, (rows, targets), weights)
    given[rows, targets] = True
    return table, given


def numbers(node: Node, name: str, dtype: np.dtype) -> Array:
    """A list of numbers, or the tensor that may stand in its place."""
    tensor = node.array(f"{name}_as_tensor")
    return (np.array(node.floats(name)) if tensor is None else tensor).astype(dtype)


def classic(node: Node, votes_of: str, targets: int, dtype: np.dtype) -> Forest:
    """TreeEnsembleRegressor ("target") and TreeEnsembleClassifier ("class")."""
    trees, ids = node.ints("nodes_treeids"), node.ints("nodes_nodeids")
    places = {pair: row for row, pair in enumerate(zip(trees, ids, strict=True))}
    names = node.strings("nodes_modes")
    unknown = [name for name in names if name not in MODES]
    if unknown:
        raise node.unsupported(f"its tree mode {unknown[0]} is not known")
    modes = np.array([MODES[name] for name in names])
    count = len(modes)

    def branch(attribute: str) -> Array:
        inner = zip(trees, node.ints(attribute), modes, strict=True)
        found = [
            row if mode == LEAF else places.get((tree, child), -1)
            for row, (tree, child, mode) in enumerate(inner)
        ]
        return np.array(found)

    pairs = zip(node.ints(f"{votes_of}_treeids"), node.ints(f"{votes_of}_nodeids"),
                strict=True)  # fmt: skip
    rows = np.array([places.get(pair, -1) for pair in pairs], np.int64)
    chosen = np.array(node.ints(f"{votes_of}_ids"), np.int64)
    check(node, rows, count)
    check(node, chosen, targets)
    weights = numbers(node, f"{votes_of}_weights", dtype)
    table, given = votes(rows, chosen, weights, (count, targets))
    roots = [trees.index(tree) for tree in sorted(set(trees))]
    missing = node.ints("nodes_missing_value_tracks_true") or [0] * count
    return checked(node, Forest(
        np.where(modes == LEAF, 0, node.ints("nodes_featureids")),
        numbers(node, "nodes_values", dtype), modes,
        branch("nodes_truenodeids"), branch("nodes_falsenodeids"),
        np.array(missing, np.bool_), np.array(roots), np.zeros((count, 0), dtype),
        table, given,
    ))  # fmt: skip


def modern(node: Node, dtype: np.dtype) -> Forest:
    """TreeEnsemble: interior nodes first, then the leaves as rows of their own."""
    modes = node.array("nodes_modes")
    splits, weights = node.array("nodes_splits"), node.array("leaf_weights")
    assert modes is not None and splits is not None and weights is not None
    inner, leaves = modes.size, weights.size
    count, own = inner + leaves, np.arange(inner, inner + leaves)

    def branch(side: str) -> Array:
        places = np.array(node.ints(f"nodes_{side}nodeids"))
        leaf = np.array(node.ints(f"nodes_{side}leafs"), np.bool_)
        return np.concatenate([np.where(leaf, places + inner, places), own])

    def filled(values: Array, other: float) -> Array:
        return np.concatenate([values, np.full(leaves, other)])

    targets = np.array(node.ints("leaf_targetids"), np.int64)
    check(node, targets, node.int("n_targets", 1))
    shape = (count, node.int("n_targets", 1))
    table, given = votes(own, targets, weights.astype(dtype), shape)
    missing = node.ints("nodes_missing_value_tracks_true") or [0] * inner
    return checked(node, Forest(
        filled(np.array(node.ints("nodes_featureids")), 0).astype(np.int64),
        filled(splits, 0).astype(dtype), filled(modes, LEAF).astype(np.int64),
        branch("true"), branch("false"), filled(np.array(missing), 0).astype(np.bool_),
        np.array(node.ints("tree_roots")), members(node, modes, count, dtype),
        table, given,
    ))  # fmt: skip


def members(node: Node, modes: Array, count: int, dtype: np.dtype) -> Array:
    """The sets of membership nodes, which the model has one after the other."""
    values = node.array("membership_values")
    flat = np.zeros(0, dtype) if values is None else values.reshape(-1)
    sets = np.split(flat, np.flatnonzero(np.isnan(flat)) + 1)
    parts = [part[~np.isnan(part)] for part in sets]
    most = max((part.size for part in parts), default=0)
    table = np.full((count, most), np.nan, dtype)
    for row, part in zip(np.flatnonzero(modes == MEMBER), parts, strict=False):
        table[row, : part.size] = part
    return table


def check(node: Node, places: Array, limit: int) -> None:
    """Numbers of rows, targets or features must be ones that there are."""
    if places.size and (places.min() < 0 or places.max() >= limit):
        wrong = places.min() if places.min() < 0 else places.max()
        raise node.unsupported(
            f"its trees name number {wrong} of {limit} nodes, targets or features",
            "the model is damaged",
        )


def checked(node: Node, forest: Forest) -> Forest:
    """A forest whose every number leads somewhere."""
    for places in (forest.yes, forest.no, forest.roots):
        check(node, places, len(forest.modes))
    check(node, forest.features, node.input(0).shape[-1])
    return forest
