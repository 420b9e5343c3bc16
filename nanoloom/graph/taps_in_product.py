"""How a transposed convolution is computed: its taps are summed, or columns.

    x [c, pixels], w [c, (f, taps)]:  w' x is [(f, taps), pixels], added up in place

One product has a column for each feature and tap, so vectors of pixels are full however
few the features are, and no tap is a zero.  What it makes goes through memory.  The sum
over taps keeps that in registers, beside features in vectors (transposed_phases.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

import onnx_ir as ir

from nanoloom.graph.image_layouts import image_order
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.types import is_static, shape_of

TAPS_IN_PRODUCT = "taps_in_product"  # of a node
FEW = 16  # features: fewer fill no vector of f32
# Of 240 drawn layers, on a core with AVX-512.
MOVED = 28  # channels whose sum takes as long as a number's way through memory


@dataclass(frozen=True)
class TransposedFilters:
    """Of a group: channels and features, and along each axis taps and steps."""

    channels: int
    features: int
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def spans(self) -> list[int]:
        """How far the taps reach along each axis."""
        return [(k - 1) * d + 1 for k, d in zip(self.taps, self.dilations, strict=True)]

    @property
    def multiplied_as_sums(self) -> int:
        """Numbers for a pixel and a channel, those of lanes and taps without use too.

        Phases beside features have as many taps each.
        """
        joined = phases_in_vector(self.features, self.strides)
        apart = len(self.taps) - joined
        beside = zip(self.spans[apart:], self.strides[apart:], strict=True)
        together = prod(-(-span // stride) for span, stride in beside)
        lanes = self.features * prod(self.strides[apart:])
        return prod(self.spans[:apart]) * together * -(-lanes // FEW) * FEW

    @property
    def multiplied_as_columns(self) -> int:
        """Numbers for a pixel and a channel."""
        return self.features * prod(self.taps)

    @property
    def moved(self) -> int:
        """Numbers for a pixel that are added up: none that lie over no others."""
        axes = zip(self.taps, self.strides, self.dilations, strict=True)
        over = any(k * gcd(s, d) > s for k, s, d in axes)
        return self.multiplied_as_columns if over else 0

    @property
    def are_depthwise(self) -> bool:
        """Whether each channel has one filter."""
        return self.channels == self.features == 1

    def are_columns(self, *, turned: bool) -> bool:
        """Whether one product of all taps is less work.

        turned: whether channels lie last, so that planes are made of them first.

        Of one channel each, vectors are of groups; of one tap, the sum is the product.
        """
        wasted = self.features < FEW or self.spans != [*self.taps]
        several = self.channels > 1 and prod(self.taps) > 1
        work = self.channels * self.multiplied_as_columns + MOVED * self.moved
        work += MOVED * self.channels if turned else 0
        sums = self.channels * self.multiplied_as_sums
        return wasted and several and work < sums


def phases_in_vector(features: int, phases: Sequence[int]) -> int:
    """How many of the last phases are beside few features, which alone fill none."""
    joined, count = 0, features
    while joined < len(phases) and count * phases[-1 - joined] <= FEW:
        joined, count = joined + 1, count * phases[-1 - joined]
    return max(joined, int(features < FEW))


def has_taps_in_product(node: ir.Node) -> bool:
    """Note that a node's taps are columns of a product, where that is less work.

    Or, of a filter for each channel, that they go over planes, if these are there.
    """
    if not is_tensor_op(node, {"ConvTranspose"}):
        return False
    found = filters_of(node)
    turned = image_order(node.inputs[0]) is not None
    if found is None:
        return False
    if not found.are_columns(turned=turned) and (turned or not found.are_depthwise):
        return False
    node.attributes[TAPS_IN_PRODUCT] = ir.AttrInt64(TAPS_IN_PRODUCT, 1)
    return True


def filters_of(node: ir.Node) -> TransposedFilters | None:
    """None for those of unknown size, or of none."""
    x, w = node.inputs[:2]
    if x is None or w is None or not is_static(w) or 0 in shape_of(w):
        return None
    channels, features, *taps = shape_of(w)
    group = node.attributes.get("group")

    def numbers(name: str) -> tuple[int, ...]:
        given = node.attributes.get(name)
        return tuple(given.as_ints()) if given is not None else (1,) * len(taps)

    return TransposedFilters(
        channels // (group.as_int() if group is not None else 1),
        features,
        tuple(taps),
        numbers("strides"),
        numbers("dilations"),
    )
