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
from nanoloom.nest.granularity import JAMMED, sums_in_registers
from nanoloom.target.facts import MOST_VECTORS, Target
from nanoloom.target.masked_access import reads_rows_in_part

FEW = 4  # channels of an image that are read at once, for all taps
# Of a product of channels first: its vectors are pixels, or what it reads of a pixel
# lies an image apart, without windows.
APART = 1.12
# Cycles for a number of an image of channels first, at every panel of columns: it lies
# in a line of its own, beside few others that the tile wants.  As measured with AVX2
# and AVX-512, 16 to 1,632 channels of 7 to 73 pixels a row.
IN_LINES = 0.1
Choices = dict[Dim, tuple[Layout, ...]]


def terms_of(edges: Edges, choices: Choices, target: Target) -> list[Term[Dim, Layout]]:
    """The cost of a network's layouts, as terms of the sets of channels."""
    made = [of_product(edges, each, choices, target) for each in edges.products]
    made += [of_copy(edges, each, choices, target) for each in edges.copies]
    made += [
        t
        for op in edges.elementwise
        for t in of_elementwise(edges, op, choices, target)
    ]
    return [term for term in made if term.variables]


def of_product(
    edges: Edges, made: Product, choices: Choices, target: Target
) -> Term[Dim, Layout]:
    """Of a product: how it reads its image, and how it writes its result."""
    result = made.op.operation.results[0]
    read = layouts_of(edges, made.image, choices)
    written = layouts_of(edges, result, choices)
    in_planes = edges.planes and takes_planes(edges, made, target)
    if not is_contraction(made.op):
        in_planes &= not follows_others(edges, made, target)

    def cost(one: Layout, other: Layout) -> float:
        lie = edges.lies(made.image, one), edges.lies(result, other)
        return cycles(made, *lie, target, in_planes=in_planes)

    costs = {pair: cost(*pair) for pair in product(read[1], written[1])}
    return term_of([read[0], written[0]], costs)


def follows_others(edges: Edges, pool: Product, target: Target) -> bool:
    """Whether a layer without planes makes a pool's image: 2x2 behind 1x1 filters took
    1.2 times as long in planes, with AVX2."""
    find = edges.links.find
    layers = (x for x in edges.products if find(x.features) == find(pool.features))
    return not all(takes_planes(edges, each, target) for each in layers)


def takes_planes(edges: Edges, made: Product, target: Target) -> bool:
    """Whether a layer has vectors of pixels: depthwise, or of few channels.

    Not a dense one of any size: what its tiles leave took 1.2 times as long.  Nor where
    registers hold sums of a single row of pixels: each of them waits for a filter's
    number of its own.
    """
    if not (made.is_window and made.slides):
        return False
    few = edges.known and shape_of(made.image)[-1] <= FEW
    several = sums_in_registers(target.vector.registers) >= 2 * JAMMED * made.step
    in_part = reads_rows_in_part(target, element_bytes(made.image.type))
    return (made.is_depthwise or (few and several)) and in_part


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

    in_planes: whether it can have vectors of pixels.  What costs the same keeps
    channels last, and whole (choose.py).
    """
    shape = shape_of(made.op.operation.results[0])
    features = shape[-1]
    if in_planes and read == written == FIRST:
        return multiply_adds(made, shape[-2], target)
    if made.is_depthwise and FIRST in (read, written):
        return float("inf")
    if written == FIRST and (read != FIRST or made.is_window):
        return float("inf")
    columns, factor, packed = features, 1.0, 0.0
    if written == FIRST:
        columns, factor = made.pixels_in_vectors, APART
        # At each call, along rows of pixels.
        packed = transposed(made.image, target) / 2
    elif read == FIRST and not made.is_window:
        packed = split_axes(made, target)
    elif read == FIRST and shape_of(made.image)[-1] > FEW:
        packed = cycles_apart(made, target)
    return factor * multiply_adds(made, columns, target) + packed


def multiply_adds(made: Product, columns: int, target: Target) -> float:
    """Cycles of a product's multiply-adds, with so many columns in vectors."""
    lanes = target.vector.min_bits // 32
    used = columns / (-(-columns // lanes) * lanes)
    return made.macs / used / (lanes * target.vector.fma_per_cycle)


def transposed(value: ir.Value, target: Target) -> float:
    """Cycles of a copy of a tensor in another order: of each number an instruction of
    its own, and its way out of the second-level cache.  1.2 were measured, and as much
    where numbers are read in a page of their own each."""
    caches, size = target.caches, element_bytes(value.type)
    return prod(shape_of(value)) * (1 + caches.l3_cycles * size / caches.line)


def split_axes(made: Product, target: Target) -> float:
    """Cycles that a product takes longer whose image has channels first."""
    features = shape_of(made.op.operation.results[0])[-1]
    longer = (APART - 1) * multiply_adds(made, features, target)
    if lies_in_pages(made, target):
        longer += transposed(made.image, target) * max(1, times_read(made, target))
    return longer


def lies_in_pages(made: Product, target: Target) -> bool:
    """Whether the channels of a pixel are in a page of their own each."""
    return 4 * prod(shape_of(made.image)[:-1]) >= target.caches.page


def panel(target: Target) -> int:
    """Columns of a register tile, about: 5 x 2 vectors of 16, 7 x 4 of 32."""
    unit = target.vector
    return unit.min_bits // 32 * (unit.registers // MOST_VECTORS)


def times_read(made: Product, target: Target) -> float:
    """How often a product reads its image: at every panel of columns, for all taps."""
    return made.macs / panel(target) / prod(shape_of(made.image))


def is_faster_turned(made: Product, target: Target) -> bool:
    """Whether a product whose image has channels first is slower than with a copy of it
    that has them last, the copy's time counted.

    Images of few channels are read at once for all taps.
    """
    few = shape_of(made.image)[-1] <= FEW or made.is_depthwise
    if few or target.vector.scalable:
        return False
    return transposed(made.image, target) < cycles_apart(made, target)


def cycles_apart(made: Product, target: Target) -> float:
    """What reading channels first takes longer than channels last.

    Lines take longer where the first-level cache does not hold those of a tile's sum
    beside its panel: half of what turning takes; and all of it where they are in more
    pages than a core translates at once.
    """
    image, caches = shape_of(made.image), target.caches
    steps = made.macs // prod(shape_of(made.op.operation.results[0]))
    tile = caches.line * made.rows_summed + 4 * panel(target) * steps
    longer = IN_LINES * prod(image)
    if lies_in_pages(made, target) and image[-1] > caches.pages:
        longer += transposed(made.image, target)
    elif tile > caches.l1d:
        longer += transposed(made.image, target) / 2
    return longer * times_read(made, target)


def of_copy(
    edges: Edges, op: Op, choices: Choices, target: Target
) -> Term[Dim, Layout]:
    """Of a copy: nothing if both sides lie alike, or what its readers take longer."""
    source, result = inputs(op)[0], op.operation.results[0]
    read = layouts_of(edges, source, choices)
    written = layouts_of(edges, result, choices)
    readers = [use.owner.opview for use in result.uses]
    read_so = all(is_generic(reader) and not is_copy(reader) for reader in readers)
    cost = transposed(result, target)
    if read_so:
        reading = (p for p in edges.products if p.image == result and not p.is_window)
        cost = sum(split_axes(each, target) for each in reading)
    costs = {
        (one, other): cost * is_transposed(edges, op, one, other)
        for one, other in product(read[1], written[1])
    }
    return term_of([read[0], written[0]], costs)


def of_elementwise(
    edges: Edges, op: Op, choices: Choices, target: Target
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
                (one, other): transposed(value, target) * (one != other)
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
