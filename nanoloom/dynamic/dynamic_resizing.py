"""Resize and Upsample of images whose height and width are sizes.

A scale that is given makes floor(scale * x) rows of x, where the scale is a fraction of
two whole numbers, as every float is.  Extents that are given are sizes as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import onnx_ir as ir

from nanoloom.dynamic.dynamic_refusal import NotDynamic, Others
from nanoloom.dynamic.fit_floors import Samples, divided
from nanoloom.dynamic.polynomial import found
from nanoloom.dynamic.sample_walk import NodeSample, Visit
from nanoloom.dynamic.samples import are_of_images

Numbers = tuple[int, ...]  # one for each sample
TRANSFORM = "coordinate_transformation_mode"
HALVES = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")


def resized(visits: Sequence[Visit], samples: Samples) -> list[Numbers]:
    """What may not be below 0.  Samples get a floor for each such scale."""
    node = visits[0].node
    scales = scales_of(visits)
    if scales is not None:
        for d, before, after in extents(visits):
            if scaled(before, scales.get(d, Fraction(1)), samples) != after:
                raise NotDynamic(f"axis {d} has another extent than its scale says")
        return []
    policy = text(node, "keep_aspect_ratio_policy", "stretch")
    if len(axes_of(visits)) > 1 and policy != "stretch":
        raise NotDynamic(f"{policy}: one axis decides about the extents of all")
    limits: list[Numbers] = []
    for d, before, after in extents(visits):
        if found(after, samples) is None:
            raise NotDynamic(f"axis {d} has an extent that is no known function")
        if is_set(node, "antialias") and before != after:
            limits += stretched(d, before, after, samples)
    return limits


def scaled(before: Numbers, scale: Fraction, samples: Samples) -> Numbers:
    """floor(scale * x) by samples, which get a floor for it."""
    over = scale.denominator
    many = [scale.numerator * n for n in before]
    if over == 1:
        return tuple(many)
    require_images(samples)
    size = divided(many, over, samples)
    return tuple(size.of(sample) for sample in samples)


def stretched(
    axis: int, before: Numbers, after: Numbers, samples: Samples
) -> list[Numbers]:
    """A filter has as many taps as an axis shrinks by: a number, or a floor."""
    times = [-(-a // b) for a, b in zip(before, after, strict=True)]
    if len(set(times)) == 1:
        pairs = zip(before, after, strict=True)
        return [tuple(times[0] * b - a for a, b in pairs)]
    if len(set(after)) > 1:
        taps = "antialias takes as many taps as a quotient of sizes says"
        raise NotDynamic(f"axis {axis}: {taps}")
    require_images(samples)
    divided([n + after[0] - 1 for n in before], after[0], samples)
    return []


def require_images(samples: Samples) -> None:
    if not are_of_images(samples):
        raise NotDynamic("a scale that is no whole number", others=Others.OF_IMAGES)


def is_steady(visits: Sequence[Visit]) -> bool:
    """Whether its tables are the same for all sizes, or none.

    An image of known extents, to known ones; or each element a whole number of times,
    the same for all sizes, which takes no table (linalg/movement/resizing.py).
    """
    pairs = [(v.inputs[0], v.outputs[0]) for v in visits]
    known = [
        (x.shape, y.shape)
        for x, y in pairs
        if x is not None and x.shape is not None and y.shape is not None
    ]
    if len(known) < len(visits) or any(x[:1] != y[:1] for x, y in known):
        return False
    if len({(x[1:], y[1:]) for x, y in known}) == 1:
        return True
    return all(is_repeat(visits[0], b, a) for _, b, a in extents(visits) if b != a)


def is_repeat(visit: Visit, before: Numbers, after: Numbers) -> bool:
    """Whether each element along an axis is there so many times, one after another."""
    times = {divmod(b, a) for a, b in zip(before, after, strict=True)}
    (count, rest), *others = times
    node = visit.node
    if others or rest or count < 1 or text(node, "mode", "nearest") != "nearest":
        return False
    if is_legacy(node):
        return True
    moved = text(node, TRANSFORM, "half_pixel")
    rounding = text(node, "nearest_mode", "round_prefer_floor")
    if moved in HALVES:
        return rounding.startswith("round")
    if moved != "asymmetric":
        return False
    return rounding == "floor" or (rounding == "round_prefer_floor" and count <= 2)


def is_legacy(node: ir.Node) -> bool:
    """Before opset 11, which gave it coordinates."""
    return node.op_type == "Upsample" or len(node.inputs) < 3


def extents(visits: Sequence[Visit]) -> list[tuple[int, Numbers, Numbers]]:
    """Of each axis, before and behind, by samples."""
    before = zip(*shapes([v.inputs[0] for v in visits]), strict=True)
    after = zip(*shapes([v.outputs[0] for v in visits]), strict=True)
    pairs = enumerate(zip(before, after, strict=True))
    return [(d, one, other) for d, (one, other) in pairs]


def axes_of(visits: Sequence[Visit]) -> list[int]:
    """Those that scales and extents are given for."""
    rank = len(shapes([visits[0].inputs[0]])[0])
    given = visits[0].node.attributes.get("axes")
    axes = list(given.as_ints()) if isinstance(given, ir.Attr) else list(range(rank))
    return [a % rank for a in axes]


def scales_of(visits: Sequence[Visit]) -> dict[int, Fraction] | None:
    """Of the axes, as the model gives them; None for extents.

    Raises Differs for scales that are computed from sizes.
    """
    rows = [floats_of(visit) for visit in visits]
    if rows[0] is None:
        return None
    if any(row != rows[0] for row in rows[1:]):
        raise NotDynamic(
            "its scales are computed from sizes; give it the extents (input sizes)"
        )
    return dict(zip(axes_of(visits), map(Fraction, rows[0]), strict=True))


def floats_of(visit: Visit) -> list[float] | None:
    node = visit.node
    given = node.attributes.get("scales")
    if isinstance(given, ir.Attr):
        return [float(np.float32(x)) for x in given.as_floats()]
    place = 1 if is_legacy(node) else 2
    value = node.inputs[place] if len(node.inputs) > place else None
    tensor = None if value is None else value.const_value
    if value is None or (tensor is not None and not tensor.size):
        return None
    if tensor is None:
        raise NotDynamic("its scales are computed when it runs")
    return [float(x) for x in tensor.numpy().flat]


def text(node: ir.Node, name: str, default: str) -> str:
    given = node.attributes.get(name)
    return given.as_string() if isinstance(given, ir.Attr) else default


def is_set(node: ir.Node, name: str) -> bool:
    given = node.attributes.get(name)
    return isinstance(given, ir.Attr) and bool(given.as_int())


def shapes(values: Sequence[NodeSample | None]) -> list[tuple[int, ...]]:
    known = [x.shape for x in values if x is not None and x.shape is not None]
    if len(known) < len(values):
        raise NotDynamic("an input of unknown shape")
    return known
