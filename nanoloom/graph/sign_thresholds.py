"""Sums of signs that are only compared: their bits are, with a whole number each.

    Pack(float(shift - times * ones) * factor + offset >= c)  ->  Pack(ones <= limit)

The sums are whole numbers, and what is made of one grows with it, or falls: the first
for which a comparison holds is found here, in float32 as ONNX computes it.  A product
that is compared so has the inputs x, bits and limit, of the shape that shift or offset
has, and the attribute `compare`.

No sum is 0 where those above it are those from it on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.quantization import known_array
from nanoloom.graph.sign_values import MOVES, bounds_of
from nanoloom.graph.types import shape_of

DOMAIN = "nanoloom.binary"
PRODUCTS = ("BitConvolution", "BitMatMul")
BYTE = 8
KEPT = ("Identity", "MaxPool", *MOVES)  # make no new numbers
# Of a factor, for which no rounding makes anything but 0 to 0; and of sums.
LEAST, FARTHEST = 2.0**-60, 2.0**120
BOOLS = ir.Value(name="bools", type=ir.TensorType(ir.DataType.BOOL))
INT16, INT32 = np.dtype(np.int16), np.dtype(np.int32)
HOLDS = {
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}
LARGE = ("Greater", "GreaterOrEqual")  # hold for large numbers


def threshold_sums(graph: ir.Graph) -> None:
    """Rewrite a graph whose products of signs are counted, in place."""
    for node in list(graph):
        if node.domain == DOMAIN and node.op_type in PRODUCTS:
            Thresholds(graph).visit(node)


@dataclass
class Thresholds(GraphEditor):
    """The graph being rewritten."""

    def visit(self, node: ir.Node) -> None:
        """Compare a product's bits if all that reads it packs the same comparison."""
        sums, packs = Sums.of(node), packs_of(node)
        if sums is None or not packs:
            return
        compare, than = threshold_of(packs[0])
        limit, word = sums.limit(compare, than)
        name = node.name or node.op_type
        constant = self.constant(limit, f"{name}/limit")
        inputs = [*node.inputs[:2], constant]
        kept = [a for key, a in node.attributes.items() if key != "times"]
        attributes = [*kept, ir.AttrString("compare", word)]
        shape = shape_of(node.outputs[0])
        made = self.add(
            node, node.op_type, inputs, attributes, shape, BOOLS, name, DOMAIN
        )
        for pack in packs:
            axis = [pack.attributes["axis"]]
            old = pack.outputs[0]
            new = self.add(
                pack, "Pack", [made], axis, shape_of(old), old, pack.name or "", DOMAIN
            )
            self.replace(pack, new)
        self.graph.remove(node, safe=True)


def packs_of(node: ir.Node) -> list[ir.Node]:
    """What reads a product, if all of it packs the bits of one comparison."""
    value = node.outputs[0]
    users = [use.node for use in value.uses()]
    packs = [x for x in users if x.domain == DOMAIN and x.op_type == "Pack"]
    same = len({threshold_of(x) for x in packs}) == 1 and len(packs) == len(users)
    return packs if same and not value.is_graph_output() else []


def threshold_of(pack: ir.Node) -> tuple[str, float]:
    """The comparison of which bits are made; "" for those of conditions."""
    words = pack.attributes
    if "compare" not in words:
        return "", 0.0
    return words["compare"].as_string(), words["than"].as_float()


@dataclass(frozen=True)
class Sums:
    """float32(shift - times * ones) * factor + offset, of up to `most` ones."""

    shift: np.ndarray
    factor: np.ndarray
    offset: np.ndarray
    times: int
    most: int

    @classmethod
    def of(cls, node: ir.Node) -> Sums | None:
        """What a product makes of its counts; None if that is not known."""
        bits, shift, factor, *rest = (known_array(value) for value in node.inputs[1:])
        if bits is None or shift is None or factor is None:
            return None
        if not ((factor >= 0).all() or (factor <= 0).all()):
            return None
        has_offset = len(node.inputs) > 4 and node.inputs[4] is not None
        offset = rest[0] if has_offset else np.float32(0)
        if offset is None:
            return None
        columns = bits.shape[0 if node.op_type == "BitConvolution" else -1]
        most = BYTE * bits.size // max(columns, 1)
        times = node.attributes["times"].as_int()
        return cls(shift, factor, np.asarray(offset), times, most)

    def limit(self, compare: str, than: float) -> tuple[np.ndarray, str]:
        """What ones are compared with, and how.

        Of sums that must be large there are few ones, unless the factor is negative.
        """
        rises = bool((self.factor >= 0).all())
        large = (compare in LARGE) == rises
        first = self.first(compare, than, large)
        shift = self.shift.astype(np.int64)
        if large:  # shift - times * ones >= first
            limit, word = (shift - first) // self.times, "LessOrEqual"
        else:  # <= first
            limit, word = -((first - shift) // self.times), "GreaterOrEqual"
        limit = limit.clip(-1, self.most + 1)
        return limit.astype(INT16 if self.most < np.iinfo(INT16).max else INT32), word

    def first(self, compare: str, than: float, large: bool) -> np.ndarray:
        """The smallest sum of which a comparison holds, or the largest; by column."""
        limit = int(abs(self.shift.astype(np.int64)).max()) + self.times * self.most + 1
        way = 1 if large else -1
        shape = np.broadcast_shapes(self.factor.shape, self.offset.shape)
        # It holds at `there`, as far as sums go, and not at `here`.
        here = np.full(shape, -way * limit, np.int64)
        there = -here
        while (abs(there - here) > 1).any():
            middle = (here + there) // 2
            holds = self.holds(middle, compare, than)
            here, there = np.where(holds, here, middle), np.where(holds, middle, there)
        return there

    def are_nonzero(self) -> bool:
        """Whether none is 0 or NaN, in one rounding or in two.

        What is 0 in one, a product and its addition together, is in two.
        """
        least = float(abs(self.factor).min(initial=1))
        most = (
            abs(self.shift.astype(np.float64)).max(initial=0) + self.times * self.most
        )
        farthest = most * abs(self.factor).max(initial=0) + abs(self.offset).max(
            initial=0
        )
        if not (least > LEAST and farthest < FARTHEST):
            return False
        (above, _), (on, _) = (self.limit(x, 0.0) for x in LARGE)
        return bool((above == on).all())

    def holds(self, sums: np.ndarray, compare: str, than: float) -> np.ndarray:
        with np.errstate(all="ignore"):
            made = sums.astype(np.float32) * self.factor + self.offset
        return HOLDS[compare](made, np.float32(than))


def is_nonzero(value: ir.Value | None) -> bool:
    """Whether a value is known to be neither 0 nor NaN."""
    node = None if value is None else value.producer()
    if node is None:
        return False
    if node.domain == DOMAIN and node.op_type in PRODUCTS:
        sums = Sums.of(node)
        return sums is not None and sums.are_nonzero()
    if node.domain not in ("", "ai.onnx"):
        return False
    bounds = bounds_of(node) if node.op_type == "Clip" else None
    around = bounds is not None and bool(bounds[0] < 0 < bounds[1])
    return (around or node.op_type in KEPT) and is_nonzero(node.inputs[0])
