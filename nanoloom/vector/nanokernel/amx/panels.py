"""AMX: a tiled contraction reads VNNI-packed panels (paper, section 4.3.1).

It stays a generic on tensors that says what it computes, with g = 2 for bf16 (sums in
f32) and g = 4 for bytes (sums in i32):

    for k in 0..K: acc[r][c] += left[r][k] * panel[k / g][g * c + k % g]

and is marked, so that amx.py makes tile instructions of it once it works on buffers.
A flat right operand is read as it lies; two numbers beside it say which of the task's
tiles read the same of it (tile/operand_reuse.py), so that it is woven once
(unpacked_operands.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from nanoloom.ir.access import as_index, index
from nanoloom.ir.linalg_query import Op, body, inputs, iterators, map_dims, maps
from nanoloom.ir.loop_nest import STAGE, names_of
from nanoloom.ir.make_generic import copy_body, make_generic
from nanoloom.ir.mlir import arith, ir, made_by, tensor
from nanoloom.linalg.builder.tensor_slices import sliced
from nanoloom.nest.contraction import Contraction
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.families import FAMILIES
from nanoloom.schedule.language import Nanokernel
from nanoloom.vector.dialect import LOOP
from nanoloom.vector.guarded_operand import is_zero
from nanoloom.vector.nanokernel.k_groups import zero_of
from nanoloom.vector.nanokernel.operands.convert_lhs import part_of
from nanoloom.vector.nanokernel.tile.extents import extent_is_not_one, most_results
from nanoloom.vector.nanokernel.tile.operand_reuse import visit_of
from nanoloom.vector.nanokernel.tile.tile import (
    initial_number,
    origin,
    packed_argument,
)
from nanoloom.vector.vector_copies import fill_rows

MARK = "nanoloom.amx"  # on a generic: the dimension of its rows, -1 for a single row
FRESH = "nanoloom.amx_fresh"  # the sums start from zero, not from the result
HIGH = "nanoloom.amx_high"  # the dimension of an image's rows, -1 for none
HEIGHT = "nanoloom.amx_rows"  # how many rows a whole tile has
MOST = "nanoloom.amx_most_rows"  # how many rows there are at most
SUM = "nanoloom.amx_sum"  # the extent of the last reduced dimension
DEPTH = "nanoloom.amx_depth"  # numbers of a chunk of the sum, 0 for all of them
LANES = "nanoloom.amx_lanes"  # of copies at the result's edge
ARGUMENT = "nanoloom.amx_argument"  # of the kernel, whose panels are read
PLACES = "nanoloom.amx_places"  # parts of a flat operand that tiles come back to
SHARED = "nanoloom.amx_shared"  # the first tile weaves them for all others
ROWS = COLUMNS = 16  # of a tile register of sums


def use_panels(op: Op, shape: Contraction, plan: Nanokernel, row: int | None) -> None:
    """Let a tiled contraction read its panel of the packed weight (on tensors).

    It stays a generic, now with indices (k floordiv g, g n + k mod g), so that it still
    says what it computes.
    """
    columns = plan.vectors * COLUMNS
    left, other, out = (maps(op)[number] for number in (shape.left, shape.right, 2))
    most = 1 if row is None else most_results(op, row)
    assert most is not None, "fit.py lets no other pass"
    marks = {
        MARK: -1 if row is None else row,
        HIGH: high_of(op, shape),
        HEIGHT: plan.rows,
        MOST: most,
        SUM: shape.extents[shape.reduced[-1]],
        DEPTH: plan.depth,
        LANES: plan.lanes.count,
    }
    right, beside, loop = inputs(op)[shape.right], list[ir.Value](), ""
    if plan.packed:
        right, marks[ARGUMENT] = panel_of(op, shape, columns)
        loop = own_loop(op, row)
        other = panel_map(other.n_dims, shape, FAMILIES[plan.family].group)
    else:
        visit = visit_of(op, right)
        beside, marks[PLACES] = [visit.again, visit.place], visit.places
        marks[SHARED] = int(bool(plan.copy_rhs))
    sums = op.operation.operands[2]
    fresh = starts_at_zero(sums)
    if fresh:
        whole: dict[int | None, int] = {row: most, shape.column: columns}
        sums = in_own_room(sums, out, whole, plan.lanes)
    number = ir.AffineMap.get(out.n_dims, 0, [])
    indexings = [left, other, *[number] * len(beside), out]
    given = [inputs(op)[shape.left], right, *beside]
    made = marked(op, shape, [*given, sums], indexings, marks)
    if plan.packed:
        made.operation.attributes[LOOP] = ir.StringAttr.get(loop)
    if fresh:
        made.operation.attributes[FRESH] = ir.UnitAttr.get()


def marked(
    op: Op,
    shape: Contraction,
    operands: list[ir.Value],
    indexings: list[ir.AffineMap],
    marks: Mapping[str, int],
) -> Op:
    """A generic in place of a contraction, with its arithmetic.

    operands: the left one first, the sums last.  The contraction goes with the next
    clean-up: handles of the script hold it.
    """
    i64 = ir.IntegerType.get_signless(64)
    words = {name: ir.IntegerAttr.get(i64, value) for name, value in marks.items()}
    made = make_generic(operands[:-1], operands[-1:], indexings, iterators(op), words)
    old = (body(op).arguments[n] for n in (shape.left, shape.right, 2))
    left, right, *_, sums = body(made).arguments
    with ir.InsertionPoint(body(made)):
        known = dict(zip(old, (left, right, sums), strict=True))
        copy_body(body(op).operations, known)
    op.operation.results[0].replace_all_uses_with(made.operation.results[0])
    return made


def high_of(op: Op, shape: Contraction) -> int:
    """The dimension of an image's rows, if a tile has pixels of several; -1 if not."""
    long = [d for d in shape.rows if extent_is_not_one(op, d)]
    return long[-2] if len(long) > 1 else -1


def own_loop(op: Op, row: int | None) -> str:
    """What a script calls the loop over rows, "" for none: the nanokernel makes it."""
    stage = op.operation.attributes[STAGE].value  # type: ignore[attr-defined]
    return "" if row is None else f"{stage}.{names_of(op)[row]}"


def starts_at_zero(sums: ir.Value) -> bool:
    """Whether a fill has written zeros where the sums go."""
    number = initial_number(sums)
    if number is None:
        return False
    zero = is_zero(number)
    number.owner.erase()  # type: ignore[union-attr] - a clone
    return zero


def in_own_room(
    sums: ir.Value,
    indexing: ir.AffineMap,
    whole: Mapping[int | None, int],
    lanes: Lanes,
) -> ir.Value:
    """Zeros of the tile alone, where `sums` is a part of more that are zero.

    Nothing is copied from there then, and there is room for whole tile registers.
    whole: extents of dimensions where tiles are whole.
    """
    if made_by(sums, "tensor.extract_slice") is None:
        return sums
    kind = ir.RankedTensorType(sums.type)
    dims = map_dims(indexing)
    extents = [whole.get(d, e) for d, e in zip(dims, kind.shape, strict=True)]
    target = part_of(tensor.empty(extents, kind.element_type), sums)
    return fill_rows(target, lambda: zero_of(kind.element_type), lanes)


def panel_of(op: Op, shape: Contraction, columns: int) -> tuple[ir.Value, int]:
    """The slice [1..., reduced..., columns] of a packed weight, and its argument."""
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
    begin = [*lead, *[0] * (kind.rank - len(lead))]
    return sliced(packed, begin, sizes), ir.BlockArgument(packed).arg_number


def panel_map(count: int, shape: Contraction, group: int) -> ir.AffineMap:
    """Indices of the panel for the contraction's loop variables."""
    n = ir.AffineDimExpr.get(shape.column)
    k = ir.AffineDimExpr.get(shape.reduced[-1])
    zero = [ir.AffineConstantExpr.get(0)] * (len(shape.shared) + 1)
    outer = [ir.AffineDimExpr.get(d) for d in shape.reduced[:-1]]
    step = ir.AffineExpr.get_floor_div(k, group)
    place = n * group + ir.AffineExpr.get_mod(k, group)
    return ir.AffineMap.get(count, 0, [*zero, *outer, step, place])
