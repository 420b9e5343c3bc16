"""Pad and CenterCropPad: tensors made larger or smaller at their borders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.graph.shared_decisions import COUNTED
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64, map_generic, position, take
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.tensor import Tensor

Widths = tuple[list[int], list[int]]
MODES = ("reflect", "edge", "wrap")  # as numpy.pad has them


def pad(b: Builder, node: Node) -> Tensor:
    """Negative counts cut off first; then each axis grows at both ends."""
    x = node.input(0)
    low, high = widths(node, x.rank)
    x = crop(b, x, [max(-c, 0) for c in low], [max(-c, 0) for c in high])
    low, high = [max(c, 0) for c in low], [max(c, 0) for c in high]
    mode = node.string("mode", "constant")
    if mode == "constant":
        return around(b, x, low, high, fill(b, node, x))
    if mode not in MODES:
        raise node.unsupported(f"mode {mode}", "use constant, reflect, edge or wrap")
    empty = [d for d, n in enumerate(x.shape) if n == 0 and low[d] + high[d]]
    if empty:
        raise node.unsupported(f"axis {empty[0]} is empty: nothing to pad with")
    return continued(b, x, low, high, mode)


def widths(node: Node, rank: int) -> Widths:
    """Counts before and after each axis; an attribute up to opset 10, then an input."""
    if node.version < 11:
        flat = node.ints("pads" if node.has("pads") else "paddings")
        return flat[:rank], flat[rank:]
    given, chosen = node.known(1), node.known(3)
    if given is None:
        raise node.unsupported("pads is missing")
    flat = [int(count) for count in given]
    axes = [int(a) % rank for a in chosen] if chosen is not None else range(rank)
    low, high = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        low[axis], high[axis] = flat[i], flat[i + len(flat) // 2]
    return low, high


def fill(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The value around a constant padding, a scalar of x's type."""
    given = node.optional(2)
    if given is not None:
        return b.reshape(given, ())
    return b.constant(np.array(node.float("value"), x.dtype))


def around(
    b: Builder, x: Tensor, low: Sequence[int], high: Sequence[int], value: Tensor
) -> Tensor:
    """x with a border of one value, which may be known only at run time."""
    if value.is_constant:
        return b.pad(x, low, high, value.array().item())
    shape = [a + s + c for a, s, c in zip(low, x.shape, high, strict=True)]
    if tuple(shape) == x.shape:
        return x
    return b.insert(x, b.broadcast_to(value, shape), low)


def continued(
    b: Builder, x: Tensor, low: Sequence[int], high: Sequence[int], mode: str
) -> Tensor:
    """Axes continued at both ends by their own elements, read where these are."""
    for axis, size in enumerate(x.shape):
        widths = low[axis], high[axis]
        once = size - 1 if mode == "reflect" else size
        if mode != "edge" and max(widths) > once:
            every = np.pad(np.arange(size), widths, mode=mode)  # type: ignore[call-overload] - one of MODES
            x = take(b, x, every, axis)
            low, high = (
                [0 if d == axis else n for d, n in enumerate(side)]
                for side in (low, high)
            )
    sides = [*zip(low, x.shape, high, strict=True)]
    if not any((*low, *high)):
        return x
    if not any((*low[:-1], *high[:-1])):
        return row_ends(b, x, low[-1], high[-1], mode)
    source = b.value(x)

    def body() -> Scalar:
        at = [inside(d, *side, mode) for d, side in enumerate(sides)]
        return b.load(source, x.dtype, at)

    return map_generic(b, [sum(side) for side in sides], x.dtype, [], body)


def row_ends(b: Builder, x: Tensor, before: int, after: int, mode: str) -> Tensor:
    """Rows continued at their ends: what is between is copied as it lies, twice as fast
    as number by number.

    Ends come of the shortest part of a row that has them.  Places in that part are the
    same for any size of x: only where it begins differs.
    """
    size, axis = x.shape[-1], x.rank - 1
    places = np.pad(np.arange(size), (before, after), mode=mode)  # type: ignore[call-overload] - one of MODES
    parts: list[Tensor] = []
    for here in (places[:before], None, places[before + size :]):
        if here is None:
            parts.append(x)
        elif here.size:
            first = int(here.min())
            shape = [*x.shape[:-1], int(here.max()) + 1 - first]
            part = b.slice(x, [0] * axis + [first], shape)
            parts.append(take(b, part, here - first, axis))
    return b.concat(parts, axis)


def inside(axis: int, before: int, size: int, after: int, mode: str) -> Scalar:
    """Which element of an axis is at a place of the continued one."""
    at = position(axis) - before if before else position(axis)
    if mode == "edge":
        at = at.maximum(0) if before else at
        return at.minimum(size - 1) if after else at
    if mode == "wrap":
        at = select(at < 0, at + size, at) if before else at
        return select(at >= size, at - size, at) if after else at
    at = at.maximum(-at) if before else at
    return at.minimum(-at + 2 * (size - 1)) if after else at


def crop(b: Builder, x: Tensor, low: Sequence[int], high: Sequence[int]) -> Tensor:
    if not any((*low, *high)):
        return x
    shape = [max(s - a - c, 0) for s, a, c in zip(x.shape, low, high, strict=True)]
    return b.slice(x, low, shape)


def center_crop_pad(b: Builder, node: Node) -> Tensor:
    """The middle of x, or x in the middle of zeros, axis by axis."""
    x, shape = node.input(0), node.output_shapes[0]
    if node.int(COUNTED):
        return centered(b, x, shape)
    pairs = list(zip(x.shape, shape, strict=True))
    cut = [max(have - want, 0) for have, want in pairs]
    x = crop(b, x, [c // 2 for c in cut], [c - c // 2 for c in cut])
    grow = [max(want - have, 0) for have, want in pairs]
    return b.pad(x, [g // 2 for g in grow], [g - g // 2 for g in grow])


def centered(b: Builder, x: Tensor, shape: Sequence[int]) -> Tensor:
    """The same where only a run knows whether an axis is cut or grows.

    Both leave half of the difference in front, rounded towards 0.  Extents are read
    from a constant: in the code the half would be folded, which no size is.
    """
    axes = [
        d for d, pair in enumerate(zip(x.shape, shape, strict=True)) if len({*pair}) > 1
    ]
    numbers = np.array([[x.shape[d], shape[d]] for d in axes], np.int64)
    known, origin = b.value(b.constant(numbers)), b.value(x)

    def body() -> Scalar:
        at = [position(d) for d in range(x.rank)]
        inside: Scalar | None = None
        for i, d in enumerate(axes):
            have, want = (
                b.load(known, INT64, [constant(i, INT64), constant(k, INT64)])
                for k in range(2)
            )
            half = (have - want).absolute() >> 1
            place = at[d] + select(have < want, -half, half)
            within = (place >= 0) & (place < have)
            inside = within if inside is None else inside & within
            at[d] = place.maximum(0).minimum(have - 1)
        element = b.load(origin, x.dtype, at)
        zero = constant(0, element.dtype)
        return element if inside is None else select(inside, element, zero)

    return map_generic(b, shape, x.dtype, [], body)


OPERATORS = {"CenterCropPad": center_crop_pad, "Pad": pad}
