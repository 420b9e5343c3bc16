"""Which dimensions are one in a slice and in what it is a part of.

    x[4:9, :]  of [20, 6]   ->   x[24:54]  of [120]

Two are where the second one is whole: rows that stand behind each other are one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod

from nanoloom.ir.mlir import ir

Pair = tuple[ir.Value, int]  # a tensor, and the first of two of its dimensions
SLICE, INSERT = "tensor.extract_slice", "tensor.insert_slice"


@dataclass(frozen=True)
class Part:
    """A slice that is read or written.

    values: the slice and the tensors that it is a part of.  pairs: the first ones of
    two dimensions that can be one in all of them.
    """

    op: ir.Operation
    values: tuple[ir.Value, ...]
    pairs: list[int]

    def shorten(self, places: list[int]) -> None:
        """With fewer dimensions: those behind these places are one with them."""
        offsets, sizes, strides = (
            [*ir.DenseI64ArrayAttr(self.op.attributes[name])]
            for name in ("static_offsets", "static_sizes", "static_strides")
        )
        groups: list[list[int]] = []
        for d in range(len(sizes)):
            if d - 1 in places:
                groups[-1].append(d)
            else:
                groups.append([d])
        made = {
            "offsets": [offsets[g[0]] * prod(sizes[d] for d in g[1:]) for g in groups],
            "sizes": [prod(sizes[d] for d in g) for g in groups],
            "strides": [strides[g[0]] for g in groups],
        }
        for name, numbers in made.items():
            self.op.attributes[f"static_{name}"] = ir.DenseI64ArrayAttr.get(numbers)


def part_of(op: ir.Operation, *, cut: bool) -> Part:
    """cut: also where the first of two dimensions is not whole."""
    (result,) = op.results
    if op.name == SLICE:
        (large, *at), small = op.operands, result
        values = small, large
    else:
        small, large, *at = op.operands
        values = small, large, result
    one, other = (ir.RankedTensorType(v.type).shape for v in (large, small))
    if at or len(one) != len(other):
        return Part(op, values, [])
    whole = [a == b for a, b in zip(one, other, strict=True)]
    steps = ir.DenseI64ArrayAttr(op.attributes["static_strides"])
    near = [w or (cut and steps[d] == 1) for d, w in enumerate(whole)]
    first = pairwise(zip(near, whole, strict=True))
    return Part(op, values, [d for d, ((a, _), (_, b)) in enumerate(first) if a and b])


def is_everywhere(part: Part, pair: Pair, pairs: set[Pair]) -> bool:
    """Whether dimensions can be one in all of a part's values, or are of none."""
    value, place = pair
    if value not in part.values:
        return True
    return place in part.pairs and all((x, place) in pairs for x in part.values)
