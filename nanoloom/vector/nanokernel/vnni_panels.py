"""bf16 for AMX: a tiled contraction reads VNNI-packed panels (paper, section 4.3.1).

It stays a generic on tensors that says what it computes:

    for k in 0..K: acc[r][c] += f32(left[r][k]) * f32(panel[k / 2][2 * c + k % 2])

and is marked, so that amx.py makes tile instructions of it once it works on buffers.
"""

from __future__ import annotations

from nanoloom.kernels.contraction import Contraction
from nanoloom.kernels.structure import Op, maps
from nanoloom.mlir import arith, ir, linalg, tensor
from nanoloom.schedule.language import Nanokernel
from nanoloom.vector.access import index
from nanoloom.vector.nanokernel.tile import as_index, origin, packed_argument

MARK = "nanoloom.amx"  # on a generic: the dimension of its rows, -1 for a single row
ROWS = COLUMNS = 16  # of an f32 tile register
PAIR = 2


def use_panels(op: Op, shape: Contraction, plan: Nanokernel, row: int | None) -> None:
    """Let a tiled contraction read its panel of the packed weight (on tensors).

    It stays a generic, now with indices (k floordiv 2, 2 n + k mod 2), so that it still
    says what it computes.
    """
    columns = plan.vectors * COLUMNS
    operands = list(op.operation.operands)
    indexing = maps(op)[shape.right]
    logical, offsets = origin(operands[shape.right])
    by_dim = {
        e.position: o  # type: ignore[attr-defined]
        for e, o in zip(indexing.results, offsets, strict=True)
    }
    packed = packed_argument(logical)
    kind = ir.RankedTensorType(packed.type)
    panel = arith.divui(as_index(by_dim[shape.column]), index(columns))
    lead: list[ir.Value] = [as_index(by_dim[d]) for d in shape.shared] + [panel]
    sizes = [1] * len(lead) + list(kind.shape[len(lead) :])
    part = slice_of(packed, lead, sizes)
    right = panel_map(indexing.n_dims, shape)
    indexings = [maps(op)[shape.left], right, maps(op)[2]]
    made = linalg.GenericOp(
        [operands[2].type],
        [operands[shape.left], part],
        [operands[2]],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in indexings]),
        op.operation.attributes["iterator_types"],
    )
    number = -1 if row is None else row
    made.operation.attributes[MARK] = ir.IntegerAttr.get(
        ir.IntegerType.get_signless(64), number
    )
    fill_body(made)
    op.operation.results[0].replace_all_uses_with(made.results[0])
    op.operation.erase()


def slice_of(source: ir.Value, lead: list[ir.Value], sizes: list[int]) -> ir.Value:
    """source[lead..., :, :] with leading dimensions of extent 1."""
    kind = ir.RankedTensorType(source.type)
    dynamic = -(1 << 63)
    offsets = [dynamic] * len(lead) + [0] * (kind.rank - len(lead))
    made = ir.RankedTensorType.get(sizes, kind.element_type)
    return tensor.ExtractSliceOp(
        made, source, lead, [], [], offsets, sizes, [1] * kind.rank
    ).result


def panel_map(count: int, shape: Contraction) -> ir.AffineMap:
    """Indices of the panel for the contraction's loop variables."""
    n = ir.AffineDimExpr.get(shape.column)
    k = ir.AffineDimExpr.get(shape.reduced[-1])
    zero = [ir.AffineConstantExpr.get(0)] * (len(shape.shared) + 1)
    outer = [ir.AffineDimExpr.get(d) for d in shape.reduced[:-1]]
    pair = ir.AffineExpr.get_floor_div(k, PAIR)
    place = n * PAIR + ir.AffineExpr.get_mod(k, PAIR)
    return ir.AffineMap.get(count, 0, [*zero, *outer, pair, place])


def fill_body(made: linalg.GenericOp) -> None:
    bf16, f32 = ir.BF16Type.get(), ir.F32Type.get()
    block = made.regions[0].blocks.append(bf16, bf16, f32)
    with ir.InsertionPoint(block):
        wide = [arith.extf(f32, x) for x in list(block.arguments)[:2]]
        linalg.YieldOp([arith.addf(block.arguments[2], arith.mulf(*wide))])
