"""DeformConv: elements sampled at moved places, then one contraction."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from nanoloom.linalg.builder.builder import Builder, computed_as
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import Window, from_channels_last, to_channels_last
from nanoloom.linalg.products.convolution import add_bias, conv_window

RESULT, KERNEL = "opqrst", "uvwxyz"


def deform_conv(b: Builder, node: Node) -> Tensor:
    """Tap k of place o reads x at o * stride + k * dilation - pad + offset[k, o]."""
    x, w, bias = node.input(0), node.input(1), node.optional(3)
    window, groups = conv_window(node, x, w), node.int("group", 1)
    rank, channels, features = window.rank, w.shape[1], w.shape[0]
    seen = sampled(b, node, x, window)
    parts = (x.shape[0], *window.result, *window.kernel, groups, channels)
    weights = (groups, features // groups, channels, *window.kernel)
    place, tap = RESULT[:rank], KERNEL[:rank]
    made = b.einsum(
        f"n{place}{tap}gc,gfc{tap}->n{place}gf",
        b.reshape(seen, parts),
        b.reshape(w, weights),
        dtype=seen.dtype,
    )
    made = b.reshape(made, (x.shape[0], *window.result, features))
    return from_channels_last(b, node, add_bias(b, made, bias, x.dtype))


def sampled(b: Builder, node: Node, x: Tensor, window: Window) -> Tensor:
    """The elements under each tap: [n, result..., kernel..., groups, c / groups].

    Here groups are those of the offsets.  Linear interpolation between the 2^rank
    neighbours of a place; those outside the input count as zero.
    """
    last = to_channels_last(b, node, x)
    n, channels, rank = x.shape[0], last.shape[-1], window.rank
    groups = node.int("offset_group", 1)
    each = channels // groups
    shape = (n, *window.result, *window.kernel, groups, each)
    last = b.reshape(last, (n, *window.size, groups, each))
    source, wide = b.value(last), computed_as(x.dtype)
    taps = range(1 + rank, 1 + 2 * rank)
    group, results = 1 + 2 * rank, range(1, 1 + rank)
    layout = (n, groups, *window.kernel, *window.result)
    where = dims(len(shape), [0, group, *taps, *results])
    inputs = [(x, where) for x in offsets_of(b, node, layout, rank)]
    mask = node.optional(4)
    if mask is not None:
        inputs.append((b.reshape(mask, layout), where))

    def body(*scalars: Scalar) -> Scalar:
        places = [moved_place(window, d, scalars[d]) for d in range(rank)]

        def element(at: list[Scalar]) -> Scalar:
            indices = [position(0), *at, position(group), position(group + 1)]
            return b.load(source, x.dtype, indices)

        value = interpolated(places, window.size, element)
        return value * scalars[rank] if mask is not None else value

    return map_generic(b, shape, wide, inputs, body)


def offsets_of(
    b: Builder, node: Node, layout: tuple[int, ...], rank: int
) -> list[Tensor]:
    """How far each tap is moved along each axis: [n, groups, kernel..., result...]."""
    split = 2 + rank
    whole = (*layout[:split], rank, *layout[split:])
    offsets = b.reshape(node.input(2), whole)
    one = [1 if d == split else s for d, s in enumerate(whole)]
    starts = [[i if d == split else 0 for d in range(len(whole))] for i in range(rank)]
    return [b.reshape(b.slice(offsets, start, one), layout) for start in starts]


def moved_place(window: Window, d: int, offset: Scalar) -> Scalar:
    """Where the current tap reads along axis d, kept near the input.

    A NaN becomes a place outside; the conversion to an index must not see it.
    """
    start = position(1 + d) * window.strides[d] - window.low[d]
    tap = position(1 + window.rank + d) * window.dilations[d]
    place = (start + tap).cast(offset.dtype) + offset
    place = select(place > -2, place, -2)
    end = window.size[d] + 1
    return select(place < end, place, end)


def interpolated(
    places: list[Scalar],
    size: tuple[int, ...],
    element: Callable[[list[Scalar]], Scalar],
) -> Scalar:
    """The sum over the corners around a place, each weighted by its nearness."""
    floors = [p.math("floor") for p in places]
    total: Scalar | None = None
    for corner in product((0, 1), repeat=len(places)):
        inside, weight = None, None
        at = list[Scalar]()
        for place, floor, step, extent in zip(
            places, floors, corner, size, strict=True
        ):
            nearness = place - floor if step else floor + 1 - place
            weight = nearness if weight is None else weight * nearness
            index = floor.cast(INT64) + step
            valid = (index >= 0) & (index < extent)
            inside = valid if inside is None else inside & valid
            at.append(index.maximum(0).minimum(max(extent - 1, 0)))
        assert inside is not None and weight is not None
        value = select(inside, element(at), 0) * weight
        total = value if total is None else total + value
    assert total is not None
    return total


OPERATORS = {"DeformConv": deform_conv}
