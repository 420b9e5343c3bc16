"""Tensors of the same elements in another shape, order or number."""

from __future__ import annotations

import onnx_ir as ir
import torch
from torch import fx

from nanoloom.frontend.torch.call import Call, fake_of
from nanoloom.frontend.torch.special import bits
from nanoloom.frontend.torch.writer import INT64

LARGEST = 2**63 - 1


def reshape(call: Call) -> ir.Value:
    """To the shape that torch says the result has: sizes instead of -1."""
    if call.has("dtype"):
        return bits(call)
    return call.w.reshape(call.value("self"), call.shape)


def permute(call: Call) -> ir.Value:
    rank = call.rank
    order = [d % rank for d in call["dims"]] if rank else []
    return transposed(call, order)


def transposed(call: Call, order: list[int]) -> ir.Value:
    x = call.value("self")
    return x if order == sorted(order) else call.w("Transpose", x, perm=order)


def transpose(call: Call) -> ir.Value:
    order = list(range(call.rank))
    if order:
        word = "dim" if call.has("dim0") else "axis"  # swapaxes has names of its own
        a, b = call.axis(f"{word}0"), call.axis(f"{word}1")
        order[a], order[b] = order[b], order[a]
    return transposed(call, order)


def last_two(call: Call) -> ir.Value:
    """t, mT, adjoint of matrices."""
    order = list(range(call.rank))
    return transposed(call, [*order[:-2], *order[-2:][::-1]])


def all_turned(call: Call) -> ir.Value:
    """x.T: all axes, as numpy turns them."""
    return transposed(call, list(range(call.rank))[::-1])


def unsqueeze(call: Call) -> ir.Value:
    dim = call["dim"]
    axis = dim + call.rank if dim < 0 else dim
    return call.w("Unsqueeze", call.value("self"), call.w.constant([axis]))


def squeeze(call: Call) -> ir.Value:
    """Axes that have one element for all sizes, as torch found."""
    shape = call.fake("self").shape
    axes = list(range(len(shape)))
    if "dim" in call.args:
        axes = call.axes("dim") if call["dim"] != [] else []
    gone = [a for a in axes if a < len(shape) and is_one(shape[a])]
    x = call.value("self")
    return call.w("Squeeze", x, call.w.constant(gone)) if gone else x


def is_one(size: int | torch.SymInt) -> bool:
    return isinstance(size, int) and size == 1


def expand(call: Call) -> ir.Value:
    return call.w("Expand", call.value("self"), call.w.ints(call.shape))


def repeat(call: Call) -> ir.Value:
    x, times = (
        call.value("self"),
        call["repeats"] if call.has("repeats") else call["dims"],
    )
    added = len(times) - call.input_rank("self")
    times = [*[1] * -added, *times]
    if added > 0:
        x = call.w("Unsqueeze", x, call.w.constant(list(range(added))))
    return call.w("Tile", x, call.vector(times))


def concat(call: Call) -> ir.Value:
    """An empty vector among others of more dimensions is nothing."""
    pairs = [
        (x, fake)
        for x, fake in zip(call["tensors"], call.fakes("tensors"), strict=True)
        if not (fake.dim() == 1 and call.rank > 1)
    ]
    dim = call["dim"] or 0
    axis = dim + call.rank if dim < 0 else dim
    return call.w("Concat", *[call.of(x, call.dtype) for x, _ in pairs], axis=axis)


def stack(call: Call) -> ir.Value:
    dim = call["dim"] or 0
    axis = dim + call.rank if dim < 0 else dim
    at = call.w.constant([axis])
    parts = [call.w("Unsqueeze", x, at) for x in call.tensors("tensors", call.dtype)]
    return call.w("Concat", *parts, axis=axis)


def slice_axis(call: Call) -> ir.Value:
    start, end = call["start"], call["end"]
    step = 1 if call["step"] is None else call["step"]
    x = call.value("self")
    start = 0 if start is None else start
    end = LARGEST if end is None else end
    if isinstance(start, int) and start == 0 and end == LARGEST and step == 1:
        return x
    axis = call.w.constant([call.axis("dim")])
    bounds = [call.vector([bound]) for bound in (start, end)]
    return call.w("Slice", x, *bounds, axis, call.vector([step]))


def narrow(call: Call) -> ir.Value:
    """A negative start counts from the end, which may be where the part ends."""
    axis = call.axis("dim")
    start, length = (call.w.ints([call.size(call[n])]) for n in ("start", "length"))
    if not isinstance(call["start"], int) or call["start"] < 0:
        size = call.w.ints([call.extent("self", axis)])
        counted = call.w("Add", start, size)
        negative = call.w.typed(ir.DataType.BOOL, "Less", start, call.w.constant([0]))
        start = call.w.typed(INT64, "Where", negative, counted, start)
    end = call.w("Add", start, length)
    return call.w("Slice", call.value("self"), start, end, call.w.constant([axis]))


def select(call: Call) -> ir.Value:
    """A negative index counts from the end in both."""
    at = call.sizes.operand(call.size(call["index"]))
    return call.w("Gather", call.value("self"), at, axis=call.axis("dim"))


def split(call: Call) -> tuple[ir.Value, ...]:
    """Into the parts that torch found; their sizes may be symbolic."""
    dim = call["dim"] or 0
    rank = call.input_rank("self")
    axis = dim + rank if dim < 0 else dim
    parts = call.out
    x = call.value("self")
    if len(parts) == 1:
        return (x,)
    sizes = call.w.ints([call.sizes.of(part.shape[axis]) for part in parts])
    return call.w("Split", x, sizes, count=len(parts), axis=axis)


def unbind(call: Call) -> tuple[ir.Value, ...]:
    dim = call["dim"] or 0
    rank = call.input_rank("self")
    axis = dim + rank if dim < 0 else dim
    x = call.value("self")
    return tuple(
        call.w("Gather", x, call.w.constant(i), axis=axis) for i in range(len(call.out))
    )


def flip(call: Call) -> ir.Value:
    x, axes = call.value("self"), call.axes("dims") if call["dims"] else []
    if not axes or not call.rank:
        return x
    ends = [call.w.constant([n] * len(axes)) for n in (-1, -LARGEST)]
    steps = call.w.constant([-1] * len(axes))
    return call.w("Slice", x, *ends, call.w.constant(axes), steps)


def roll(call: Call) -> ir.Value:
    """The end in front of the beginning, an axis after the other."""
    x, w, given = call.value("self"), call.w, call["shifts"]
    shifts = given if isinstance(given, list | tuple) else [given]
    if not call["dims"]:
        x = w.reshape(x, [-1])
        (shift,) = shifts
        return w.reshape(rolled(call, x, shift, 0), call.shape)
    for shift, axis in zip(shifts, call.axes("dims"), strict=True):
        x = rolled(call, x, shift, axis)
    return x


def rolled(call: Call, x: ir.Value, shift: object, axis: int) -> ir.Value:
    w = call.w
    size = w.typed(INT64, "Shape", x, start=axis, end=axis + 1)
    least = w("Max", size, w.constant([1]))
    place = w("Sub", size, w("Mod", call.vector([shift]), least))
    at, zero, end = w.constant([axis]), w.constant([0]), w.constant([LARGEST])
    back, front = w("Slice", x, place, end, at), w("Slice", x, zero, place, at)
    return w("Concat", back, front, axis=axis)


def triangle(upper: int) -> object:
    def made(call: Call) -> ir.Value:
        k = call.sizes.operand(call.size(call["diagonal"]))
        return call.w("Trilu", call.value("self"), k, upper=upper)

    return made


def pad(call: Call) -> ir.Value:
    """From the last axis on, pairs of what is added in front and behind."""
    mode = call["mode"] or "constant"
    return padded(call, MODES[mode], call["value"])


def padded(call: Call, mode: str, value: object = None) -> ir.Value:
    given = list(call["pad"] if call.has("pad") else call["padding"])
    pairs = [given[i : i + 2] for i in range(0, len(given), 2)][::-1]
    kept = call.rank - len(pairs)
    fronts = [*[0] * kept, *(p[0] for p in pairs)]
    backs = [*[0] * kept, *(p[1] for p in pairs)]
    sizes = call.vector([*fronts, *backs])
    x, filled = call.value("self"), None
    if mode == "constant":
        filled = call.of(0 if value is None else value, call.dtype)
    return call.w("Pad", x, sizes, filled, mode=mode)


MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge",
         "circular": "wrap"}  # fmt: skip


def pad_as(mode: str) -> object:
    return lambda call: padded(call, mode, call["value"])


def item(call: Call) -> ir.Value:
    return call.w.scalar(call.value("self"))


def getitem(call: Call) -> object:
    source, index = call.node.args[:2]
    assert isinstance(source, fx.Node)
    return call.values[source][index]


def size_of(call: Call) -> object:
    """aten.sym_size: a number, or what is found in the shapes of inputs."""
    shape = fake_of(call["self"]).shape
    return call.sizes.of(shape[call["dim"]])


OPERATORS = {
    **dict.fromkeys(
        ("view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as",
         "reshape_as", "ravel"), reshape),
    "permute": permute, "transpose": transpose, "t": last_two,
    "swapaxes": transpose, "swapdims": transpose,
    "numpy_T": all_turned, "mT": last_two, "matrix_H": last_two, "mH": last_two,
    "unsqueeze": unsqueeze, "squeeze": squeeze, "expand": expand, "expand_as": expand,
    "broadcast_to": expand, "repeat": repeat, "tile": repeat, "cat": concat,
    "concat": concat, "stack": stack, "slice": slice_axis, "narrow": narrow,
    "select": select, "split": split, "chunk": split, "split_with_sizes": split,
    "tensor_split": split, "unsafe_split": split, "unsafe_chunk": split,
    "unbind": unbind, "flip": flip, "roll": roll, "tril": triangle(0),
    "triu": triangle(1), "pad": pad, "constant_pad_nd": pad_as("constant"),
    **dict.fromkeys(("reflection_pad1d", "reflection_pad2d", "reflection_pad3d"),
                    pad_as("reflect")),
    **dict.fromkeys(("replication_pad1d", "replication_pad2d", "replication_pad3d"),
                    pad_as("edge")),
    "item": item, "_local_scalar_dense": item, "sym_size": size_of,
}  # fmt: skip
