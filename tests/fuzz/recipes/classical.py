"""The operators of classical models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from tests.fuzz.sketch import F32, F64, I32, I64, Sketch
from tests.fuzz.words import Recipe, words

DOMAIN = "ai.onnx.ml"
POSTS = (None, "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ",
         "BRANCH_NEQ")  # fmt: skip


def put(s: Sketch, op: str, inputs: list[str], count: int = 1, **how: Any) -> None:
    s.add(op.rpartition(".")[2], inputs, count, domain=DOMAIN, **how)


def table(s: Sketch, most: int = 9) -> str:
    """Rows of features."""
    return s.like((s.integer(1, 17), s.integer(1, most)), s.pick([F32, F32, F64, I64]))


def features(s: Sketch, op: str) -> None:
    x = s.operand([F32, I64, F64], range(1, 4), lambda a: a.shape[-1] > 0)
    size = s[x].shape[-1]
    if not size:
        x = s.fresh(s.array((3, 4), F32))
        size = 4
    put(s, op, [x, s.fresh(s.array((s.integer(1, 5),), I64, 0, size - 1))])


def threshold(s: Sketch, op: str) -> None:
    put(s, op, [table(s)], threshold=s.real(-1, 1))


def joined(s: Sketch, op: str) -> None:
    rows, dtype = s.integer(1, 9), s.pick([F32, I64, I32])
    widths = [s.integer(1, 5) for _ in range(s.integer(1, 3))]
    inputs = [s.fresh(s.array((rows, width), dtype)) for width in widths]
    put(s, op, inputs, inputdimensions=widths)


def imputed(s: Sketch, op: str) -> None:
    x = s.array((s.integer(1, 9), s.integer(1, 5)), F32)
    x.reshape(-1)[::3] = np.nan
    values = [1.5] if s.chance(0.5) else s.array((x.shape[1],), F32).tolist()
    put(s, op, [s.fresh(x)], imputed_value_floats=values,
        replaced_value_float=float("nan"))  # fmt: skip


def labels(s: Sketch, op: str) -> None:
    x = s.fresh(s.array(s.shape(s.integer(1, 2), 60), I64, 0, 9))
    keys = [1, 2, 3, 5]
    if s.chance(0.5):
        put(s, op, [x], keys_int64s=keys, values_int64s=[7, -1, 0, 4], default_int64=9)
    else:
        put(s, op, [x], keys_int64s=keys, values_floats=[0.5, 1.0, -2.0, 4.0],
            default_float=0.25)  # fmt: skip


def linear(s: Sketch, op: str) -> None:
    x = s.fresh(s.array((s.integer(1, 9), s.integer(1, 7)), F32))
    width = s[x].shape[1]
    if op.endswith("Regressor"):
        targets = s.integer(1, 4)
        put(s, op, [x], targets=targets, post_transform=s.pick(POSTS[:2]),
            coefficients=s.array((targets * width,), F32).tolist(),
            intercepts=s.array((targets,), F32).tolist())  # fmt: skip
        return
    classes = s.integer(2, 5)
    put(
        s,
        op,
        [x],
        2,
        classlabels_ints=list(range(classes)),
        coefficients=s.array((classes * width,), F32).tolist(),
        intercepts=s.array((classes,), F32).tolist(),
        multi_class=s.pick([0, 1]),
        post_transform=s.pick(POSTS),
    )


def normed(s: Sketch, op: str) -> None:
    x = s.fresh(s.array((s.integer(1, 9), s.integer(1, 7)), F32, 0.1, 4))
    put(s, op, [x], norm=s.pick(["L1", "L2", "MAX"]))


def one_of(s: Sketch, op: str) -> None:
    x = s.fresh(s.array(s.shape(s.integer(1, 2), 60), s.pick([I64, F32]), 0, 4))
    put(s, op, [s.fresh(np.round(s[x]))], cats_int64s=[0, 1, 3], zeros=1)


def scaled(s: Sketch, op: str) -> None:
    x = table(s)
    width = s[x].shape[1]
    put(s, op, [x], offset=s.array((width,), F32).tolist(),
        scale=s.array((width,), F32, 0.5, 2).tolist())  # fmt: skip


# ---- trees

COLUMNS = words("treeids nodeids featureids modes values truenodeids falsenodeids")


def forest(s: Sketch, width: int) -> dict[str, list[Any]]:
    """Full trees of random depth, as the columns of their nodes; leaves apart."""
    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    leaves: list[tuple[int, int]] = []
    for tree in range(s.integer(1, 4)):
        inner = 2 ** s.integer(1, 3) - 1
        for node in range(2 * inner + 1):
            leaf = node >= inner
            rows["treeids"].append(tree)
            rows["nodeids"].append(node)
            rows["featureids"].append(0 if leaf else s.integer(0, width - 1))
            rows["modes"].append("LEAF" if leaf else s.pick(MODES[:4]))
            rows["values"].append(0.0 if leaf else s.real(-3, 3))
            rows["truenodeids"].append(0 if leaf else 2 * node + 1)
            rows["falsenodeids"].append(0 if leaf else 2 * node + 2)
            if leaf:
                leaves.append((tree, node))
    return {f"nodes_{k}": v for k, v in rows.items()} | {"leaves": leaves}


def old_trees(s: Sketch, op: str) -> None:
    x = s.fresh(s.array((s.integer(1, 17), s.integer(1, 5)), F32))
    nodes = forest(s, s[x].shape[1])
    leaves = nodes.pop("leaves")
    if op.endswith("Regressor"):
        ways = [None, "SUM", "AVERAGE", "MIN", "MAX"]
        way = s.pick(ways)
        # What a target is that no leaf of the rows met is for, is open.
        kind, count = "target", 1 if way in ("MIN", "MAX") else s.integer(1, 3)
        more: dict[str, Any] = {"n_targets": count, "aggregate_function": way}
    else:
        # Of two classes, ONNX Runtime takes the votes for one against the other.
        kind, count = "class", s.integer(3, 5)
        more = {"classlabels_int64s": list(range(count)),
                "post_transform": s.pick(POSTS)}  # fmt: skip
    weights = {
        f"{kind}_treeids": [tree for tree, _ in leaves],
        f"{kind}_nodeids": [node for _, node in leaves],
        f"{kind}_ids": [s.integer(0, count - 1) for _ in leaves],
        f"{kind}_weights": [s.real(0, 1) for _ in leaves],
    }
    put(s, op, [x], 1 if kind == "target" else 2, **nodes, **weights, **more)


def trees(s: Sketch, op: str) -> None:
    """One tree of one split, in the columns of the newest operator."""
    dtype = s.pick([F32, F64])
    x = s.fresh(s.array((s.integer(1, 9), 2), dtype))

    def column(values: list[float]) -> onnx.TensorProto:
        return onnx.numpy_helper.from_array(np.array(values, dtype))

    put(
        s,
        op,
        [x],
        aggregate_function=s.pick([0, 1]),
        leaf_targetids=[0, 1],
        leaf_weights=column([1.5, -2.0]),
        n_targets=2,
        nodes_falseleafs=[1],
        nodes_falsenodeids=[1],
        nodes_featureids=[s.integer(0, 1)],
        nodes_modes=onnx.numpy_helper.from_array(np.array([s.integer(0, 3)], np.uint8)),
        nodes_splits=column([s.real(-2, 2)]),
        nodes_trueleafs=[1],
        nodes_truenodeids=[0],
        post_transform=0,
        tree_roots=[0],
    )


RECIPES: dict[str, Recipe] = {
    f"{DOMAIN}.{name}": recipe
    for name, recipe in {
        "ArrayFeatureExtractor": features,
        "Binarizer": threshold,
        "FeatureVectorizer": joined,
        "Imputer": imputed,
        "LabelEncoder": labels,
        "LinearClassifier": linear,
        "LinearRegressor": linear,
        "Normalizer": normed,
        "OneHotEncoder": one_of,
        "Scaler": scaled,
        "TreeEnsemble": trees,
        "TreeEnsembleClassifier": old_trees,
        "TreeEnsembleRegressor": old_trees,
    }.items()
}
