"""Operators that look elements up, put them somewhere, or sort them."""

from __future__ import annotations

import math

import numpy as np

from tests.fuzz.recipes.shaping import axis_of
from tests.fuzz.sketch import BOOL, F32, I32, I64, Sketch
from tests.fuzz.words import Recipe, words


def has_elements(array: np.ndarray) -> bool:
    return array.size > 0


def indices(s: Sketch, shape: tuple[int, ...], size: int, *, low: bool = True) -> str:
    """Numbers of places on an axis, from either end if `low`."""
    dtype = s.pick([I64, I64, I32])
    array = s.array(shape, dtype, -size if low else 0, size - 1)
    return s.fresh(array, parameter=s.chance(0.3))


def operand_with_elements(s: Sketch, op: str) -> str:
    x = s.operand(s.types(op), range(1, 5), has_elements)
    if not s[x].size:
        x = s.fresh(s.array((s.integer(1, 9), s.integer(1, 9)), s[x].dtype))
    return x


def gather(s: Sketch, op: str) -> None:
    x = operand_with_elements(s, op)
    axis = axis_of(s, s[x].ndim)
    where = indices(s, s.shape(s.integer(0, 3), 60), s[x].shape[axis])
    s.add(op, [x, where], axis=axis)


def gather_elements(s: Sketch, op: str) -> None:
    x = operand_with_elements(s, op)
    axis = axis_of(s, s[x].ndim)
    shape = [s.integer(1, d) for d in s[x].shape]
    shape[axis] = s.integer(0, 9)
    s.add(op, [x, indices(s, tuple(shape), s[x].shape[axis])], axis=axis)


def places(s: Sketch, shape: tuple[int, ...], batch: int, *, once: bool) -> str:
    """Index tuples into what is behind the batch axes; each at most once if wanted."""
    depth = s.integer(1, len(shape) - batch)
    inner = shape[batch : batch + depth]
    total = math.prod(inner)
    count = s.integer(1, min(7, total))
    rows = [
        s.rng.permutation(total)[:count] if once else s.rng.integers(0, total, count)
        for _ in range(math.prod(shape[:batch]))
    ]
    flat = np.stack(rows) if rows else np.zeros((1, count), np.int64)
    tuples = np.stack(np.unravel_index(flat, inner), -1)
    made = tuples.reshape(*shape[:batch], count, depth).astype(np.int64)
    if s.chance(0.3):
        made[..., 0] -= inner[0]
    return s.fresh(made)


def gather_nd(s: Sketch, op: str) -> None:
    x = operand_with_elements(s, op)
    batch = s.integer(0, s[x].ndim - 1) if s.opset >= 12 and s.chance(0.4) else 0
    where = places(s, s[x].shape, batch, once=False)
    s.add(op, [x, where], batch_dims=batch or None)


def reduction(s: Sketch, dtype: np.dtype) -> str | None:
    ways = [None, "none"]
    if s.opset >= 16 and dtype != BOOL:
        ways += ["add", "mul"]
    if s.opset >= 18 and dtype != BOOL:
        ways += ["max", "min"]
    return s.pick(ways)


def scatter_elements(s: Sketch, op: str) -> None:
    """Each place once, unless what is there is combined."""
    x = operand_with_elements(s, op)
    axis = axis_of(s, s[x].ndim)
    shape = [s.integer(1, d) for d in s[x].shape]
    size = s[x].shape[axis]
    lanes = [s.rng.permutation(size) for _ in range(math.prod(shape) // shape[axis])]
    order = np.array(lanes).reshape(*(d for i, d in enumerate(shape)
                                      if i != axis % len(shape)), size)  # fmt: skip
    where = np.moveaxis(order, -1, axis)
    where = np.take(where, range(shape[axis]), axis)
    way = reduction(s, s[x].dtype) if op == "ScatterElements" else None
    if way not in (None, "none") and s.chance(0.5):
        where = s.array(where.shape, I64, -size, size - 1)
    updates = s.like(where.shape, s[x].dtype)
    s.add(op, [x, s.fresh(where.astype(np.int64)), updates], axis=axis, reduction=way)


def scatter_nd(s: Sketch, op: str) -> None:
    x = operand_with_elements(s, op)
    way = reduction(s, s[x].dtype)
    where = places(s, s[x].shape, 0, once=way in (None, "none"))
    depth = s[where].shape[-1]
    shape = (*s[where].shape[:-1], *s[x].shape[depth:])
    s.add(op, [x, where, s.like(shape, s[x].dtype)], reduction=way)


def tensor_scatter(s: Sketch, op: str) -> None:
    batch, length, width = s.integer(1, 3), s.integer(2, 9), s.size(9)
    new = s.integer(1, length)
    dtype = s.dtype(s.types(op))
    mode = s.pick([None, "linear", "circular"])
    last = length - 1 if mode == "circular" else length - new
    starts = [s.integer(0, last) for _ in range(batch)]
    past = s.like((batch, length, width), dtype)
    inputs = [past, s.like((batch, new, width), dtype)]
    if s.chance(0.8):
        inputs.append(s.numbers(*starts))
    s.add(op, inputs, mode=mode, axis=s.pick([None, 1, -2]))


def compress(s: Sketch, op: str) -> None:
    x = operand_with_elements(s, op)
    axis = axis_of(s, s[x].ndim) if s.chance(0.7) else None
    size = s[x].size if axis is None else s[x].shape[axis]
    chosen = s.array((s.integer(1, size),), BOOL)
    s.add(op, [x, s.fresh(chosen, parameter=True)], axis=axis)


def non_zero(s: Sketch, op: str) -> None:
    array = s.array(s.shape(s.integer(1, 3), 200), s.dtype(s.types(op)), 0, 2)
    s.add(op, [s.fresh(array, parameter=True)])


def unique(s: Sketch, op: str) -> None:
    dtype = s.dtype(s.types(op))
    array = np.round(s.array(s.shape(s.integer(1, 2), 100), dtype, 0, 4))
    outputs = [True, *(s.chance(0.5) for _ in range(3))]
    s.add(
        op,
        [s.fresh(array.astype(dtype), parameter=True)],
        outputs,
        axis=axis_of(s, array.ndim) if s.chance(0.4) else None,
        sorted=s.pick([None, 1]),
    )


def top_k(s: Sketch, op: str) -> None:
    x = operand_with_elements(s, op)
    axis = axis_of(s, s[x].ndim)
    k = s.integer(0 if s.chance(0.1) else 1, s[x].shape[axis])
    s.add(op, [x, s.numbers(k)], 2, axis=axis, largest=s.pick([None, 0, 1]), sorted=1)


def arg(s: Sketch, op: str) -> None:
    x = operand_with_elements(s, op)
    last = s.pick([None, 0, 1]) if s.opset >= 12 else None
    s.add(
        op,
        [x],
        axis=s.pick([None, axis_of(s, s[x].ndim)]),
        keepdims=s.pick([None, 0, 1]),
        select_last_index=last,
    )


def suppression(s: Sketch, op: str) -> None:
    batch, classes, count = s.integer(1, 2), s.integer(1, 3), s.integer(1, 9)
    corner = s.array((batch, count, 2), F32, 0, 4)
    boxes = np.concatenate([corner, corner + s.array(corner.shape, F32, 1, 3)], -1)
    scores = s.array((batch, classes, count), F32, 0, 1)
    # Distinct scores: the order of equal ones is open.
    scores = scores + np.arange(scores.size, dtype=np.float32).reshape(scores.shape)
    limits = [s.scalar(s.integer(1, 4)), s.scalar(0.4, F32), s.scalar(0.2, F32)]
    boxes_name, scores_name = (
        s.fresh(a, parameter=True) for a in (boxes, scores / scores.max())
    )
    s.add(op, [boxes_name, scores_name, *limits[: s.integer(1, 3)]],
          center_point_box=s.pick([None, 0]))  # fmt: skip


RECIPES: dict[str, Recipe] = {
    **dict.fromkeys(words("ArgMax ArgMin"), arg),
    **dict.fromkeys(words("Scatter ScatterElements"), scatter_elements),
    "Compress": compress,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "NonMaxSuppression": suppression,
    "NonZero": non_zero,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
    "TopK": top_k,
    "Unique": unique,
}
