"""Operators on images: pooling, resizing, sampling."""

from __future__ import annotations

import numpy as np

from tests.fuzz.recipes.products import SPATIAL, image, window
from tests.fuzz.sketch import F32, F64, I8, I64, U8, Sketch
from tests.fuzz.words import Recipe, words


def image_of(s: Sketch, spatial: int, dtypes: list[np.dtype]) -> str:
    """An image without an empty axis."""
    x = s.operand(dtypes, [spatial + 2], lambda a: 0 not in a.shape)
    if 0 in s[x].shape:
        x = s.fresh(s.array((2, *image(s, spatial, s.integer(1, 20))[1:]), s[x].dtype))
    return x


def pooled(s: Sketch, op: str) -> None:
    dtypes = [F32, F64] + ([U8, I8] if op == "MaxPool" and s.opset >= 12 else [])
    x = image_of(s, s.pick(SPATIAL), dtypes if op != "LpPool" else [F32])
    how = window(s, s[x].shape[2:])
    ceil = s.chance(0.3) and "auto_pad" not in how
    since = {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op]
    how["ceil_mode"] = 1 if ceil and s.opset >= since else None
    if (op == "AveragePool" and s.opset < 19) or (op == "LpPool" and s.opset < 18):
        how["dilations"] = None
    if op == "AveragePool":
        how["count_include_pad"] = s.pick([None, 0, 1])
    if op == "LpPool":
        how["p"] = s.pick([None, 1, 2, 3])
    count = 2 if op == "MaxPool" and s.chance(0.3) else 1
    s.add(op, [x], count, **how)


def globally(s: Sketch, op: str) -> None:
    x = image_of(s, s.pick(SPATIAL), [F32])
    s.add(op, [x], p=s.pick([None, 1, 2, 3]) if op == "GlobalLpPool" else None)


def unpooled(s: Sketch, op: str) -> None:
    x = s.fresh(s.array((1, s.integer(1, 3), 4, 6), F32))
    how = {"kernel_shape": [2, 2], "strides": [2, 2]}
    made = s.add("MaxPool", [x], 2, **how)
    s.add(op, made, **how)


def response(s: Sketch, op: str) -> None:
    x = image_of(s, 2, [F32])
    s.add(op, [x], size=s.pick([1, 3, 5]), alpha=s.pick([None, 0.1]),
          beta=s.pick([None, 0.5]), bias=s.pick([None, 2.0]))  # fmt: skip


MODES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
         "half_pixel_symmetric", "tf_crop_and_resize")  # fmt: skip


def resized(s: Sketch, op: str) -> None:
    x = image_of(s, s.pick([1, 2, 2, 3]), [F32])
    shape = s[x].shape
    mode = s.pick(["nearest", "linear", "cubic"] if len(shape) == 4 else
                  ["nearest", "linear"])  # fmt: skip
    how = s.pick(MODES if s.opset >= 19 else MODES[:4])
    sizes = [d if i < 2 else s.integer(1, 2 * d + 1) for i, d in enumerate(shape)]
    roi = ""
    if how == "tf_crop_and_resize":
        ends = [*np.zeros(len(shape)), *np.ones(len(shape))]
        roi = s.fresh(np.array(ends, np.float32), parameter=True)
    if s.chance(0.5):
        # Far from where a rounding decides about the size.
        scales = [
            1.0 if a == b else (b + 0.5) / a for a, b in zip(shape, sizes, strict=True)
        ]
        tail = [s.fresh(np.array(scales, np.float32), parameter=True)]
    else:
        tail = ["", s.numbers(*sizes)]
    near = s.pick([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    s.add(
        op,
        [x, roi, *tail],
        mode=mode,
        coordinate_transformation_mode=how,
        nearest_mode=near if mode == "nearest" else None,
        cubic_coeff_a=s.pick([None, -0.5]) if mode == "cubic" else None,
        exclude_outside=s.pick([None, 1]) if mode == "cubic" else None,
        antialias=s.pick([None, 1]) if mode != "nearest" and s.opset >= 18 else None,
    )


def upsampled(s: Sketch, op: str) -> None:
    """Of an operator set that still has it: the whole graph is of that one."""
    x = image_of(s, 2, [F32])
    scales = [1.0, 1.0, float(s.integer(1, 3)), float(s.integer(1, 3))]
    s.add(op, [x, s.fresh(np.array(scales, np.float32), parameter=True)],
          mode=s.pick(["nearest", "linear"]))  # fmt: skip


def boxes(s: Sketch, count: int, high: float) -> np.ndarray:
    start = s.array((count, 2), F32, 0, high / 2)
    return np.concatenate([start, start + s.array((count, 2), F32, 1, high / 2)], 1)


def aligned(s: Sketch, op: str) -> None:
    n, count = s.integer(1, 3), s.integer(1, 5)
    x = s.fresh(s.array((n, s.integer(1, 5), s.integer(3, 9), s.integer(3, 9)), F32))
    rois = s.fresh(boxes(s, count, 8))
    batch = s.fresh(s.array((count,), I64, 0, n - 1))
    half = s.pick(["half_pixel", "output_half_pixel"]) if s.opset >= 16 else None
    s.add(
        op,
        [x, rois, batch],
        output_height=s.integer(1, 4),
        output_width=s.integer(1, 4),
        sampling_ratio=s.integer(0, 3),
        spatial_scale=s.pick([None, 0.5]),
        mode=s.pick([None, "avg", "max"]),
        coordinate_transformation_mode=half,
    )


def most_of_regions(s: Sketch, op: str) -> None:
    n, count = s.integer(1, 3), s.integer(1, 5)
    x = s.fresh(s.array((n, s.integer(1, 5), 8, 9), F32))
    batch = s.array((count, 1), I64, 0, n - 1).astype(np.float32)
    rois = s.fresh(np.concatenate([batch, np.round(boxes(s, count, 6))], 1))
    s.add(op, [x, rois], pooled_shape=[s.integer(1, 3), s.integer(1, 3)],
          spatial_scale=s.pick([None, 1.0]))  # fmt: skip


def sampled(s: Sketch, op: str) -> None:
    spatial = s.pick([2, 2, 3]) if s.opset >= 20 else 2
    n, c = s.integer(1, 2), s.integer(1, 5)
    x = s.fresh(s.array((n, c, *(s.integer(1, 7) for _ in range(spatial))), F32))
    sides = [s.integer(1, 6) for _ in range(spatial)]
    grid = s.fresh(s.array((n, *sides, spatial), F32, -1.2, 1.2))
    old = s.opset < 20
    new = ["linear", "nearest", "cubic"]
    names = ["bilinear", "nearest", "bicubic"] if old else new
    s.add(
        op,
        [x, grid],
        mode=s.pick(names[: 3 if spatial == 2 else 2]),
        padding_mode=s.pick(["zeros", "border", "reflection"]),
        align_corners=s.pick([None, 1]),
    )


def affine(s: Sketch, op: str) -> None:
    spatial, n = s.pick([2, 3]), s.integer(1, 3)
    theta = s.fresh(s.array((n, spatial, spatial + 1), F32))
    sizes = [n, s.integer(1, 3), *(s.integer(2, 6) for _ in range(spatial))]
    s.add(op, [theta, s.numbers(*sizes)], align_corners=s.pick([None, 1]))


RECIPES: dict[str, Recipe] = {
    **dict.fromkeys(words("AveragePool LpPool MaxPool"), pooled),
    **dict.fromkeys(words("GlobalAveragePool GlobalLpPool GlobalMaxPool"), globally),
    "AffineGrid": affine,
    "GridSample": sampled,
    "LRN": response,
    "MaxRoiPool": most_of_regions,
    "MaxUnpool": unpooled,
    "Resize": resized,
    "RoiAlign": aligned,
    "Upsample": upsampled,
}
