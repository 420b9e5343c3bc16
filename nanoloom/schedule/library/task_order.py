"""Which of a product's tasks follow one another.

    for panel: for block of rows: task    the left operand comes once for each panel
    for block of rows: for panel: task    the right one once for each block

What fits into the second-level cache comes once in either order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nanoloom.nest.contraction import Contraction, bits
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.target.facts import Target

Trips = dict[int, int]  # of the loops over tasks, outermost first, by their axes
Operand = tuple[set[int], int]  # the axes that it depends on, and its bytes


def slowest_axis(
    nest: LoopNest,
    root: Statement,
    shape: Contraction,
    sizes: dict[int, int],
    target: Target,
    packed: str = "",
) -> int | None:
    """The axis of a product that is to change most rarely from task to task.

    sizes: of tasks along its axes, as loops go over them; 0 for a whole one.  packed:
    the type that the right operand is packed as, "" for its own.  None where no order
    moves fewer bytes than that of the loops, or they are not known.
    """
    trips = {d: -(-shape.extents[d] // size) for d, size in sizes.items() if size}
    left, right = (root.reads[n] for n in (shape.left, shape.right))
    image = [n for n in nest.buffer(left.buffer).shape if isinstance(n, int)]
    if len(image) < len(nest.buffer(left.buffer).shape):
        return None
    reduced = prod(shape.extents[d] for d in shape.reduced)
    columns = shape.column, *shape.shared
    weights = reduced * prod(shape.extents[d] for d in columns)
    operands = (
        ({*shape.rows, *shape.shared}, prod(image) * bits(left.element) // 8),
        ({*columns}, weights * bits(packed or right.element) // 8),
    )

    def moved(order: Trips) -> int:
        return traffic(order, operands, target.caches.l2)

    orders = [trips, *({first: count, **trips} for first, count in trips.items())]
    best = min(orders, key=moved, default=trips)
    return None if moved(best) == moved(trips) else next(iter(best))


def traffic(order: Trips, operands: Sequence[Operand], cache: int) -> int:
    """Bytes of all operands that come from beyond a cache.

    A loop along an axis of none of an operand's brings again what the loops inside of
    it read of it, unless that stays in the cache beside what they read of the others.
    """
    parts = [
        size // prod(count for d, count in order.items() if d in axes)
        for axes, size in operands
    ]
    moved = [size for _, size in operands]
    for axis, count in reversed(order.items()):
        stays = sum(parts) <= cache
        for n, (axes, _) in enumerate(operands):
            if axis in axes:
                parts[n] *= count
            elif not stays:
                moved[n] *= count
    return sum(moved)
