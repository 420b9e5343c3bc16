"""What a mask chooses among the places of a tensor, and what is put there."""

from __future__ import annotations

import math

import onnx_ir as ir
import torch

from nanoloom.frontend.torch.call import Call, fake_of
from nanoloom.frontend.torch.writer import INT64

T = ir.DataType


def is_mask(at: object) -> bool:
    return fake_of(at).dtype in (torch.bool, torch.uint8)


def by_mask(call: Call, x: ir.Value, axis: int, mask: object) -> ir.Value:
    """The rows of axes from `axis` on where a mask over them is true."""
    w, rank = call.w, fake_of(mask).dim()
    chosen = w.cast(call.of(mask), T.BOOL)
    if rank != 1:
        shape = call.fake("self").shape
        head, inside, tail = (
            shape[:axis],
            shape[axis : axis + rank],
            shape[axis + rank :],
        )
        count = call.sizes.of(math.prod(inside))
        x = w.reshape(x, [*call.sizes.all(head), count, *call.sizes.all(tail)])
        chosen = w.reshape(chosen, [count])
    return w("Compress", x, chosen, axis=axis)


def with_places(call: Call) -> list[tuple[int, int, ir.Value]]:
    """The axis, the rank and the values of each index.

    A mask of several axes counts for as many indices: the places where it is true.
    """
    w, found, axis = call.w, list[tuple[int, int, ir.Value]](), 0
    for at in call["indices"]:
        if at is None or not is_mask(at):
            if at is not None:
                found.append((axis, fake_of(at).dim(), call.of(at)))
            axis += 1
            continue
        if not fake_of(at).dim():
            raise call.refuse("selects by a mask without axes among other indices")
        true = w.typed(INT64, "NonZero", w.cast(call.of(at), T.BOOL))
        for place in range(fake_of(at).dim()):
            found.append((axis, 1, w("Gather", true, w.constant(place), axis=0)))
            axis += 1
    return found


def masked_select(call: Call) -> ir.Value:
    """The elements where a mask is true, in the order that they are counted in."""
    w, fakes = call.w, [call.fake(n) for n in ("self", "mask")]
    shape = call.sizes.all(torch.broadcast_shapes(*(x.shape for x in fakes)))
    rows, flat = (
        w.reshape(w("Expand", x, w.ints(shape)), [-1])
        for x in (call.value("self"), w.cast(call.value("mask"), T.BOOL))
    )
    return w("Compress", rows, flat, axis=0)


def put_by_mask(
    call: Call, x: ir.Value, given: list[object], places: list[int], values: ir.Value
) -> ir.Value:
    """One number where a mask over the first axes is true."""
    sizes = call.fake("values").shape  # of data, they are no 1
    single = all(isinstance(n, int) and n == 1 for n in sizes)
    single = single and not call["accumulate"]
    if len(places) != 1 or places[0] != 0 or not single:
        raise call.refuse("puts several values by a mask")
    w, mask = call.w, w_mask(call, given[0])
    value = w.scalar(values)
    return w.typed(call.dtype, "Where", mask, value, x)


def w_mask(call: Call, mask: object) -> ir.Value:
    w, rank = call.w, fake_of(mask).dim()
    flat = w.cast(call.of(mask), T.BOOL)
    missing = list(range(rank, call.rank))
    return w("Unsqueeze", flat, w.constant(missing)) if missing else flat


OPERATORS = {"masked_select": masked_select}
