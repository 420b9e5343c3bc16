"""Which left operands come into the cache before their tiles read them.

An image that outweighs the second-level cache is in none that is near: each time that
it goes by, tiles wait for all of it.  As measured on AVX-512 (2 MiB), 3x3 with stride:
96 x 112 x 112 takes 0.94 of the time, 64 x 224 x 224 without 0.96, 128 x 56 x 56 0.98.
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import bits, lhs_is_k_contiguous
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.families import FMA_FAMILY
from nanoloom.schedule.language import Directives, Nanokernel, Peel, Prefetch
from nanoloom.schedule.library.nanokernels import LINES, Operands
from nanoloom.schedule.library.panels import known_bytes, row_of
from nanoloom.target.facts import Target


def prefetch_lhs(
    nest: LoopNest,
    loops: Directives,
    plan: Nanokernel,
    product: Operands,
    target: Target,
) -> tuple[Prefetch, ...]:
    """A round of the sum's outermost axis ahead; of a sum of one axis, a tile of rows.

    Where the sum is cut, its rows stay in the cache as they are.  Few rows that a tile
    reads at once are followed by the processor: of three, as on AVX2, 128 x 56 x 56
    takes 1.03 of the time.
    """
    if any(isinstance(word, Peel) for word in loops):
        return ()
    root, shape = product.root, product.shape
    left = nest.buffer(product.left.buffer)
    size = known_bytes(left)
    alone = plan.rows < LINES or row_of(shape) is None or nest.in_front(root.name)
    plain = product.family is FMA_FAMILY and product.packed and not plan.convert_lhs
    if alone or not plain or left.argument < 0 or size is None:
        return ()
    outer, *inner = (shape.extents[d] for d in shape.reduced)
    long = (inner or [outer])[-1] * bits(left.element) // 8 >= target.caches.line
    far = size > target.caches.resident
    if not far or not long or not lhs_is_k_contiguous(root, shape):
        return ()
    steps = prod(inner) if inner else outer
    return (Prefetch(left.argument, ahead=steps, level=2),)
