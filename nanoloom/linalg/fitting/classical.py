"""Whether the attributes of classical models fit together and to their inputs."""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.linalg.builder.input_checks import at_least
from nanoloom.linalg.builder.node import Node

# Lists of nodes that may be left out or empty
FREE = ("nodes_hitrates", "nodes_missing_value_tracks_true")


def require_rows(node: Node) -> None:
    """Rows of features, or one row."""
    x = node.input(0)
    if x.rank not in (1, 2):
        raise node.invalid(f"its input is {list(x.shape)}, expected [rows, features]")


def require_features(node: Node) -> None:
    """Features along the last axis."""
    if not node.input(0).rank:
        raise node.invalid("its input is one number, expected features")


def categories(node: Node) -> None:
    """Every category has a place of its own."""
    given = node.ints("cats_int64s")
    if len(set(given)) < len(given):
        raise node.invalid("its categories are not all different")


def columns(*prefixes: str) -> Callable[[Node], None]:
    """Lists with one prefix are the columns of a table: of one length."""

    def rule(node: Node) -> None:
        require_rows(node)
        for prefix in prefixes:
            found = {
                name: len(attribute.value)
                for name, attribute in node.attributes.items()
                if name.startswith(prefix) and isinstance(attribute.value, list | tuple)
            }
            kept = {n: k for n, k in found.items() if k or n not in FREE}
            if len(set(kept.values())) > 1:
                each = ", ".join(f"{name} {count}" for name, count in kept.items())
                raise node.invalid(f"its lists have different lengths: {each}")

    return rule


def vectorizer(node: Node) -> None:
    """All inputs have as many rows, each the width that the model says."""
    given, rows = node.ints("inputdimensions"), max(1, node.output_shapes[0][0])
    for x in node.inputs:
        if x is not None and (x.size % rows or (x.rank > 1 and x.shape[0] != rows)):
            own = x.shape[0] if x.rank else 1
            raise node.invalid(f"it puts {own} rows beside {rows}")
    found = [x.size // rows for x in node.inputs if x is not None]
    if given and given != found:
        raise node.invalid(f"its inputdimensions are {given}, its inputs have {found}")


def regressor(node: Node) -> None:
    require_rows(node)
    at_least(node, "targets", 1)


def ensemble(node: Node) -> None:
    """Ways to aggregate and to transform are numbers of a list."""
    columns("nodes_", "leaf_")(node)
    if not node.ints("tree_roots"):
        raise node.invalid("it has no trees")
    for name, count in (("aggregate_function", 4), ("post_transform", 5)):
        if not 0 <= node.int(name) < count:
            raise node.invalid(f"its {name} is {node.int(name)}, not in 0..{count - 1}")


RULES: dict[str, Callable[[Node], None]] = {
    "ArrayFeatureExtractor": require_features,
    "FeatureVectorizer": vectorizer,
    "Imputer": require_features,
    "LinearClassifier": require_rows,
    "LinearRegressor": regressor,
    "Normalizer": require_features,
    "OneHotEncoder": categories,
    "Scaler": require_features,
    "TreeEnsemble": ensemble,
    "TreeEnsembleClassifier": columns("nodes_", "class_"),
    "TreeEnsembleRegressor": columns("nodes_", "target_"),
}
