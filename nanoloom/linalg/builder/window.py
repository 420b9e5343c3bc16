"""Sliding windows of convolutions and pools: their geometry and their affine maps.

Tensors are channels-last, [n, spatial..., c], or stay in planes, [n, c, spatial...].  A
window's tap k of the result's place o is element o * stride + k * dilation of the
padded input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nanoloom.graph.keep_nchw import IN_PLANES
from nanoloom.graph.nchw_int8_conv import FROM_PLANES
from nanoloom.graph.shared_decisions import COUNTED, WHOLE_PADS
from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Number
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window_taps import Taps


@dataclass(frozen=True)
class Window:
    """Per spatial axis: window extent, steps, padding and the result's extent.

    high: what the model asks for; a window of ceil_mode (up) may reach further.  whole:
    all of it is there, and as much as windows of any size would reach, though none may.
    in_planes: channels come first.  counted: the image's extents are sizes, and these
    are those of a sample.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    size: tuple[int, ...]
    result: tuple[int, ...]
    whole: bool = False
    in_planes: bool = False
    up: bool = False
    counted: bool = False

    @property
    def rank(self) -> int:
        return len(self.kernel)

    def within(self) -> Window:
        """The same without taps that meet nothing but the border in any window.

        All of them where only a run knows what lies inside, and where sizes decide how
        far windows reach: small images would have other filters.
        """
        axes = self.met()
        kernel = tuple(axis.count for axis in axes)
        if kernel == self.kernel:
            return self
        low = tuple(axis.begin for axis in axes)
        high = tuple(max(axis.behind, 0) for axis in axes)
        return replace(self, kernel=kernel, low=low, high=high, whole=False)

    def along(self, axis: int) -> Window:
        """Windows along one axis, of an image whose axes behind it have results."""

        def alone(numbers: tuple[int, ...], others: int) -> tuple[int, ...]:
            return tuple(n if d == axis else others for d, n in enumerate(numbers))

        return replace(
            self,
            kernel=alone(self.kernel, 1),
            strides=alone(self.strides, 1),
            dilations=alone(self.dilations, 1),
            low=alone(self.low, 0),
            high=alone(self.high, 0),
            size=(*self.size[: axis + 1], *self.result[axis + 1 :]),
            result=(*self.size[:axis], *self.result[axis:]),
        )

    def met(self) -> list[Taps]:
        """Along each axis the taps of `within`."""
        numbers = zip(
            self.size, self.result, self.strides, self.dilations, self.low, strict=True
        )
        axes = [
            Taps(*axis, 0, count - 1)
            for axis, count in zip(numbers, self.kernel, strict=True)
        ]
        all_of_them = self.counted or self.whole or 0 in self.result
        return axes if all_of_them else [axis.within() for axis in axes]

    def filters(self, b: Builder, w: Tensor) -> Tensor:
        """Filters [f, c, taps...] with the taps of `within` alone."""
        axes = self.met()
        shape = *w.shape[:2], *(axis.count for axis in axes)
        first = (0, 0, *(axis.first for axis in axes))
        return w if shape == w.shape else b.slice(w, first, shape)

    def reach(self) -> tuple[int, ...]:
        """How many elements of padded input the windows read along each axis."""
        return tuple(
            max((o - 1) * s + (k - 1) * d + 1, 0)
            for o, s, k, d in zip(
                self.result, self.strides, self.kernel, self.dilations, strict=True
            )
        )

    def pad(self, b: Builder, x: Tensor, number: Number = 0) -> Tensor:
        """A tensor with what windows read around it."""
        return b.pad(self.cut(b, x), *self.margins(), number)

    def cut(self, b: Builder, x: Tensor) -> Tensor:
        """What a single window reads of an axis, without a border.

        Its loop has one step and disappears, and taps next to each other alone must
        tell the extent.  Others are read where they are.
        """
        spatial = x.shape[2:] if self.in_planes else x.shape[1:-1]
        channels = x.shape[1 if self.in_planes else -1]
        parts = zip(spatial, self.reach(), self.low, self.are_single(), strict=True)
        kept = [
            min(max(reach - low, 1), size) if single else size
            for size, reach, low, single in parts
        ]
        shape = self.around(x.shape[0], channels, kept)
        return x if shape == x.shape else b.slice(x, [0] * x.rank, shape)

    def are_single(self) -> list[bool]:
        """Along which axes one window alone stands, of taps next to each other."""
        parts = zip(self.result, self.kernel, self.dilations, strict=True)
        return [o == d == 1 < k for o, k, d in parts]

    def margins(self) -> tuple[list[int], list[int]]:
        """Padding before and after each dimension, as far as windows reach.

        Elements at the end that no window reads stay: nothing is copied for them.
        """
        further = [s - 1 if self.up else 0 for s in self.strides]
        ends = zip(self.high, further, self.are_single(), strict=True)
        least = [z + s if self.whole and not single else 0 for z, s, single in ends]
        high = [
            max(r - s - a, z)
            for r, s, a, z in zip(self.reach(), self.size, self.low, least, strict=True)
        ]
        return [*self.around(0, 0, self.low)], [*self.around(0, 0, high)]

    def around(
        self, images: int, channels: int, spatial: Sequence[int]
    ) -> tuple[int, ...]:
        """What there is of each dimension, in the order of the tensors."""
        if self.in_planes:
            return (images, channels, *spatial)
        return (images, *spatial, channels)

    def taps(self, first: int, window: int) -> list[ir.AffineExpr]:
        """Places in the input: result loops from `first`, tap loops from `window`."""
        return [
            ir.AffineDimExpr.get(first + i) * stride
            + ir.AffineDimExpr.get(window + i) * dilation
            for i, (stride, dilation) in enumerate(
                zip(self.strides, self.dilations, strict=True)
            )
        ]


def window_of(node: Node, size: Sequence[int], kernel: Sequence[int]) -> Window:
    """The windows over an input of spatial extents `size`, from a node's attributes.

    Raises Unsupported for attributes that do not fit together.
    """
    rank = len(size)
    strides = node.ints("strides") or [1] * rank
    dilations = node.ints("dilations") or [1] * rank
    if not len(kernel) == len(strides) == len(dilations) == rank:
        raise node.unsupported(
            f"its window attributes do not fit an input of {rank} spatial dimensions"
        )
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    low, high = padding(node, size, spans, strides)
    up = bool(node.int("ceil_mode"))
    result = [
        extent(s, a, z, span, stride, up)
        for s, a, z, span, stride in zip(size, low, high, spans, strides, strict=True)
    ]
    if min(result, default=1) < 0:
        raise node.unsupported("its window is larger than the padded input")
    parts = (kernel, strides, dilations, low, high, size, result)
    numbers = [tuple(int(v) for v in part) for part in parts]
    return Window(
        *numbers,
        whole=bool(node.int(WHOLE_PADS)),
        in_planes=bool(node.int(IN_PLANES)),
        up=up,
        counted=bool(node.int(COUNTED)),
    )


def extent(size: int, low: int, high: int, span: int, stride: int, up: bool) -> int:
    """Number of windows along one axis; none starts in the padding behind the input.

    What is left over is rounded towards zero: a single window may reach beyond the end
    by less than a stride.
    """
    room = size + low + high - span
    if not up:
        return (room // stride if room >= 0 else -(-room // stride)) + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= size + low else count


def padding(
    node: Node, size: Sequence[int], spans: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Padding before and after each axis, as `auto_pad` or `pads` says."""
    rank, mode = len(size), node.string("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        total = [
            max((-(-s // stride) - 1) * stride + span - s, 0)
            for s, stride, span in zip(size, strides, spans, strict=True)
        ]
        small, large = [t // 2 for t in total], [t - t // 2 for t in total]
        return (small, large) if mode == "SAME_UPPER" else (large, small)
    given = [] if mode == "VALID" else node.ints("pads")
    pads = given or [0] * (2 * rank)
    if mode not in ("NOTSET", "VALID") or len(pads) != 2 * rank or min(pads) < 0:
        raise node.unsupported(f"padding {mode} {pads} is not one that ONNX defines")
    return pads[:rank], pads[rank:]


def channels_first(node: Node) -> bool:
    """Whether input and output are [n, c, spatial...], as ONNX has them."""
    return not node.int("channels_last")


def takes_planes(node: Node) -> bool:
    """Whether the input is [n, c, spatial...]."""
    return channels_first(node) or bool(node.int(FROM_PLANES))


def to_channels_last(b: Builder, node: Node, x: Tensor) -> Tensor:
    """[n, c, spatial...] as [n, spatial..., c], if it is not that already.

    Nothing is turned of what stays in planes.
    """
    if not channels_first(node) or node.int(IN_PLANES):
        return x
    return b.transpose(x, [0, *range(2, x.rank), 1])


def from_channels_last(b: Builder, node: Node, x: Tensor) -> Tensor:
    """[n, spatial..., c] in the order that the node's output has."""
    if not channels_first(node) or node.int(IN_PLANES):
        return x
    return b.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)])


def spatial_size(node: Node, x: Tensor) -> tuple[int, ...]:
    """Spatial extents of a node's input, or of an output in the same order."""
    return x.shape[2:] if takes_planes(node) else x.shape[1:-1]
