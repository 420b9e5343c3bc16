"""Leaves as bits: the one that a walk down the tree reaches keeps its bit, alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import nanoloom
from nanoloom.cache import Cache
from nanoloom.linalg.classical.forest import LEAF, MODES, Forest
from nanoloom.linalg.classical.leaf_bits import BITS, LeafBits, leaf_bits, words_of
from nanoloom.linalg.classical.walk import steps_down
from tests.linalg.classical.test_classical import EPS
from tests.linalg.classical.test_trees import reference

Array = np.ndarray[Any, np.dtype[Any]]
COLUMNS = 5


def grown(r: np.random.Generator, trees: int, most: int, targets: int) -> Forest:
    """Trees of 1 to `most` leaves, one of which is split at a time, whichever it is."""
    yes: list[int] = []
    no: list[int] = []
    roots: list[int] = []
    for _ in range(trees):
        roots.append(len(yes))
        ends = [len(yes)]
        yes.append(len(yes))
        no.append(len(no))
        for _ in range(r.integers(0, most)):
            node = ends.pop(r.integers(len(ends)))
            yes[node], no[node] = len(yes), len(yes) + 1
            ends += [len(yes), len(yes) + 1]
            yes += ends[-2:]
            no += ends[-2:]
    count = len(yes)
    is_leaf = np.array(yes) == np.arange(count)
    owner = np.searchsorted(roots, np.arange(count), "right") - 1
    given = is_leaf[:, None] & (owner[:, None] % targets == np.arange(targets))
    return Forest(
        r.integers(0, COLUMNS, count), r.integers(-2, 3, count).astype(np.float32),
        np.where(is_leaf, LEAF, MODES["BRANCH_LEQ"]), np.array(yes), np.array(no),
        ~is_leaf & (r.integers(0, 2, count) > 0), np.array(roots),
        np.zeros((count, 0)), given * r.integers(1, 64, count)[:, None] / 8, given,
    )  # fmt: skip


def features(r: np.random.Generator, rows: int) -> Array:
    x = r.integers(-3, 4, (rows, COLUMNS)).astype(np.float32)
    x[::3, r.integers(COLUMNS)] = np.nan
    x[::4, r.integers(COLUMNS)] = -np.inf
    return x


def holds(forest: Forest, x: Array) -> Array:
    """[rows, nodes]"""
    values = x[:, forest.features]
    return (values <= forest.thresholds) | (np.isnan(values) & forest.missing)


def walked(forest: Forest, x: Array) -> list[list[int]]:
    """Of each row, the leaf of each tree."""
    tests, found = holds(forest, x), []
    for row in range(len(x)):
        found.append([])
        for root in forest.roots:
            node = int(root)
            while forest.modes[node] != LEAF:
                side = forest.yes if tests[row, node] else forest.no
                node = int(side[node])
            found[-1].append(node)
    return found


def reached(words: LeafBits, x: Array) -> list[list[int]]:
    """The same of the words."""
    taken = np.full_like(words.refused, -1) if words.taken is None else words.taken
    bits = np.where(holds(words.forest, x), taken, words.refused)
    kept = np.bitwise_and.reduce(bits.reshape(len(x), -1, words.nodes), axis=2)
    lowest = [[(int(w) & -int(w)).bit_length() - 1 for w in row] for row in kept]
    places = np.where(kept == 0, BITS, lowest)
    leaves = words.leaves[np.arange(len(words.leaves)), places]
    return [[int(leaf) for leaf in row if leaf >= 0] for row in leaves]


@pytest.mark.parametrize("seed", range(12))
def test_the_bit_of_the_leaf_is_kept_alone(seed: int) -> None:
    r = np.random.default_rng(seed)
    forest = grown(r, 4, (6, 40, 200)[seed % 3], 2)
    x = features(r, 23)
    words = leaf_bits(forest, 1000, 1)
    assert words is not None and all(len(w.leaves) <= BITS for w in words_of(forest))
    right = [sorted(row) for row in walked(forest, x)]
    assert [sorted(row) for row in reached(words, x)] == right
    wrong = replace(words, refused=np.full_like(words.refused, -1))
    assert [sorted(row) for row in reached(wrong, x)] != right


def test_large_trees_are_walked() -> None:
    forest = grown(np.random.default_rng(0), 3, 300, 1)
    assert leaf_bits(forest, 8, 1) is None
    assert leaf_bits(replace(forest, yes=forest.no), 1000, 1) is not None
    circle = np.where(forest.modes == LEAF, forest.yes, forest.roots[0])
    assert leaf_bits(replace(forest, yes=circle), 1000, 1) is None


def attributes(forest: Forest, targets: int) -> dict[str, Any]:
    trees = np.searchsorted(forest.roots, np.arange(len(forest.yes)), "right") - 1
    names = {number: name for name, number in MODES.items()}
    leaf, target = np.nonzero(forest.given)
    return {
        "n_targets": targets,
        "nodes_treeids": trees.tolist(),
        "nodes_nodeids": list(range(len(trees))),
        "nodes_modes": [names[mode] for mode in forest.modes],
        "nodes_featureids": forest.features.tolist(),
        "nodes_values": forest.thresholds.tolist(),
        "nodes_truenodeids": forest.yes.tolist(),
        "nodes_falsenodeids": forest.no.tolist(),
        "nodes_missing_value_tracks_true": forest.missing.astype(int).tolist(),
        "target_treeids": trees[leaf].tolist(),
        "target_nodeids": leaf.tolist(),
        "target_ids": target.tolist(),
        "target_weights": forest.weights[leaf, target].tolist(),
    }


@pytest.mark.parametrize(
    ("leaves", "targets", "how"), [(20, 3, "SUM"), (70, 1, "MIN"), (900, 1, "SUM")]
)
def test_any_number_of_rows(
    leaves: int, targets: int, how: str, tmp_path: Path
) -> None:
    """Few rows walk, many are compared: one program says which.  Down large trees all
    walk."""
    r = np.random.default_rng(leaves)
    forest = grown(r, 9, leaves, targets)
    words = leaf_bits(forest, int(steps_down(forest).sum()), 64)
    assert (words is None) == (leaves == 900)
    said: dict[str, Any] = attributes(forest, targets) | {"aggregate_function": how}
    op, domain = "TreeEnsembleRegressor", "ai.onnx.ml"
    node = helper.make_node(op, ["x"], ["y"], domain=domain, **said)
    shape = onnx.TensorProto.FLOAT, ["n", COLUMNS]
    x = helper.make_tensor_value_info("x", *shape)
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", targets])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(domain, 3)]
    graph = helper.make_graph([node], "trees", [x], [y])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    bound = 9 * EPS * 9 * 8  # nine votes of 8 at most, each added once
    for rows in (1, 4, 5, 37, 64):
        given = features(r, rows)
        got, right = program({"x": given})["y"], reference(op, [given], **said)[0]
        assert (abs(got - right) <= bound).all() and abs(right).max() > bound
    assert not program.open.reason
