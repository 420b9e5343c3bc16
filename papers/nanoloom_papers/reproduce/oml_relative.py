"""Scores of relative places, as DeBERTa adds them to those of contents.

    all[i, j] = q[i] k[j] + q[i] K[place(i - j)] + k[j] Q[place(i - j)]

with K and Q the keys and queries of places, projected by the weights of the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

Array = np.ndarray[Any, np.dtype[Any]]
node = helper.make_node


def places_of(rows: int, span: int, heads: int) -> dict[str, Array]:
    """For each head: the place of a query and a key, and of a key and a query."""
    rises = np.arange(rows)[:, None] - np.arange(rows)[None, :]
    forward, back = (
        np.clip(sign * rises + span, 0, 2 * span - 1).astype(np.int64)
        for sign in (1, -1)
    )
    shape = (heads, rows, rows)
    return {
        "forward": np.broadcast_to(forward, shape).copy(),
        "back": np.broadcast_to(back, shape).copy(),
    }


def content_and_places() -> list[onnx.NodeProto]:
    """From q and the turned k to `all`, three terms a score."""
    nodes: list[onnx.NodeProto] = [node("MatMul", ["q", "k"], ["contents"])]
    for name in "kq":
        nodes += [
            node("MatMul", ["places", f"w{name}"], [f"{name}_places_product"]),
            node("Add", [f"{name}_places_product", f"b{name}"], [f"{name}_places"]),
            node("Reshape", [f"{name}_places", "by_heads"], [f"{name}_places_heads"]),
            node("Transpose", [f"{name}_places_heads"], [f"{name}_p"], perm=[1, 2, 0]),
        ]
    return [
        *nodes,
        node("MatMul", ["q", "k_p"], ["to_places"]),
        node("GatherElements", ["to_places", "forward"], ["first"], axis=2),
        node("Transpose", ["k"], ["k_rows"], perm=[0, 2, 1]),
        node("MatMul", ["k_rows", "q_p"], ["of_places"]),
        node("GatherElements", ["of_places", "back"], ["keys_first"], axis=2),
        node("Transpose", ["keys_first"], ["second"], perm=[0, 2, 1]),
        node("Add", ["first", "second"], ["both"]),
        node("Add", ["contents", "both"], ["all"]),
    ]
