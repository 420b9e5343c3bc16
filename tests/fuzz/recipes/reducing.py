"""Operators that combine the elements along axes."""

from __future__ import annotations

import numpy as np

from tests.fuzz.recipes.shaping import axes_of, axis_of
from tests.fuzz.sketch import FLOATS, I32, I64, Sketch
from tests.fuzz.words import Recipe, words

GROWING = words("ReduceL2 ReduceProd ReduceSumSquare")


def is_small(array: np.ndarray, op: str) -> bool:
    """Whether sums of squares stay integers: where they end, all differ."""
    if op not in GROWING or array.dtype.kind not in "iu" or not array.size:
        return True
    return int(array.max()) < 50 and int(array.min()) > -50


def reduced(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), range(6), lambda a: is_small(a, op))
    rank = s[x].ndim
    keep = s.pick([None, 0, 1])
    axes = axes_of(s, rank) if rank else []
    given = bool(axes) and s.chance(0.8)
    nothing = s.pick([None, 0, 1])
    if given:
        inputs = [x, s.numbers(*axes)]
    else:
        empty = s.opset >= (13 if op == "ReduceSum" else 18) and s.chance(0.3)
        inputs = [x, s.numbers()] if empty else [x]
    s.add(op, inputs, keepdims=keep, noop_with_empty_axes=nothing)


def along(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), range(1, 6))
    s.add(op, [x], axis=s.pick([None, axis_of(s, s[x].ndim)]))


def cumulative(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), range(1, 5))
    axis = s.scalar(axis_of(s, s[x].ndim), s.pick([I64, I32]))
    ways = {"exclusive": s.pick([None, 1]), "reverse": s.pick([None, 1])}
    s.add(op, [x, axis], **ways)


def lp_normalization(s: Sketch, op: str) -> None:
    x = s.operand(FLOATS[:2], range(1, 5))
    s.add(op, [x], axis=axis_of(s, s[x].ndim), p=s.pick([1, 2]))


RECIPES: dict[str, Recipe] = {
    **dict.fromkeys(
        words("""
            ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
            ReduceMin ReduceProd ReduceSum ReduceSumSquare
        """),
        reduced,
    ),
    **dict.fromkeys(words("Hardmax LogSoftmax Softmax"), along),
    **dict.fromkeys(words("CumProd CumSum"), cumulative),
    "LpNormalization": lp_normalization,
}
