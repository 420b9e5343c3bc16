"""ArgMax and ArgMin: two reductions, one for the value and one for its place."""

from __future__ import annotations

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.indexing import INT64, dims, position
from nanoloom.linalg.builder.narrow_rows import reduced
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, is_float, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.reductions.reduce import highest, lowest


def positions(b: Builder, x: Tensor, axis: int, *, largest: bool, last: bool) -> Tensor:
    """int64 place of the extreme along an axis, that dimension dropped.

    Equal values: the first (or last) place; NaN counts as the extreme, as in numpy.
    """

    def better(sofar: Scalar, s: Scalar) -> Scalar:
        return sofar.maximum(s) if largest else sofar.minimum(s)

    start = lowest(x.dtype) if largest else highest(x.dtype)
    best = reduced(b, better, x, [axis], start)
    nowhere = -1 if last else x.shape[axis]
    out = b.full(best.shape, nowhere, INT64)
    keep = dims(x.rank, [d for d in range(x.rank) if d != axis])

    def place(element: Scalar, extreme: Scalar, sofar: Scalar) -> Scalar:
        found = element.equal(extreme)
        if is_float(element.dtype):
            found = found | element.is_nan()
        here = select(found, position(axis), constant(nowhere, INT64))
        return here.maximum(sofar) if last else here.minimum(sofar)

    return b.generic(
        [(x, Map.get_identity(x.rank)), (best, keep)],
        [(out, keep)],
        [REDUCTION if d == axis else PARALLEL for d in range(x.rank)],
        place,
    )[0]


def argument(b: Builder, node: Node, *, largest: bool) -> Tensor:
    x = node.input(0)
    axis = node.int("axis") % max(x.rank, 1)
    last = bool(node.int("select_last_index"))
    if x.rank == 0:
        return b.full(node.output_shapes[0], 0, INT64)
    found = positions(b, x, axis, largest=largest, last=last)
    return b.reshape(found, node.output_shapes[0])


def arg_max(b: Builder, node: Node) -> Tensor:
    return argument(b, node, largest=True)


def arg_min(b: Builder, node: Node) -> Tensor:
    return argument(b, node, largest=False)


OPERATORS = {"ArgMax": arg_max, "ArgMin": arg_min}
