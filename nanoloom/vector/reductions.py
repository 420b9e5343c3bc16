"""Reductions along the vector dimension: lanes and accumulators folded at the end.

Several vectors of partial results are carried through the loop, because one alone would
wait for its own latency at every step.  They are combined in a fixed order, so that the
result depends on the shape only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanoloom.mlir import arith, ir, memref, scf, vector
from nanoloom.vector.access import add, index
from nanoloom.vector.body import VectorBody
from nanoloom.vector.extents import is_same, rounded_down

if TYPE_CHECKING:
    from nanoloom.vector.loops import Loops


def reduce_along(loops: Loops, ivs: list[ir.Value]) -> None:
    """Outputs are single elements; lanes and accumulators are folded at the end."""
    others = [
        d for d, k in enumerate(loops.kinds) if k == "reduction" and d != loops.dim
    ]
    count = len(loops.outputs)
    start = [
        vector.broadcast(ir.VectorType.get([loops.lanes], x.element), c.neutral())
        for c, x in zip(loops.combiners, loops.outputs, strict=True)
    ] * loops.chains
    totals = reduce_nest(loops, others, ivs, start)
    for i, (c, x) in enumerate(zip(loops.combiners, loops.outputs, strict=True)):
        chains = [totals[a * count + i] for a in range(loops.chains)]
        while len(chains) > 1:
            chains = [
                c.apply(chains[j], chains[j + 1]) for j in range(0, len(chains), 2)
            ]
        at = x.indices(ivs)
        lone = c.across(chains[0])
        memref.store(c.apply(memref.load(x.buffer, at), lone), x.buffer, at)


def reduce_nest(
    loops: Loops, dims: list[int], ivs: list[ir.Value], values: list[ir.Value]
) -> list[ir.Value]:
    if not dims:
        return reduce_strip(loops, ivs, values)
    loop = scf.ForOp(index(0), loops.extent(dims[0]), index(1), values)
    with ir.InsertionPoint(loop.body):
        here = list(ivs)
        here[dims[0]] = loop.induction_variable
        scf.yield_(reduce_nest(loops, dims[1:], here, list(loop.inner_iter_args)))
    return list(loop.results)


def reduce_strip(
    loops: Loops, ivs: list[ir.Value], values: list[ir.Value]
) -> list[ir.Value]:
    """All of the vector dimension: unrolled vectors, single vectors, the rest."""
    extent = loops.extent(loops.dim)
    block = loops.lanes * loops.chains
    many = rounded_down(extent, block)
    whole = rounded_down(extent, loops.lanes)
    values = folding(loops, ivs, index(0), many, block, values)
    values = folding(loops, ivs, many, whole, loops.lanes, values)
    if is_same(whole, extent):
        return values
    if not loops.is_maskable():
        return single_elements(loops, ivs, whole, extent, values)
    return masked_fold(loops, ivs, whole, extent, values)


def folding(
    loops: Loops,
    ivs: list[ir.Value],
    start: ir.Value,
    end: ir.Value,
    by: int,
    values: list[ir.Value],
) -> list[ir.Value]:
    """Steps of `by` elements, each vector of them into an accumulator of its own."""
    if is_same(start, end):
        return values
    loop = scf.ForOp(start, end, index(by), values)
    with ir.InsertionPoint(loop.body):
        carried = list(loop.inner_iter_args)
        for chain in range(by // loops.lanes):
            here = list(ivs)
            here[loops.dim] = add(loop.induction_variable, index(chain * loops.lanes))
            fold_into(loops, carried, chain, here, None)
        scf.yield_(carried)
    return list(loop.results)


def fold_into(
    loops: Loops,
    carried: list[ir.Value],
    chain: int,
    ivs: list[ir.Value],
    mask: ir.Value | None,
) -> None:
    count = len(loops.outputs)
    mine = slice(chain * count, (chain + 1) * count)
    neutral = [
        vector.broadcast(ir.VectorType.get([loops.lanes], x.element), c.neutral())
        for c, x in zip(loops.combiners, loops.outputs, strict=True)
    ]
    made = loops.compute(ivs, carried[mine] if mask is None else neutral, mask)
    emitter = VectorBody(loops.lanes, loops.dim, ivs, mask)
    results = [emitter.vector(v) for v in made]
    if mask is not None:
        results = [
            c.apply(old, arith.select(mask, new, rest))
            for c, old, new, rest in zip(
                loops.combiners, carried[mine], results, neutral, strict=True
            )
        ]
    carried[mine] = results


def masked_fold(
    loops: Loops,
    ivs: list[ir.Value],
    whole: ir.Value,
    extent: ir.Value,
    values: list[ir.Value],
) -> list[ir.Value]:
    here = list(ivs)
    here[loops.dim] = whole
    kind = ir.VectorType.get([loops.lanes], ir.IntegerType.get_signless(1))
    mask = vector.create_mask(kind, [arith.subi(extent, whole)])
    carried = list(values)
    fold_into(loops, carried, 0, here, mask)
    return carried


def single_elements(
    loops: Loops,
    ivs: list[ir.Value],
    whole: ir.Value,
    extent: ir.Value,
    values: list[ir.Value],
) -> list[ir.Value]:
    """The rest one element at a time, folded into lane 0 of the first chain."""
    narrow = loops.single()
    count = len(loops.outputs)
    first = [
        vector.broadcast(
            ir.VectorType.get([1], v.type.element_type),  # type: ignore[attr-defined]
            vector.extract(v, [], [0]),
        )
        for v in values[:count]
    ]
    loop = scf.ForOp(whole, extent, index(1), first)
    with ir.InsertionPoint(loop.body):
        here = list(ivs)
        here[loops.dim] = loop.induction_variable
        made = narrow.compute(here, list(loop.inner_iter_args), None)
        emitter = VectorBody(1, loops.dim, here)
        scf.yield_([emitter.vector(v) for v in made])
    lone = [
        vector.insert(vector.extract(r, [], [0]), v, [], [0])
        for r, v in zip(loop.results, values, strict=False)
    ]
    return lone + list(values[count:])
