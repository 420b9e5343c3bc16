"""AMX: a tiled contraction reads VNNI-packed panels (paper, section 4.3.1).

It stays a generic on tensors that says what it computes, with g = 2 for bf16 (sums in
f32) and g = 4 for bytes (sums in i32):

    for k in 0..K: acc[r][c] += left[r][k] * panel[k / g][g * c + k % g]

and is marked, so that amx.py makes tile instructions of it once it works on buffers.
"""

from __future__ import annotations

from collections.abc import Mapping

from nanoloom.kernels.contraction import Contraction
from nanoloom.kernels.structure import Op, body, map_dims, maps
from nanoloom.mlir import arith, ir, linalg, tensor
from nanoloom.schedule.families import FAMILIES
from nanoloom.schedule.language import Nanokernel
from nanoloom.vector.access import index
from nanoloom.vector.nanokernel.extents import most_results
from nanoloom.vector.nanokernel.groups import zero_of
from nanoloom.vector.nanokernel.tile import (
    as_index,
    initial_number,
    origin,
    packed_argument,
)
from nanoloom.vector.nanokernel.vnni_flat import woven_part
from nanoloom.vector.nanokernel.widened import part_of

MARK = "nanoloom.amx"  # on a generic: the dimension of its rows, -1 for a single row
FRESH = "nanoloom.amx_fresh"  # the sums start from zero, not from the result
HEIGHT = "nanoloom.amx_rows"  # how many rows a whole tile has
MOST = "nanoloom.amx_most_rows"  # how many rows there are at most
DEPTH = "nanoloom.amx_depth"  # numbers of a chunk of the sum, 0 for all of them
ROWS = COLUMNS = 16  # of a tile register of sums


def use_panels(op: Op, shape: Contraction, plan: Nanokernel, row: int | None) -> None:
    """Let a tiled contraction read its panel of the packed weight (on tensors).

    It stays a generic, now with indices (k floordiv g, g n + k mod g), so that it still
    says what it computes.
    """
    group = FAMILIES[plan.family].group
    columns = plan.vectors * COLUMNS
    operands = list(op.operation.operands)
    indexing = maps(op)[shape.right]
    if plan.packed:
        part = panel_of(op, shape, columns)
        right = panel_map(indexing.n_dims, shape, group, len(shape.shared) + 1)
    else:
        part = woven_part(op, shape, columns)
        right = panel_map(indexing.n_dims, shape, group, 0)
    most = 1 if row is None else most_results(op, row)
    assert most is not None, "fit.py lets no other pass"
    fresh = starts_at_zero(operands[2])
    if fresh:
        whole: dict[int | None, int] = {row: most, shape.column: columns}
        operands[2] = in_own_room(operands[2], maps(op)[2], whole)
    indexings = [maps(op)[shape.left], right, maps(op)[2]]
    made = linalg.GenericOp(
        [operands[2].type],
        [operands[shape.left], part],
        [operands[2]],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in indexings]),
        op.operation.attributes["iterator_types"],
    )
    i64 = ir.IntegerType.get_signless(64)
    number = -1 if row is None else row
    made.operation.attributes[MARK] = ir.IntegerAttr.get(i64, number)
    for name, value in ((HEIGHT, plan.rows), (MOST, most), (DEPTH, plan.depth)):
        made.operation.attributes[name] = ir.IntegerAttr.get(i64, value)
    if fresh:
        made.operation.attributes[FRESH] = ir.UnitAttr.get()
    copy_body(op, made, shape)
    # The old operation goes with the next clean-up: handles of the script hold it.
    op.operation.results[0].replace_all_uses_with(made.results[0])


def starts_at_zero(sums: ir.Value) -> bool:
    """Whether a fill has written zeros where the sums go."""
    number = initial_number(sums)
    if number is None:
        return False
    owner = number.owner
    assert not isinstance(owner, ir.Block)
    zero = owner.name == "arith.constant" and owner.attributes["value"].value == 0  # type: ignore[attr-defined]
    owner.erase()  # a clone
    return zero


def in_own_room(
    sums: ir.Value, indexing: ir.AffineMap, whole: Mapping[int | None, int]
) -> ir.Value:
    """Zeros of the tile alone, where `sums` is a part of more that are zero.

    Nothing is copied from there then, and there is room for whole tile registers.
    whole: extents of dimensions where tiles are whole.
    """
    owner = sums.owner
    if isinstance(owner, ir.Block) or owner.name != "tensor.extract_slice":
        return sums
    kind = ir.RankedTensorType(sums.type)
    dims = map_dims(indexing)
    extents = [whole.get(d, e) for d, e in zip(dims, kind.shape, strict=True)]
    target = part_of(tensor.empty(extents, kind.element_type), sums)
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    made = linalg.GenericOp(
        [target.type],
        [],
        [target],
        ir.ArrayAttr.get([identity]),
        ir.ArrayAttr.get([parallel] * kind.rank),
    )
    with ir.InsertionPoint(made.regions[0].blocks.append(kind.element_type)):
        linalg.YieldOp([zero_of(kind.element_type)])
    return made.results[0]


def panel_of(op: Op, shape: Contraction, columns: int) -> ir.Value:
    """The slice [1..., reduced..., columns] of a packed weight."""
    logical, offsets = origin(op.operation.operands[shape.right])
    by_dim = {
        e.position: o  # type: ignore[attr-defined]
        for e, o in zip(maps(op)[shape.right].results, offsets, strict=True)
    }
    packed = packed_argument(logical)
    kind = ir.RankedTensorType(packed.type)
    panel = arith.divui(as_index(by_dim[shape.column]), index(columns))
    lead: list[ir.Value] = [as_index(by_dim[d]) for d in shape.shared] + [panel]
    sizes = [1] * len(lead) + list(kind.shape[len(lead) :])
    return slice_of(packed, lead, sizes)


def slice_of(source: ir.Value, lead: list[ir.Value], sizes: list[int]) -> ir.Value:
    """source[lead..., :, :] with leading dimensions of extent 1."""
    kind = ir.RankedTensorType(source.type)
    dynamic = -(1 << 63)
    offsets = [dynamic] * len(lead) + [0] * (kind.rank - len(lead))
    made = ir.RankedTensorType.get(sizes, kind.element_type)
    return tensor.ExtractSliceOp(
        made, source, lead, [], [], offsets, sizes, [1] * kind.rank
    ).result


def panel_map(count: int, shape: Contraction, group: int, lead: int) -> ir.AffineMap:
    """Indices of the panel for the contraction's loop variables, `lead` zeros first."""
    n = ir.AffineDimExpr.get(shape.column)
    k = ir.AffineDimExpr.get(shape.reduced[-1])
    zero = [ir.AffineConstantExpr.get(0)] * lead
    outer = [ir.AffineDimExpr.get(d) for d in shape.reduced[:-1]]
    step = ir.AffineExpr.get_floor_div(k, group)
    place = n * group + ir.AffineExpr.get_mod(k, group)
    return ir.AffineMap.get(count, 0, [*zero, *outer, step, place])


def copy_body(op: Op, made: linalg.GenericOp, shape: Contraction) -> None:
    """The contraction's own arithmetic, the left operand first."""
    old = list(body(op).arguments)
    given = [old[shape.left], old[shape.right], old[2]]
    block = made.regions[0].blocks.append(*[x.type for x in given])
    known = dict(zip(given, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for inner in body(op).operations:
            copied = inner.operation.clone()
            for number, operand in enumerate(inner.operation.operands):
                copied.operands[number] = known[operand]
            known.update(zip(inner.operation.results, copied.results, strict=True))
