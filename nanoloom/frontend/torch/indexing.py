"""Elements by their indices: embeddings, gathers, and what is put at places."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.frontend.torch.call import Call, fake_of
from nanoloom.frontend.torch.elementwise import scaled
from nanoloom.frontend.torch.masks import by_mask, is_mask, put_by_mask, with_places
from nanoloom.frontend.torch.writer import INT64


def embedding(call: Call) -> ir.Value:
    return call.w("Gather", call.value("weight"), call.value("indices"), axis=0)


def index_select(call: Call) -> ir.Value:
    at = call.value("index")
    if call.input_rank("self") == 0:
        return call.value("self")
    if call.fake("index").dim() == 0:
        at = call.w.reshape(at, [1])
    return call.w("Gather", call.value("self"), at, axis=call.axis("dim"))


def gather(call: Call) -> ir.Value:
    if call.input_rank("self") == 0 or call.input_rank("index") == 0:
        x = call.w("Expand", call.value("self"), call.w.ints(call.shape))
        return call.w.reshape(x, call.shape)
    x, at = call.value("self"), call.value("index", INT64)
    return call.w("GatherElements", x, at, axis=call.axis("dim"))


def take_along_dim(call: Call) -> ir.Value:
    x, at = call.value("self"), call.value("indices")
    if call["dim"] is None:
        flat = call.w.reshape(at, [-1])
        return call.w("Gather", call.w.reshape(x, [-1]), flat, axis=0)
    raise call.refuse("broadcasts")


def index(call: Call) -> ir.Value:
    """Tensors of indices for some axes, others taken whole; masks for any of them."""
    x, given = call.value("self"), list(call["indices"])
    places = [axis for axis, at in enumerate(given) if at is not None]
    if len(places) > 1:
        return of_several(call, x)
    only, axis = given[places[0]], places[0]
    if is_mask(only):
        return by_mask(call, x, axis, only)
    return call.w("Gather", x, call.of(only), axis=axis)


def of_several(call: Call, x: ir.Value) -> ir.Value:
    """Indices of several axes, which are moved to the front and back."""
    w, rank, found = call.w, call.input_rank("self"), with_places(call)
    places = [axis for axis, _, _ in found]
    order = places + [a for a in range(rank) if a not in places]
    moved = w("Transpose", x, perm=order) if order != sorted(order) else x
    made = w("GatherND", moved, coordinates(call, [at for _, _, at in found]))
    adjacent = places == list(range(places[0], places[-1] + 1))
    front = places[0] if adjacent else 0
    if not front:
        return made
    wide = max(ranks for _, ranks, _ in found)
    back = [*range(wide, wide + front), *range(wide), *range(wide + front, call.rank)]
    return w("Transpose", made, perm=back)


def coordinates(call: Call, at: list[ir.Value]) -> ir.Value:
    """Indices of several axes side by side: [..., axes], of one shape."""
    w = call.w
    wide = [w.cast(x, INT64) for x in at]
    if len(wide) == 1:
        return w("Unsqueeze", wide[0], w.constant([-1]))
    zeros = [w("Sub", x, x) for x in wide]
    joined = zeros[0]
    for zero in zeros[1:]:  # of the shape that all of them broadcast to
        joined = w("Add", joined, zero)
    each = [w("Unsqueeze", w("Add", x, joined), w.constant([-1])) for x in wide]
    return w("Concat", *each, axis=-1)


def index_put(call: Call) -> ir.Value:
    """Rows, or elements, at places; the last of several at one place counts."""
    x, given = call.value("self"), list(call["indices"])
    places = [axis for axis, at in enumerate(given) if at is not None]
    values = call.value("values", call.dtype)
    if any(is_mask(given[axis]) for axis in places):
        return put_by_mask(call, x, given, places, values)
    at = [call.of(given[axis]) for axis in places]
    rank = call.rank
    order = places + [a for a in range(rank) if a not in places]
    if order != sorted(order) and places != [*range(len(places))]:
        return put_moved(call, x, at, order, values)
    spots = coordinates(call, at)
    return scattered(call, x, spots, values, order)


def scattered(
    call: Call, x: ir.Value, spots: ir.Value, values: ir.Value, order: list[int]
) -> ir.Value:
    """ScatterND, with values broadcast to what it wants."""
    w, count = call.w, sum(at is not None for at in call["indices"])
    heads = w(
        "Slice", w.typed(INT64, "Shape", spots), w.constant([0]), w.constant([-1])
    )
    tails = [call.extent("self", axis) for axis in order[count:]]
    wanted = w("Concat", heads, w.ints(tails), axis=0) if tails else heads
    sent = w("Expand", values, wanted)
    reduction = "add" if call["accumulate"] else "none"
    return w("ScatterND", x, spots, sent, reduction=reduction)


def put_moved(
    call: Call, x: ir.Value, at: list[ir.Value], order: list[int], values: ir.Value
) -> ir.Value:
    """Axes with indices go to the front; the values' go with them."""
    w, places = call.w, order[: len(at)]
    adjacent = places == list(range(places[0], places[-1] + 1))
    wide = max(fake_of(i).dim() for i in call["indices"] if i is not None)
    front = places[0] if adjacent else 0
    if front:  # values are [before..., indices..., behind...]
        rank = wide + len(order) - len(at)
        have = call.fake("values").dim()
        if have < rank:
            ones = w.constant(list(range(rank - have)))
            values = w("Unsqueeze", values, ones)
        turn = [*range(front, front + wide), *range(front), *range(front + wide, rank)]
        values = w("Transpose", values, perm=turn)
    moved = w("Transpose", x, perm=order)
    made = scattered(call, moved, coordinates(call, at), values, order)
    return w("Transpose", made, perm=[order.index(a) for a in range(len(order))])


def scatter(reduction: str) -> object:
    def made(call: Call) -> ir.Value:
        words = {"add": "add", "multiply": "mul"}
        mode = words.get(call["reduce"] or "", reduction)
        w, x, at = call.w, call.value("self"), call.value("index", INT64)
        if call.rank == 0 or call.input_rank("index") == 0:  # all have one element
            if call.rank > 1:
                raise call.refuse("scatters by a scalar")
            x, at = (w.reshape(each, [-1]) for each in (x, at))
            sent = call.value("src" if call.has("src") else "value", call.dtype)
            sent = w.reshape(sent, [-1])
            made = w("ScatterElements", x, at, sent, axis=0, reduction=mode)
            return w.reshape(made, call.shape)
        if call.has("src"):
            sent = call.value("src", call.dtype)
            if not same_shape(call, "src", "index"):
                shape = w.typed(INT64, "Shape", at)
                zeros = w.constant([0] * call.rank)
                sent = w("Slice", sent, zeros, shape)
        else:
            shape = w.typed(INT64, "Shape", at)
            sent = w("Expand", call.value("value", call.dtype), shape)
        axis = call.axis("dim")
        return w("ScatterElements", x, at, sent, axis=axis, reduction=mode)

    return made


def same_shape(call: Call, *names: str) -> bool:
    a, b = (call.fake(name).shape for name in names)
    return all(isinstance(m, int) and m == n for m, n in zip(a, b, strict=True))


def index_copy(call: Call) -> ir.Value:
    """Rows along an axis put at places."""
    w, axis = call.w, call.axis("dim")
    if call.rank == 0:
        raise call.refuse("copies to a scalar")
    x, src = call.value("self"), call.value("source", call.dtype)
    order = [axis, *(a for a in range(call.rank) if a != axis)]
    at = w("Unsqueeze", call.value("index", INT64), w.constant([-1]))
    if axis:
        x, src = (w("Transpose", each, perm=order) for each in (x, src))
    made = w("ScatterND", x, at, src)
    back = [order.index(a) for a in range(call.rank)]
    return w("Transpose", made, perm=back) if axis else made


def index_add(call: Call) -> ir.Value:
    """Rows along an axis added at places."""
    w, axis, dtype = call.w, call.axis("dim"), call.dtype
    if call.rank == 0:
        raise call.refuse("adds to a scalar")
    x, src = call.value("self"), scaled(call, call.value("source", dtype))
    order = [axis, *(a for a in range(call.rank) if a != axis)]
    at = w("Unsqueeze", call.value("index", INT64), w.constant([-1]))
    if call.fake("index").dim() == 0:
        at = w.reshape(at, [1, 1])
    if axis:
        x, src = (w("Transpose", each, perm=order) for each in (x, src))
    made = w("ScatterND", x, at, src, reduction="add")
    back = [order.index(a) for a in range(call.rank)]
    return w("Transpose", made, perm=back) if axis else made


def scatter_reduce(call: Call) -> ir.Value:
    modes = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    mode = modes.get(call["reduce"])
    if mode is None or not call["include_self"]:
        raise call.refuse("scatters means, or without what was there")
    return scatter(mode)(call)  # type: ignore[operator]


OPERATORS = {
    "embedding": embedding, "index_select": index_select, "gather": gather,
    "index": index, "_unsafe_index": index,
    "index_put": index_put, "_unsafe_index_put": index_put, "scatter": scatter("none"),
    "scatter_add": scatter("add"), "index_copy": index_copy,
    "index_add": index_add, "scatter_reduce": scatter_reduce,
    "take_along_dim": take_along_dim,
}  # fmt: skip
