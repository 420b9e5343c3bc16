"""What a pad on buffers says in its body (fusion/pad_op.py), as a guarded read.

at = i - 1;  p[i] = select(0 <= at < h, load x[min(max(at, 0), h - 1)], z)
  ->  x at i - 1, guarded in front and behind; z elsewhere
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nanoloom.ir.access import (
    CONSTANT,
    Access,
    add,
    coefficient,
    constant_of,
    index,
    multiply,
    number_of,
    parts,
    written,
)
from nanoloom.ir.linalg_query import (
    body,
    dims_of,
    is_pad,
    map_dims,
    maps,
    sums_products,
    yielded,
)
from nanoloom.ir.mlir import ir, made_by
from nanoloom.nest.extent import Lanes
from nanoloom.target.facts import Target
from nanoloom.vector.full_vectors import reads_rows
from nanoloom.vector.guarded_operand import FRONT, Edges, GuardedOperand

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile

Place = tuple[int | None, ir.Value]  # an axis of a pad, and what is added to it
CLAMPS = ("arith.maxsi", "arith.minsi")  # of places, to those that there are
LOAD, ASK, CHOOSE = "memref.load", "arith.cmpi", "arith.select"


class OtherBody(Exception):
    """A body that asks for anything but places of axes."""


def guarded_rows(
    op: ir.OpView, dim: int, lanes: Lanes, target: Target
) -> GuardedOperand | None:
    """What a pad reads, None where it is not read by rows."""
    rows = is_pad(op) and reads_rows(op, dim, lanes, target)
    return guarded_read(op) if rows else None


def guarded_read(pad: ir.OpView) -> GuardedOperand | None:
    """What a pad on buffers reads in its own loops, None for any other body."""
    block, choice = body(pad), made_by(yielded(pad)[0], CHOOSE)
    named = {LOAD: list[ir.Operation](), ASK: list[ir.Operation]()}
    for op in block.operations:
        named.get(op.operation.name, []).append(op.operation)
    if choice is None or len(named[LOAD]) != 1:
        return None
    (buffer, *at), number = named[LOAD][0].operands, choice.operands[2]
    given = number in list(block.arguments)
    if not given and made_by(number, CONSTANT) is None:
        return None
    try:
        places = [traced(value, block) for value in at]
        edges = [edges_of(place, named[ASK], block) for place in places]
    except OtherBody:
        return None
    if sum(each.count for each in edges) < len(named[ASK]):
        return None  # of an axis that nothing is read along
    none = ir.AffineConstantExpr.get(0)
    exprs = [none if d is None else ir.AffineDimExpr.get(d) for d, _ in places]
    begins = zip(places, edges, strict=True)
    return GuardedOperand(
        buffer,
        ir.AffineMap.get(maps(pad)[0].n_dims, 0, exprs),
        tuple(add(begin, index(-each.shift)) for (_, begin), each in begins),
        tuple(edges),
        None if given else number,
    )


def edges_of(place: Place, asked: Sequence[ir.Operation], block: ir.Block) -> Edges:
    """What is asked of a place that is read."""
    (axis, begin), made = place, Edges()
    (base, far) = parts(begin)
    for op in asked:
        (own, here), (none, bound) = (traced(value, block) for value in op.operands)
        if own != axis or axis is None:
            continue
        other, near = parts(here)
        front = op.attributes["predicate"].value == int(FRONT)  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
        beside = none is not None or (front and constant_of(bound) != 0)
        if beside or [base and written(base)] != [other and written(other)]:
            raise OtherBody
        made = replace(made, shift=far - near)
        made = replace(made, front=True) if front else replace(made, behind=bound)
    return made


def read_guarded(strip: RegisterTile, reader: ir.OpView) -> dict[int, GuardedOperand]:
    """The operands of a sum of products that are read where they lie, by number."""
    found: dict[int, GuardedOperand] = {}
    if not strip.reduced or not sums_products(reader):
        return found
    for number, source in strip.sources.items():
        x = strip.inputs[number]
        if not is_pad(source.made_by.opview):
            continue
        if x.access(strip.dim) is not Access.UNIFORM:
            continue
        (write,) = source.strip.outputs
        made = guarded_read(source.made_by.opview)
        if made is None or not made.adds_nothing:
            continue
        made = made.read_by(x.indexing, map_dims(write.indexing))
        if all(slides(strip, made.indexing.results[d]) for d in made.around):
            found[number] = made
    return found


def slides(strip: RegisterTile, expr: ir.AffineExpr) -> bool:
    """Whether windows go along a dimension: steps of one sum, of one loop of points."""
    dims = dims_of(expr)
    taps = [d for d in dims if strip.kinds[d] == "reduction"]
    ahead = all((coefficient(expr, d) or 0) > 0 for d in dims)
    return ahead and len(taps) == 1 and len(dims) <= 2


def traced(value: ir.Value, block: ir.Block) -> Place:
    """An index of a pad's body as axis + number."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.block != block:
        return None, value
    if owner.name == CONSTANT:
        return None, index(number_of(owner))
    if owner.name == "linalg.index":
        return owner.attributes["dim"].value, index(0)  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    (one, near), (other, far) = (traced(x, block) for x in owner.operands)
    if owner.name in CLAMPS and other is None:
        return one, near
    if owner.name == "arith.addi" and None in (one, other):
        return (other if one is None else one), add(near, far)
    if owner.name == "arith.muli" and one is None and other is None:
        return None, multiply(near, far)
    raise OtherBody
