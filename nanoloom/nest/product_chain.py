"""Two products with sums along rows between them: attention is one.

    a = x w, and what follows at the same places
    p = f(a), each row of it by itself: a softmax, a normalization
    y = p v, and what follows at the same places

A task that computes some whole rows of `a` needs nothing of the others: they are in the
cache until the second product has read them, and never in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.nest.contraction import (
    Contraction,
    bits,
    is_product,
    lanes_along_k,
    roles,
)
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.target.facts import Cache


@dataclass(frozen=True)
class ProductChain:
    """The products of a nest, first and last, and the roles of their axes."""

    first: Statement
    last: Statement
    inner: Contraction
    outer: Contraction


def chain_of(nest: LoopNest) -> ProductChain | None:
    """The two products of a nest whose plan has what is between them in the second."""
    for fusion in nest.plan:
        last, before = nest.stage(fusion.consumer), nest.upstream(fusion.producer)
        first = [stage for stage in before if stage.is_contraction]
        if is_product(last) and first:
            inner, outer = begins(first[0]), ends(last)
            assert inner is not None and outer is not None, "a chain was planned"
            return ProductChain(first[0], last, inner, outer)
    return None


def begins(product: Statement) -> Contraction | None:
    """The roles of a product's axes, if a chain can begin with it."""
    shape = roles(product)
    if shape is None or not is_tileable(shape):
        return None
    by_vectors = shape.contiguous or lanes_along_k(product, shape)
    return shape if by_vectors else None


def ends(product: Statement) -> Contraction | None:
    """The roles of a product's axes, if a chain can end with it.

    Its left operand is [shared..., row, reduced], as what goes along rows writes it.
    """
    shape = begins(product)
    if shape is None or not shape.contiguous:
        return None
    wanted = [*shape.shared, *shape.rows, *shape.reduced]
    read = product.reads[shape.left].plain
    return shape if read == tuple(product.names[place] for place in wanted) else None


def fits(shape: Contraction, caches: Cache) -> bool:
    """Whether a row of a product leaves room in the second-level cache: it is written
    once and read thrice."""
    return shape.extents[shape.column] * bits("f32") // 8 <= caches.panel


def is_tileable(shape: Contraction) -> bool:
    """Whether register tiles can run over rows and columns of both operands.

    A single row, as of the next word of a text, is no axis of its own.
    """
    few = len(shape.rows) < 2 and len(shape.reduced) == 1 and not shape.other_columns
    return few and shape.extents[shape.column] > 0
