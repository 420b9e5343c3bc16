"""Convolutions and pools."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import onnx_ir as ir

from nanoloom.frontend.torch.adaptive_pools import largest_with_places, reduced
from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.integer_averages import averaged_integers
from nanoloom.frontend.torch.integer_pools import BY_MAX_POOL, pooled_integers
from nanoloom.frontend.torch.open_groups import by_windows

T = ir.DataType
BY_CONV = (T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16)


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
    if call.dtype not in BY_CONV or not isinstance(call["groups"], int):
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
        if call.dtype not in BY_CONV:
            x, added = batched(call, spatial)
            found = averaged_integers(call, x, spatial)
            return call.w("Squeeze", found, call.w.constant([0])) if added else found
        if not own:
            counted = int(call["count_include_pad"] is not False)
            return pooled(call, "AveragePool", spatial, count_include_pad=counted)
        found = whole_windows(call, spatial)
        size = prod(call.numbers("kernel_size", spatial))
        return call.w("Mul", found, call.w.constant(size / own, call.dtype))

    return made


def whole_windows(call: Call, spatial: int) -> ir.Value:
    """Averages with zeros around, so that those at the ends are of as many elements."""
    w, (x, added) = call.w, batched(call, spatial)
    kernel, pads = (
        call.numbers("kernel_size", spatial),
        call.numbers("padding", spatial),
    )
    strides = call.numbers("stride", spatial) if call["stride"] else kernel
    more = [s - 1 if call["ceil_mode"] else 0 for s in strides]
    behind = [p + n for p, n in zip(pads, more, strict=True)]
    x = w("Pad", x, w.constant([0, 0, *pads, 0, 0, *behind]))
    made = w("AveragePool", x, kernel_shape=kernel, strides=strides)
    axes = list(range(2, 2 + spatial))
    ends = w.ints(call.shape[-spatial:])
    made = w("Slice", made, w.constant([0] * spatial), ends, w.constant(axes))
    return w("Squeeze", made, w.constant([0])) if added else made


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
    "pixel_shuffle": pixel_shuffle,
}  # fmt: skip
