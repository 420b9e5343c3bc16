"""Windows over images whose height and width are sizes: how many there are.

Along an axis of x elements, a in front of them and b behind,

    (x + a + b - span) // stride + 1

which is a floor where the stride is no divisor (dynamic/fit_floors.py).  A convolution
by Winograd's method has (y + 3) // 4 tiles of 4 results, or (y + 1) // 2 of 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.dynamic.dynamic_refusal import NotDynamic, Others
from nanoloom.dynamic.dynamic_resizing import extents, is_steady, resized, shapes, text
from nanoloom.dynamic.fit_floors import Samples, divided
from nanoloom.dynamic.floor_division import plain
from nanoloom.dynamic.polynomial import Dims, Size, found
from nanoloom.dynamic.sample_walk import Visit
from nanoloom.graph.shared_decisions import RESIZING
from nanoloom.graph.winograd import STRIDES, TAPS, TILES

Numbers = tuple[int, ...]  # one for each sample
SAME = ("SAME_UPPER", "SAME_LOWER")
DENSE = ("Conv", "ConvInteger", "QLinearConv")
TEXT = 3  # axes: a batch, channels, words


@dataclass(frozen=True)
class Windows:
    """Those of a node along one axis, as its attributes say."""

    span: int
    stride: int
    low: int
    high: int
    mode: str  # auto_pad
    up: bool  # ceil_mode

    def count(self, extent: Numbers, samples: Samples) -> Size:
        """How many stand on an axis of these extents; samples may get a floor.

        Raises Differs where what is left over decides more than the number.
        """
        if self.mode in SAME:
            whole = [divmod(n, self.stride)[1] == 0 for n in extent]
            if self.stride > 1 and not all(whole):
                raise NotDynamic(
                    "pads that depend on what is left over", others=Others.ANY
                )
            return divided(extent, self.stride, samples)
        if self.up and self.high + self.stride > self.span:
            # None begins in the padding behind: the last one in front of its end.
            room = divided([n + self.low - 1 for n in extent], self.stride, samples)
            return plus(room, 1)
        pads = 0 if self.mode == "VALID" else self.low + self.high
        more = pads - self.span + (self.stride - 1) * self.up
        room = divided([n + more for n in extent], self.stride, samples)
        return plus(room, 1)


def plus(size: Size, number: int) -> Size:
    terms = {names: c for c, names in size.terms}
    terms[()] = terms.get((), 0) + number
    return Size(tuple((c, names) for names, c in terms.items() if c))


def windows_of(node: ir.Node, kernel: Sequence[int]) -> list[Windows]:
    """Of a node, one for each spatial axis."""
    rank = len(kernel)
    strides = ints(node, "strides") or [1] * rank
    dilations = ints(node, "dilations") or [1] * rank
    pads = ints(node, "pads") or [0] * (2 * rank)
    mode = text(node, "auto_pad", "NOTSET")
    up = node.attributes.get("ceil_mode")
    return [
        Windows(
            (kernel[i] - 1) * dilations[i] + 1,
            strides[i],
            pads[i],
            pads[rank + i],
            mode,
            isinstance(up, ir.Attr) and bool(up.as_int()),
        )
        for i in range(rank)
    ]


def ints(node: ir.Node, name: str) -> list[int]:
    found = node.attributes.get(name)
    return list(found.as_ints()) if isinstance(found, ir.Attr) else []


def counted(visits: Sequence[Visit], samples: Samples) -> list[Numbers]:
    """What may not be below 0 for a node of windows; samples get its floors.

    Raises Differs for one that has other numbers of them than its shapes say.
    """
    node = visits[0].node
    images, made = shapes([v.inputs[0] for v in visits]), outputs(visits)
    kernel = kernel_of(visits)
    limits: list[Numbers] = []
    for i, windows in enumerate(windows_of(node, kernel)):
        extent, result = (tuple(s[2 + i] for s in row) for row in (images, made))
        if len(set(extent)) == 1:
            continue
        size = windows.count(extent, samples)
        if tuple(size.of(sample) for sample in samples) != result:
            raise NotDynamic("other numbers of windows than are known")
        for tile in TILES if is_dense(visits, kernel) else ():
            divided([n + tile - 1 for n in result], tile, samples)
        limits.append(tuple(n - 1 for n in result))
    return limits


def is_dense(visits: Sequence[Visit], kernel: Sequence[int]) -> bool:
    """Whether Winograd's method may compute it."""
    first = visits[0]
    strides, gaps = ({*ints(first.node, n)} for n in ("strides", "dilations"))
    three = list(kernel) == [TAPS, TAPS] and first.operator in DENSE
    return three and strides <= set(STRIDES) and gaps <= {1}


def are_steady(visits: Sequence[Visit], samples: Sequence[Dims]) -> bool:
    """Whether windows go one by one along a text whose length is a size.

    Then there are as many as words, and a number: no floor, whatever the samples. Nor
    is there one where images have the same extents in all of them; but if nothing else
    than a batch is open, each of its rows alone is a faster program.
    """
    texts = shapes([v.inputs[0] for v in visits])
    if len({shape[2:] for shape in texts}) == 1:
        return len(plain(samples[0])) > 1
    if WINDOWS[visits[0].operator] is not counted or len(texts[0]) != TEXT:
        return False
    (windows,) = windows_of(visits[0].node, kernel_of(visits))
    return windows.stride == 1 and len({length for *_, length in texts}) > 1


def is_fixed(visits: Sequence[Visit]) -> bool:
    """Whether a node's windows and tables are the same in all samples.

    Those over images of the same extents are.
    """
    if visits[0].operator in RESIZING:
        return is_steady(visits)
    if visits[0].operator == "CenterCropPad":
        return all(b == a or {*b, *a} == {b[0], a[0]} for _, b, a in extents(visits))
    images = [v.inputs[0] for v in visits]
    rows = {None if x is None or x.shape is None else x.shape[1:] for x in images}
    return len(rows) == 1 and None not in rows


def changing_axes(visits: Sequence[Visit]) -> set[int]:
    """Along which axes an image has another extent behind a node, in some sample."""
    found = set[int]()
    for visit in visits:
        before, after = visit.inputs[0], visit.outputs[0].shape
        pairs = enumerate(
            zip((before and before.shape) or (), after or (), strict=False)
        )
        found.update(axis for axis, (a, b) in pairs if a != b)
    return found


def kernel_of(visits: Sequence[Visit]) -> list[int]:
    """Extents of the windows: the node's, or those of the filters behind channels."""
    given = ints(visits[0].node, "kernel_shape")
    place = 3 if visits[0].operator == "QLinearConv" else 1
    return given or list(shapes([v.inputs[place] for v in visits])[0][2:])


def spread(visits: Sequence[Visit], samples: Samples) -> list[Numbers]:
    """ConvTranspose: a multiple of each extent, and a number."""
    if ints(visits[0].node, "output_shape"):
        raise NotDynamic("its output_shape gives extents")
    return polynomial(visits, samples)


def padded(visits: Sequence[Visit], samples: Samples) -> list[Numbers]:
    """Pad: as much for all sizes, with a number or an axis' own rows."""
    inputs = visits[0].inputs
    rows = [v.inputs[1] for v in visits if len(inputs) > 1]
    given = [None if x is None or x.numbers is None else tuple(x.numbers) for x in rows]
    mode = text(visits[0].node, "mode", "constant")
    polynomial(visits, samples)
    if len(set(given)) > 1:
        return padded_behind(given, mode)
    pads = given[0] if given else ints(visits[0].node, "pads")
    if pads is None or min(pads, default=0) < 0:
        return is_cut(visits, mode, pads or ())
    return [] if mode == "constant" else has_rows(visits, mode, max(pads, default=0))


def padded_behind(given: Sequence[Numbers | None], mode: str) -> list[Numbers]:
    """Pads behind axes that depend on sizes, as up to a multiple: none is below 0."""
    pads = [row for row in given if row is not None]
    half = len(pads[0]) // 2 if pads else 0
    alike = len({row[:half] for row in pads}) == 1 and len({*map(len, pads)}) == 1
    if mode != "constant" or len(pads) < len(given) or not alike:
        raise NotDynamic("pads that depend on sizes")
    if any(min(row) < 0 for row in pads):
        raise NotDynamic("pads that depend on sizes, and are below 0 for some")
    columns = zip(*[[int(n) for n in row] for row in pads], strict=True)
    return [column for column in columns if len({*column}) > 1]


def is_cut(visits: Sequence[Visit], mode: str, pads: Sequence[int]) -> list[Numbers]:
    """An axis has as many elements as pads below 0 cut off it."""
    images = shapes([v.inputs[0] for v in visits])
    rank = len(images[0])
    if mode != "constant" or len(pads) != 2 * rank:
        raise NotDynamic("pads below 0 cut off what sizes have")
    cuts = [min(pads[d], 0) + min(pads[rank + d], 0) for d in range(rank)]
    rows = zip(*images, strict=True)
    return [
        tuple(int(n + cut) for n in row)
        for row, cut in zip(rows, cuts, strict=True)
        if cut and len(set(row)) > 1
    ]


def has_rows(visits: Sequence[Visit], mode: str, most: int) -> list[Numbers]:
    """An axis that is a size has so many rows that none is used twice at one end."""
    least = {"edge": 1, "reflect": most + 1, "wrap": most}[mode]
    images = shapes([v.inputs[0] for v in visits])
    limits: list[Numbers] = []
    for before, after in zip(
        zip(*images, strict=True), zip(*outputs(visits), strict=True), strict=True
    ):
        if len(set(before)) > 1 and before != after:
            limits.append(tuple(int(n - least) for n in before))
    if any(min(row) < 0 for row in limits):
        raise NotDynamic(f"mode {mode}: it pads with more rows than there may be")
    return limits


def polynomial(visits: Sequence[Visit], samples: Samples) -> list[Numbers]:
    """Elements that are only moved: to extents that are sizes."""
    for row in zip(*outputs(visits), strict=True):
        if found(row, samples) is None:
            raise NotDynamic("extents that are no multiples of its input's")
    return []


def outputs(visits: Sequence[Visit]) -> list[tuple[int, ...]]:
    return shapes([v.outputs[0] for v in visits])


Rule = Callable[[Sequence[Visit], Samples], list[Numbers]]
WINDOWS: dict[str, Rule] = {
    **dict.fromkeys(
        (
            "AveragePool",
            "Conv",
            "ConvInteger",
            "DeformConv",
            "LpPool",
            "MaxPool",
            "QLinearConv",
        ),
        counted,
    ),
    "ConvTranspose": spread,
    "DepthToSpace": polynomial,
    "Pad": padded,
    "Resize": resized,
    "SpaceToDepth": polynomial,
    "Upsample": resized,
}
# Those without a floor: for them any samples do, as for some others (`are_steady`).
ONLY_MOVED = ("DepthToSpace", "Pad", "Resize", "SpaceToDepth", "Upsample")
