"""Images read between their places: resized, and sampled at places of a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.nearest_places import by_places

T = ir.DataType
# What torch's antialias does outside of the image, and Keys' cubic beside it.
ANTIALIAS = {"antialias": 1, "exclude_outside": 1, "cubic_coeff_a": -0.5}
SAMPLED = ("linear", "nearest", "cubic")
PADDED = ("zeros", "border", "reflection")


def nearest(spatial: int) -> Callable[[Call], ir.Value]:
    return lambda call: resized(
        call, spatial, mode="nearest", coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )  # fmt: skip


def linear(spatial: int, mode: str, **attributes: Any) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        if attributes.get("antialias") and call["align_corners"]:
            raise call.refuse("resizes with antialias and corners in place")
        where = "align_corners" if call["align_corners"] else "half_pixel"
        # torch takes a size of one to the middle in both; ONNX's pytorch_half_pixel
        # takes it to the first element.
        return resized(
            call, spatial, mode=mode, coordinate_transformation_mode=where,
            **{"cubic_coeff_a": -0.75} | attributes,
        )  # fmt: skip

    return made


def resized(call: Call, spatial: int, **attributes: Any) -> ir.Value:
    """By scales where torch computes with them, else to a size; in f32 at least."""
    name = "self" if "self" in call.args else "input"
    w, x = call.w, call.value(name)
    if call.dtype.bitwidth < 32 and attributes["mode"] != "nearest":
        x = w.cast(x, T.FLOAT)
    factors = call["scale_factors"] or scales(call, spatial)
    if factors and is_by_size(factors, attributes):
        factors = None
    if factors and all(isinstance(f, int | float) for f in factors):
        if attributes["mode"] == "nearest":  # which torch has at places of 32 bits
            if (moved := by_places(call, name, factors)) is not None:
                return moved
        else:
            factors = [call.attribute(f, call.dtype) for f in factors]
        known = dict(enumerate(factors, 2))
        for axes in passes(call, spatial, attributes):
            each = [known[a] if a in axes else 1 for a in range(2 + spatial)]
            scaled = w.constant(each, T.FLOAT)
            x = rounded(call, w("Resize", x, None, scaled, **attributes), attributes)
        return w.cast(x, call.dtype)
    extents, shape = call.sizes.all(call.fake(name).shape), call.shape
    for axes in passes(call, spatial, attributes):
        extents = [shape[a] if a in axes else n for a, n in enumerate(extents)]
        sizes = w.ints(extents)
        x = rounded(call, w("Resize", x, None, None, sizes, **attributes), attributes)
    return w.cast(x, call.dtype)


def passes(
    call: Call, spatial: int, attributes: Mapping[str, Any]
) -> list[tuple[int, ...]]:
    """The axes that are resized together; of bytes torch takes the last one first."""
    axes = range(2, 2 + spatial)
    apart = is_rounded(call, attributes)
    return [(a,) for a in reversed(axes)] if apart else [tuple(axes)]


def is_rounded(call: Call, attributes: Mapping[str, Any]) -> bool:
    return call.dtype == T.UINT8 and attributes["mode"] != "nearest"


def rounded(call: Call, made: ir.Value, attributes: Mapping[str, Any]) -> ir.Value:
    """Bytes, as floats: halves go up, and all end at 0 and 255."""
    if not is_rounded(call, attributes):
        return made
    w = call.w
    whole = w("Floor", w("Add", made, w.constant(0.5, T.FLOAT)))
    return w("Clip", whole, w.constant(0, T.FLOAT), w.constant(255, T.FLOAT))


def is_by_size(factors: Sequence[Any], attributes: Mapping[str, Any]) -> bool:
    """Corners are aligned by sizes alone: scales that are no whole numbers say more."""
    aligned = attributes["coordinate_transformation_mode"] == "align_corners"
    return aligned and any(isinstance(f, float) and f % 1 for f in factors)


def scales(call: Call, spatial: int) -> list[float] | None:
    names = ["scales"] if spatial == 1 else ["scales_d", "scales_h", "scales_w"]
    found = [call[n] for n in names[-spatial:]]
    return None if None in found else found


def sampled(call: Call) -> ir.Value:
    """grid_sampler of two and of three axes."""
    return call.w(
        "GridSample", call.value("input"), call.value("grid"),
        mode=SAMPLED[call.number("interpolation_mode")],
        padding_mode=PADDED[call.number("padding_mode")],
        align_corners=int(bool(call["align_corners"])),
    )  # fmt: skip


OPERATORS = {
    **{f"upsample_nearest{n}d": nearest(n) for n in (1, 2, 3)},
    "upsample_linear1d": linear(1, "linear"),
    "upsample_bilinear2d": linear(2, "linear"),
    "upsample_trilinear3d": linear(3, "linear"),
    "upsample_bicubic2d": linear(2, "cubic"),
    "_upsample_bilinear2d_aa": linear(2, "linear", **ANTIALIAS),
    "_upsample_bicubic2d_aa": linear(2, "cubic", **ANTIALIAS),
    **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), sampled),
}  # fmt: skip
