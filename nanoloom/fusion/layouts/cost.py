"""What layouts cost: cycles of one core, of products and of what turns tensors.

Products are counted at the target's multiply-adds, with the lanes that nothing is made
in; how well each way of reading and writing reaches that was measured with kernels of
this compiler, on single layers of 1x1 and 3x3 filters, with 24 to 2,048 channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from nanoloom.fusion.layouts.choose import Term
from nanoloom.fusion.layouts.edges import Edges, Product, shape_of
from nanoloom.fusion.layouts.layout import FIRST, LAST, Layout
from nanoloom.fusion.layouts.links import Dim, is_tensor
from nanoloom.ir.linalg_query import (
    Op,
    element_bytes,
    inputs,
    is_contraction,
    is_copy,
    is_generic,
    map_dims,
    maps,
)
from nanoloom.ir.mlir import ir
from nanoloom.target.facts import Target
from nanoloom.target.masked_access import reads_rows_in_part

PACKED = 0.5  # cycles for a number of the image, which is packed at each call then
# Of a product with channels first: its vectors are pixels, or what it reads of a pixel
# lies an image apart, without windows.
IMAGES_APART = 1.12
# And in a page of their own each: cycles for a number of the image, at every panel of
# columns.  More pages are read in turns than a core translates at once.
PAGES_APART, PANEL = 1.2, 4
FEW = 4  # channels of an image that are read at once, for all taps
TRANSLATED = 96  # channels, in a page each: more take longer
# Of vectors of pixels, and of blocks of channels, where a register tile goes over two
# axes of them: what costs the same keeps channels last, and whole.
NOT_LAST = 1.05
TURNED = 1.2  # cycles for an element that is written in another order
# Of a product whose image has channels first: cycles for a number at every panel of
# columns.  It lies in a line of its own, beside few others that the tile wants.  Lines
# take longer where the first-level cache does not hold those of a tile's sum beside its
# panel, and PAGES_APART where they are in more pages than a core translates at once.
# As measured with AVX2 and AVX-512, 16 to 1,632 channels of 7 to 73 pixels a row.
IN_LINES, FROM_L2 = 0.1, 0.6
ROW_REGISTERS = 8  # a panel has a vector for so many: 5 x 2 of 16, 7 x 4 of 32
Choices = dict[Dim, tuple[Layout, ...]]


def terms_of(edges: Edges, choices: Choices, target: Target) -> list[Term[Dim, Layout]]:
    """The cost of a network's layouts, as terms of the sets of channels."""
    made = [of_product(edges, each, choices, target) for each in edges.products]
    made += [of_copy(edges, each, choices, target) for each in edges.copies]
    made += [t for op in edges.elementwise for t in of_elementwise(edges, op, choices)]
    return [term for term in made if term.variables]


def of_product(
    edges: Edges, made: Product, choices: Choices, target: Target
) -> Term[Dim, Layout]:
    """Of a product: how it reads its image, and how it writes its result."""
    result = made.op.operation.results[0]
    read = layouts_of(edges, made.image, choices)
    written = layouts_of(edges, result, choices)
    in_planes = edges.planes and takes_planes(made, target)
    if not is_contraction(made.op):
        in_planes &= not follows_others(edges, made, target)
    costs = {
        (one, other): cycles(made, one, other, target, in_planes=in_planes)
        for one, other in product(read[1], written[1])
    }
    return term_of([read[0], written[0]], costs)


def follows_others(edges: Edges, pool: Product, target: Target) -> bool:
    """Whether a layer without planes makes a pool's image: 2x2 behind 1x1 filters took
    1.2 times as long in planes, with AVX2."""
    find = edges.links.find
    layers = (x for x in edges.products if find(x.features) == find(pool.features))
    return not all(takes_planes(each, target) for each in layers)


def takes_planes(made: Product, target: Target) -> bool:
    """Whether a layer has vectors of pixels: depthwise, or of few channels."""
    few = made.is_depthwise or shape_of(made.image)[-1] <= FEW
    in_part = reads_rows_in_part(target, element_bytes(made.image.type))
    return few and in_part and made.is_window and made.slides


def layouts_of(
    edges: Edges, value: ir.Value, choices: Choices
) -> tuple[Dim | None, tuple[Layout, ...]]:
    """The set that decides how a tensor lies, None for one that stays; its layouts."""
    dim = (value, len(shape_of(value)) - 1)
    root = edges.links.find(dim)
    if root in choices and edges.is_moved(*dim):
        return root, choices[root]
    return None, (LAST,)


def term_of(
    names: list[Dim | None], costs: dict[tuple[Layout, ...], float]
) -> Term[Dim, Layout]:
    """A term of the variables that there are; each once, where two are one."""
    variables = tuple(dict.fromkeys(n for n in names if n is not None))
    table: dict[tuple[Layout, ...], float] = {}
    for key, cost in costs.items():
        given = {n: c for n, c in zip(names, key, strict=True) if n is not None}
        pairs = zip(names, key, strict=True)
        if all(given[n] == c for n, c in pairs if n is not None):
            table[tuple(given[v] for v in variables)] = cost
    return Term(variables, table)


def cycles(
    made: Product, read: Layout, written: Layout, target: Target, *, in_planes: bool
) -> float:
    """Of a product; infinite for what has no kernel worth its name.

    in_planes: whether it can have vectors of pixels.
    """
    shape = shape_of(made.op.operation.results[0])
    features, pixels = shape[-1], prod(shape[:-1])
    if in_planes and read == written == FIRST:
        return NOT_LAST * multiply_adds(made, shape[-2], target)
    if made.is_depthwise and FIRST in (read, written):
        return float("inf")
    if written == FIRST and (read != FIRST or made.is_window):
        return float("inf")
    columns, factor, packed = features, 1.0, 0.0
    if written == FIRST:
        columns, factor = pixels, IMAGES_APART
        packed = PACKED * prod(shape_of(made.image))
    elif read == FIRST and not made.is_window:
        packed = split_axes(made, target)
    elif read == FIRST and shape_of(made.image)[-1] > FEW:
        packed = cycles_apart(made, target)
    if read.block or written.block:
        factor *= NOT_LAST
    return factor * multiply_adds(made, columns, target) + packed


def multiply_adds(made: Product, columns: int, target: Target) -> float:
    """Cycles of a product's multiply-adds, with so many columns in vectors."""
    lanes = target.vector.min_bits // 32
    used = columns / (-(-columns // lanes) * lanes)
    return made.macs / used / (lanes * target.vector.fma_per_cycle)


def split_axes(made: Product, target: Target) -> float:
    """Cycles that a product takes longer whose image has channels first."""
    features = shape_of(made.op.operation.results[0])[-1]
    longer = (IMAGES_APART - 1) * multiply_adds(made, features, target)
    *pixels, channels = shape_of(made.image)
    if 4 * prod(pixels) < target.caches.page:
        return longer
    panels = -(-features // (PANEL * target.vector.min_bits // 32))
    return longer + PAGES_APART * prod(pixels) * channels * panels


def is_faster_turned(made: Product, target: Target) -> bool:
    """Whether a product whose image has channels first is slower than with a copy of it
    that has them last, the copy's time counted.

    Images of few channels are read at once for all taps.
    """
    few = shape_of(made.image)[-1] <= FEW or made.is_depthwise
    if few or target.vector.scalable:
        return False
    return TURNED * prod(shape_of(made.image)) < cycles_apart(made, target)


def cycles_apart(made: Product, target: Target) -> float:
    """What reading channels first takes longer than channels last."""
    *pixels, channels = shape_of(made.image)
    result, unit = shape_of(made.op.operation.results[0]), target.vector
    panel = unit.min_bits // 32 * (unit.registers // ROW_REGISTERS)
    tile = target.caches.line * made.rows_summed + 4 * panel * (
        made.macs // prod(result)
    )
    longer = IN_LINES
    if 4 * prod(pixels) >= target.caches.page and channels > TRANSLATED:
        longer += PAGES_APART
    elif tile > target.caches.l1d:
        longer += FROM_L2
    return longer * made.macs / panel


def of_copy(
    edges: Edges, op: Op, choices: Choices, target: Target
) -> Term[Dim, Layout]:
    """Of a copy: nothing if both sides lie alike, or what its readers take longer."""
    source, result = inputs(op)[0], op.operation.results[0]
    read = layouts_of(edges, source, choices)
    written = layouts_of(edges, result, choices)
    readers = [use.owner.opview for use in result.uses]
    read_so = all(is_generic(reader) and not is_copy(reader) for reader in readers)
    cost = TURNED * prod(shape_of(result))
    if read_so:
        reading = (p for p in edges.products if p.image == result and not p.is_window)
        cost = sum(split_axes(each, target) for each in reading)
    costs = {
        (one, other): cost * is_transposed(edges, op, one, other)
        for one, other in product(read[1], written[1])
    }
    return term_of([read[0], written[0]], costs)


def of_elementwise(
    edges: Edges, op: Op, choices: Choices
) -> Iterator[Term[Dim, Layout]]:
    """Of what reads a tensor that stays, and writes one that may not: it turns it."""
    result = op.operation.results[0]
    shape, written = shape_of(result), layouts_of(edges, result, choices)
    for value in inputs(op):
        if not is_tensor(value) or shape_of(value) != shape:
            continue
        read = layouts_of(edges, value, choices)
        if read[0] != written[0]:
            costs = {
                (one, other): TURNED * prod(shape) * (one != other)
                for one, other in product(read[1], written[1])
            }
            yield term_of([read[0], written[0]], costs)


def is_transposed(edges: Edges, op: Op, read: Layout, written: Layout) -> bool:
    """Whether a copy writes in another order than it reads, in these layouts."""
    source, result = inputs(op)[0], op.operation.results[0]
    orders: list[list[tuple[int | None, object]]] = []
    for value, way, layout in zip(
        (source, result), maps(op), (read, written), strict=True
    ):
        axes = map_dims(way)
        places = layout.places(len(axes), edges.front(value)) if axes else []
        orders.append([(axes[d], piece) for d, piece in places])
    return orders[0] != orders[1]
