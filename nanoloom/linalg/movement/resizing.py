"""Resize and Upsample, axis by axis, from tables.

They are known while compiling, or where only a run knows the sizes, computed in front
(computed_taps.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isclose, prod

import numpy as np

from nanoloom.graph.shared_decisions import COUNTED, RESIZED
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.indexing import (
    dims,
    map_generic,
    position,
    take,
    take_at,
)
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, is_float, select
from nanoloom.linalg.builder.tensor import Array, Tensor
from nanoloom.linalg.movement.computed_taps import ComputedTaps, Tables, computed_axis
from nanoloom.linalg.movement.coordinate_arithmetic import FLOAT32, FLOAT64
from nanoloom.linalg.movement.sampling import (
    OLDEST,
    ROUNDINGS,
    Axis,
    Taps,
    beyond,
    coordinates,
    cubic,
    linear,
    taps,
)

UNROLLED = 4  # taps that are written out; more become a reduction


def resize(b: Builder, node: Node) -> Tensor:
    x = node.input(0)
    axes = resized_axes(node, x)
    mode = node.string("mode", "nearest")
    legacy = node.version < 11
    transform = node.string(
        "coordinate_transformation_mode", "asymmetric" if legacy else "half_pixel"
    )
    if coordinates(Axis(1, 1, 1.0), transform) is None:
        raise node.unsupported(f"coordinate_transformation_mode {transform}")
    if mode == "nearest":
        given = node.string("nearest_mode", "round_prefer_floor")
        return nearest(b, node, axes, transform, OLDEST if legacy else given)
    if mode not in ("linear", "cubic"):
        raise node.unsupported(f"mode {mode}", "use nearest, linear or cubic")
    reach, weight = 1, linear
    if mode == "cubic":
        reach, weight = 2, cubic(node.float("cubic_coeff_a", -0.75))
    flags = bool(node.int("antialias")), bool(node.int("exclude_outside"))
    dtype = computed_in(x.dtype)
    if is_computed(node):
        given = {
            d: ComputedTaps(computed_axis(b, axis, transform), weight, reach, *flags)
            for d, axis in axes.items()
        }
        tables = {d: each.tables(dtype) for d, each in given.items()}
    else:
        known = {
            d: taps(axis, source(axis, transform), weight, reach, *flags)
            for d, axis in axes.items()
        }
        tables = {d: constants(b, table, dtype) for d, table in in_order(known)}
    return interpolate(b, node, tables, outside(b, node, axes, transform))


def is_computed(node: Node) -> bool:
    """Whether only a run knows the sizes of its image, or of what it makes."""
    return bool(node.int(COUNTED))


def resized_axes(node: Node, x: Tensor) -> dict[int, Axis]:
    """What happens along each axis that is not left as it is."""
    if node.version < 11:
        scales = node.known(1) if node.version > 8 else np.array(node.floats("scales"))
        roi = sizes = None
    else:
        roi, scales, sizes = node.known(1), node.known(2), node.known(3)
    chosen = [a % x.rank for a in node.ints("axes", range(x.rank))]
    whole = {d: Axis(x.shape[d], node.output_shapes[0][d], 1.0) for d in chosen}
    if scales is not None and scales.size:
        for d, scale in zip(chosen, scales, strict=True):
            whole[d] = replace(whole[d], scale=float(scale))
    elif sizes is not None:
        whole = with_sizes(node, whole, [int(s) for s in sizes])
    else:
        raise node.unsupported("neither scales nor sizes is given")
    if roi is not None and roi.size:
        for i, d in enumerate(chosen):
            part = (float(roi[i]), float(roi[i + len(chosen)]))
            whole[d] = replace(whole[d], roi=part)
    some = node.ints(RESIZED)  # sizes, of which this one may be none
    return {d: axis for d, axis in whole.items() if d in some or changes(axis)}


def with_sizes(
    node: Node, axes: dict[int, Axis], sizes: Sequence[int]
) -> dict[int, Axis]:
    """Scales from the wanted sizes; with a policy, one scale for all axes."""
    pairs = zip(sizes, axes.values(), strict=True)
    scales = [s / axis.size if axis.size else 1.0 for s, axis in pairs]
    policy = node.string("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        common = min(scales) if policy == "not_larger" else max(scales)
        scales = [common] * len(scales)
    return {
        d: replace(axis, scale=scale, is_quotient=True)
        for (d, axis), scale in zip(axes.items(), scales, strict=True)
    }


def changes(axis: Axis) -> bool:
    same = axis.size == axis.resized and isclose(axis.scale, 1.0)
    return not (same and isclose(axis.roi[0], 0.0) and isclose(axis.roi[1], 1.0))


def source(axis: Axis, transform: str) -> Array:
    """Each output element's coordinate in the input."""
    found = coordinates(axis, transform)
    assert found is not None, transform
    return found


def nearest(
    b: Builder, node: Node, axes: dict[int, Axis], transform: str, rounding: str
) -> Tensor:
    """One element for each: slices where they are even, then gathers, then repeats."""
    x = node.input(0)
    if rounding not in ROUNDINGS:
        raise node.unsupported(f"nearest_mode {rounding}")
    if is_computed(node):
        for d, axis in axes.items():
            table = computed_axis(b, axis, transform).nearest(rounding)
            x = take_at(b, x, table, d)
        return extrapolated(b, node, x, outside(b, node, axes, transform))
    tables: list[tuple[int, Array]] = []
    for d, axis in axes.items():
        at = source(axis, transform)
        rounded = np.clip(ROUNDINGS[rounding](at, axis.scale), 0, axis.size - 1)
        tables.append((d, rounded.astype(np.int64)))
    whole = {d: n for d, table in tables if (n := repeats(x.shape[d], table)) > 1}
    # What grows least comes first, whichever axis is the longer one.
    growth = {d: len(table) / max(axes[d].size, 1) for d, table in tables}
    for d, table in sorted(tables, key=lambda pair: growth[pair[0]]):
        x = x if d in whole else take(b, x, table, d)
    x = repeated(b, x, whole)
    return extrapolated(b, node, x, outside(b, node, axes, transform))


def repeats(size: int, table: Array) -> int:
    """How often a table has each of so many elements in their order; 0: it has not."""
    times = len(table) // size if size else 0
    return times if np.array_equal(table, np.repeat(np.arange(size), times)) else 0


def repeated(b: Builder, x: Tensor, times: dict[int, int]) -> Tensor:
    """Each element so often along some axes: all of it is one broadcast."""
    if not times:
        return x
    split = [(n, 1) if d in times else (n,) for d, n in enumerate(x.shape)]
    wide = [(n, times[d]) if d in times else (n,) for d, n in enumerate(x.shape)]
    made = b.broadcast_to(b.reshape(x, sum(split, ())), sum(wide, ()))
    return b.reshape(made, tuple(map(prod, wide)))


def computed_in(dtype: np.dtype) -> np.dtype:
    """The type of sums: f32, f64 for f64 and wide integers."""
    exact = dtype == FLOAT64 or (not is_float(dtype) and dtype.itemsize > 2)
    return FLOAT64 if exact else FLOAT32


def in_order(tables: dict[int, Taps]) -> list[tuple[int, Taps]]:
    """The axis with the fewest results first."""
    return sorted(tables.items(), key=lambda pair: pair[1].indices.shape[0])


def constants(b: Builder, table: Taps, dtype: np.dtype) -> Tables:
    """Taps that are known; few of them are written out."""
    width = table.indices.shape[1]
    if width > UNROLLED:
        weights = b.constant(table.weights.astype(dtype))
        return Tables((b.constant(table.indices),), (weights,), is_long=True)
    columns = [table.indices[:, t].copy() for t in range(width)]
    weights = [table.weights[:, t].astype(dtype) for t in range(width)]
    made = (tuple(map(b.constant, each)) for each in (columns, weights))
    return Tables(*made, is_long=False)


def interpolate(
    b: Builder, node: Node, tables: dict[int, Tables], outside: dict[int, Tensor]
) -> Tensor:
    """Weighted sums along each axis, one after the other."""
    x = node.input(0)
    wide = b.cast(x, computed_in(x.dtype))
    for d, table in tables.items():
        wide = (filtered if table.is_long else weighted)(b, wide, d, table)
    return rounded(b, extrapolated(b, node, wide, outside), x.dtype)


def rounded(b: Builder, x: Tensor, dtype: np.dtype) -> Tensor:
    """Back to the type of the model: integers to the nearest, inside their range."""
    if is_float(dtype):
        return b.cast(x, dtype)
    info = np.iinfo(dtype)

    def body(s: Scalar) -> Scalar:
        near = s.math("roundeven").maximum(float(info.min))
        top = np.nextafter(float(info.max), 0.0) if dtype.itemsize == 8 else info.max
        return near.minimum(float(top)).cast(dtype)

    return b.elementwise(body, x, dtype=dtype)


def weighted(b: Builder, x: Tensor, axis: int, table: Tables) -> Tensor:
    """A few taps, written out: sum of weight[t][o] * x[..., index[t][o], ...]."""
    width, (count,) = len(table.indices), table.indices[0].shape
    shape = [count if d == axis else s for d, s in enumerate(x.shape)]
    along = dims(x.rank, [axis])
    columns = (*table.indices, *table.weights)
    origin = b.value(x)

    def body(*given: Scalar) -> Scalar:
        places = [position(d) for d in range(x.rank)]
        total: Scalar | None = None
        for index, weight in zip(given[:width], given[width:], strict=True):
            at = [index if d == axis else p for d, p in enumerate(places)]
            part = weight * b.load(origin, x.dtype, at)
            total = part if total is None else total + part
        assert total is not None
        return total

    return map_generic(b, shape, x.dtype, [(c, along) for c in columns], body)


def filtered(b: Builder, x: Tensor, axis: int, table: Tables) -> Tensor:
    """Many taps, as a reduction: of weight[o, t] * x[..., index[o, t], ...]."""
    (indices,), (weights,) = table.indices, table.weights
    count = indices.shape[0]
    shape = [count if d == axis else s for d, s in enumerate(x.shape)]
    along = dims(x.rank + 1, [axis, x.rank])
    origin = b.value(x)

    def body(index: Scalar, weight: Scalar, total: Scalar) -> Scalar:
        at = [index if d == axis else position(d) for d in range(x.rank)]
        return total + weight * b.load(origin, x.dtype, at)

    return b.generic(
        [(indices, along), (weights, along)],
        [(b.full(shape, 0, x.dtype), dims(x.rank + 1, range(x.rank)))],
        [*[PARALLEL] * x.rank, REDUCTION],
        body,
    )[0]


def outside(
    b: Builder, node: Node, axes: dict[int, Axis], transform: str
) -> dict[int, Tensor]:
    """Where coordinates of an axis are outside the input; not where none are."""
    if transform != "tf_crop_and_resize":
        return {}
    if is_computed(node):
        given = {d: computed_axis(b, axis, transform) for d, axis in axes.items()}
        return {d: axis.outside() for d, axis in given.items()}
    pairs = [(d, beyond(axis, source(axis, transform))) for d, axis in axes.items()]
    return {d: b.constant(mask) for d, mask in pairs if mask.any()}


def extrapolated(
    b: Builder, node: Node, x: Tensor, marked: dict[int, Tensor]
) -> Tensor:
    """The extrapolation value where a coordinate of any axis is outside."""
    if not marked:
        return x
    number = node.float("extrapolation_value")

    def body(element: Scalar, *masks: Scalar) -> Scalar:
        for mask in masks:
            element = select(mask, constant(number, element.dtype), element)
        return element

    inputs = [(x, Map.get_identity(x.rank))]
    inputs += [(mask, dims(x.rank, [d])) for d, mask in marked.items()]
    return map_generic(b, x.shape, x.dtype, inputs, body)


OPERATORS = {"Resize": resize, "Upsample": resize}
