"""Convolutions and pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import onnx_ir as ir

from nanoloom.frontend.torch.adaptive_pools import largest_with_places, reduced
from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.integer_pools import BY_MAX_POOL, pooled_integers
from nanoloom.frontend.torch.nearest_places import by_places
from nanoloom.frontend.torch.open_groups import by_windows

T = ir.DataType


def convolution(call: Call) -> ir.Value:
    """conv1d to conv3d, conv_transpose1d to 3d, and `convolution`, which is any."""
    spatial = call.input_rank("weight") - 2
    x = call.value("input")
    added = call.input_rank("input") == spatial + 1  # no batch
    if added:
        x = call.w("Unsqueeze", x, call.w.constant([0]))
    made = convolved(call, x, spatial)
    return call.w("Squeeze", made, call.w.constant([0])) if added else made


def convolved(call: Call, x: ir.Value, spatial: int) -> ir.Value:
    name = str(call.node.target)
    turned = call["transposed"] if "transposed" in call.args else "transpose" in name
    padding = call["padding"]
    attributes: dict[str, Any] = {
        "strides": call.numbers("stride", spatial),
        "dilations": call.numbers("dilation", spatial),
    }
    if isinstance(padding, str):
        attributes["pads"] = same_pads(call, spatial) if padding == "same" else (
            [0] * 2 * spatial
        )  # fmt: skip
    else:
        attributes["pads"] = call.numbers("padding", spatial) * 2
    if turned:
        attributes["output_padding"] = call.numbers("output_padding", spatial)
    if not isinstance(call["groups"], int):
        return by_windows(call, x, attributes, turned=turned)
    attributes["group"] = call["groups"]
    op = "ConvTranspose" if turned else "Conv"
    return call.w(op, x, call.value("weight"), call.optional("bias"), **attributes)


def same_pads(call: Call, spatial: int) -> list[int]:
    """As many windows as there are places; what is odd is added behind."""
    kernel = call.fake("weight").shape[2:]
    dilations = call.numbers("dilation", spatial)
    totals = [d * (int(k) - 1) for d, k in zip(dilations, kernel, strict=True)]
    fronts = [t // 2 for t in totals]
    return fronts + [t - f for t, f in zip(totals, fronts, strict=True)]


def batched(call: Call, spatial: int) -> tuple[ir.Value, bool]:
    x = call.value("self")
    if call.input_rank("self") == spatial + 2:
        return x, False
    return call.w("Unsqueeze", x, call.w.constant([0])), True


def pooled(call: Call, op: str, spatial: int, **attributes: Any) -> Any:
    """The node's output; a tuple where `count` of them are asked for."""
    x, added = batched(call, spatial)
    kernel = call.numbers("kernel_size", spatial)
    strides = call.numbers("stride", spatial) if call["stride"] else kernel
    made = call.w(
        op, x,
        kernel_shape=kernel, strides=strides,
        pads=call.numbers("padding", spatial) * 2,
        ceil_mode=int(bool(call["ceil_mode"])), **attributes,
    )  # fmt: skip
    if not added:
        return made
    if isinstance(made, tuple):
        return tuple(call.w("Squeeze", each, call.w.constant([0])) for each in made)
    return call.w("Squeeze", made, call.w.constant([0]))


def max_pool(spatial: int) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        if call.type_of("self") not in BY_MAX_POOL:
            return of_integers(call, spatial)[0]
        dilations = call.numbers("dilation", spatial)
        return pooled(call, "MaxPool", spatial, dilations=dilations)

    return made


def of_integers(call: Call, spatial: int) -> tuple[ir.Value, ir.Value]:
    x, added = batched(call, spatial)
    found, places = pooled_integers(call, x, spatial)
    if not added:
        return found, places
    batch = call.w.constant([0])
    return call.w("Squeeze", found, batch), call.w("Squeeze", places, batch)


def max_pool_with_places(spatial: int) -> Callable[[Call], object]:
    """What AOTAutograd makes of a max pool.  ONNX's places are in the whole tensor,
    torch's in an image of one channel."""

    def made(call: Call) -> object:
        if not [n for n in call.node.users if n.args[1] == 1 and n.users]:
            return max_pool(spatial)(call), None
        if call.type_of("self") not in BY_MAX_POOL:
            return of_integers(call, spatial)
        w, dilations = call.w, call.numbers("dilation", spatial)
        found, places = pooled(call, "MaxPool", spatial, count=2, dilations=dilations)
        places.dtype = T.INT64
        sizes = [call.extent("self", axis - spatial) for axis in range(spatial)]
        image = w("ReduceProd", w.ints(sizes), keepdims=1)
        return found, w("Mod", places, image)

    return made


def average_pool(spatial: int) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        own = call["divisor_override"]
        counted = 0 if call["count_include_pad"] is False and not own else 1
        found = pooled(call, "AveragePool", spatial, count_include_pad=counted)
        if not own:
            return found
        if call["ceil_mode"]:  # windows at the end are of fewer elements
            raise call.refuse("has a divisor of its own, and shorter windows")
        size = prod(call.numbers("kernel_size", spatial))
        return call.w("Mul", found, call.w.constant(size / own, call.dtype))

    return made


def adaptive(op: str, spatial: int) -> Callable[[Call], ir.Value]:
    """To one element, by windows side by side, or by windows of two sizes."""

    def made(call: Call) -> ir.Value:
        sizes = call.fake("self").shape[-spatial:]
        out = call.out[0] if isinstance(call.out, tuple | list) else call.out
        each = list(out.shape[-spatial:])
        x, added = batched(call, spatial)
        if each == [1] * spatial and op == "AveragePool":
            found = call.w("GlobalAveragePool", x)
        elif not all(isinstance(n, int) for n in (*sizes, *each)):
            found = reduced(call, x, op, sizes, each)
        elif all(n % m == 0 for n, m in zip(sizes, each, strict=True)):
            kernel = [int(n) // m for n, m in zip(sizes, each, strict=True)]
            found = call.w(op, x, kernel_shape=kernel, strides=kernel)
        else:
            found = reduced(call, x, op, sizes, each)
        return call.w("Squeeze", found, call.w.constant([0])) if added else found

    return made


def adaptive_max(spatial: int) -> Callable[[Call], object]:
    def made(call: Call) -> object:
        if not [n for n in call.node.users if n.args[1] == 1 and n.users]:
            return adaptive("MaxPool", spatial)(call), None
        each = [x.shape[-spatial:] for x in (call.fake("self"), call.out[0])]
        sizes, wanted = ([n for n in x if isinstance(n, int)] for x in each)
        if len(sizes) + len(wanted) < 2 * spatial:
            reason = "asks for the places of the largest numbers, along open sizes"
            raise call.refuse(reason, hint="give it fixed sizes")
        return largest_with_places(call, call.value("self"), sizes, wanted)

    return made


def nearest(spatial: int) -> Callable[[Call], ir.Value]:
    return lambda call: resized(
        call, spatial, mode="nearest", coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )  # fmt: skip


def linear(spatial: int, mode: str) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        where = "align_corners" if call["align_corners"] else "half_pixel"
        # torch takes a size of one to the middle in both; ONNX's pytorch_half_pixel
        # takes it to the first element.
        return resized(
            call, spatial, mode=mode, coordinate_transformation_mode=where,
            cubic_coeff_a=-0.75,
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


def pixel_shuffle(call: Call) -> ir.Value:
    """Of images of any number of axes in front."""
    w, x = call.w, call.value("self")
    if call.rank != 4:
        image = call.sizes.all(call.fake("self").shape[-3:])
        x = w.reshape(x, [-1, *image])
    made = w("DepthToSpace", x, blocksize=call["upscale_factor"], mode="CRD")
    return made if call.rank == 4 else w.reshape(made, call.shape)


OPERATORS = {
    **dict.fromkeys(
        ("conv1d", "conv2d", "conv3d", "convolution", "_convolution",
         "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), convolution),
    **{f"max_pool{n}d": max_pool(n) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": max_pool_with_places(n) for n in (2, 3)},
    **{f"avg_pool{n}d": average_pool(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": adaptive("AveragePool", n) for n in (1, 2, 3)},
    **{f"_adaptive_avg_pool{n}d": adaptive("AveragePool", n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": adaptive_max(n) for n in (1, 2, 3)},
    **{f"upsample_nearest{n}d": nearest(n) for n in (1, 2, 3)},
    "upsample_linear1d": linear(1, "linear"),
    "upsample_bilinear2d": linear(2, "linear"),
    "upsample_trilinear3d": linear(3, "linear"),
    "upsample_bicubic2d": linear(2, "cubic"), "pixel_shuffle": pixel_shuffle,
}  # fmt: skip
