"""bf16 on AMX: 32 x 32 results in four tile registers (paper, Fig. 2c and Listing 3).

Reference loop, which the same operation lowers to where AMX is not asked for:

    for k in 0..K: acc[r][c] += f32(left[r][k]) * f32(panel[k / 2][2 * c + k % 2])

The right operand is VNNI-packed: pairs of k lie together.  The left one is read as it
is, 16 rows of 32 numbers at any distance.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.kernels.contraction import Contraction
from nanoloom.kernels.structure import (
    Op,
    extents,
    inputs,
    is_generic,
    iterators,
    maps,
)
from nanoloom.mlir import arith, ir, linalg, llvm, memref, scf, tensor
from nanoloom.schedule.language import Nanokernel
from nanoloom.vector.access import coefficient, index
from nanoloom.vector.nanokernel.tile import as_index, origin, packed_argument

MARK = "nanoloom.amx"  # on a generic: the dimension of its rows, -1 for a single row
STEP = 32  # bf16 numbers in a row of a tile register
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
        [operands[2].type], [operands[shape.left], part], [operands[2]],
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


# ---- on buffers ----------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Distances in a buffer, in bytes: where it begins, and from row to row."""

    start: ir.Value
    stride: int


def lower(op: Op) -> None:
    """Replace a marked generic on buffers by tile instructions."""
    left, right, out = op.operation.operands
    row = op.operation.attributes[MARK].value  # type: ignore[attr-defined]
    height, direct = result_form(op, out, row)
    target = out if direct else whole_block(op, height)
    count = None if direct or row < 0 else row_count(op, out, row)
    sums = accumulate(op, left, right, row, height, count)
    store(sums, target, op if direct else None, row, height)
    if not direct:
        copy_out(op, target, out, height, count)
    forget_fill(op, out)
    op.operation.erase()


def whole_block(op: Op, height: int) -> ir.Value:
    """Room for whole tiles on the stack, made once at the function's beginning."""
    function = op.operation
    while function.name != "func.func":
        parent = function.parent
        assert parent is not None
        function = parent.operation
    kind = ir.MemRefType.get([height, 2 * COLUMNS], ir.F32Type.get())
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        return memref.alloca(kind, [], [])


def result_form(op: Op, out: ir.Value, row: int) -> tuple[int, bool]:
    """Rows of the tile, and whether the result takes whole tiles itself."""
    kind = ir.MemRefType(out.type)
    place = place_of_dim(maps(op)[2], row)
    rows_known = row < 0 or not kind.is_dynamic_dim(place)
    last = kind.rank - 1
    whole = not kind.is_dynamic_dim(last) and kind.shape[last] == 2 * COLUMNS
    height = 1 if row < 0 else (kind.shape[place] if rows_known else 2 * ROWS)
    return height, rows_known and whole


def place_of_dim(indexing: ir.AffineMap, dim: int) -> int:
    for place, expr in enumerate(indexing.results):
        if isinstance(expr, ir.AffineDimExpr) and expr.position == dim:
            return place
    return 0


def row_count(op: Op, out: ir.Value, row: int) -> ir.Value | None:
    place = place_of_dim(maps(op)[2], row)
    kind = ir.MemRefType(out.type)
    return memref.dim(out, index(place)) if kind.is_dynamic_dim(place) else None


def heights(height: int) -> list[int]:
    """Rows of each tile register that a tile of this height takes."""
    return [min(ROWS, height - start) for start in range(0, height, ROWS)]


def accumulate(
    op: Op, left: ir.Value, right: ir.Value, row: int, height: int,
    count: ir.Value | None,
) -> list[ir.Value]:
    """The reduction loops; gives a tile register of sums for each part of the tile.

    A tile over the edge begins `height - count` rows earlier: those rows are computed
    again and not written.
    """
    reduced = [d for d, k in enumerate(iterators(op)) if k == "reduction"]
    depth = reduced_extents(op, right, reduced)
    ivs = [index(0) for _ in iterators(op)]
    if count is not None:
        ivs[row] = arith.subi(count, index(height))
    parts = heights(height)
    start = [zero(rows) for rows in parts for _ in range(2)]

    def nest(level: int, here: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        if level == len(reduced) - 1:
            return along(op, left, right, row, parts, here, sums, depth[-1])
        loop = scf.ForOp(index(0), index(depth[level]), index(1), sums)
        with ir.InsertionPoint(loop.body):
            inner = list(here)
            inner[reduced[level]] = loop.induction_variable
            scf.yield_(nest(level + 1, inner, list(loop.inner_iter_args)))
        return list(loop.results)

    return nest(0, ivs, start)


def reduced_extents(op: Op, right: ir.Value, reduced: list[int]) -> list[int]:
    """Extents of the reduced dimensions: outer ones as in the panel, the last in left."""
    kind = ir.MemRefType(right.type)
    outer = list(kind.shape)[-1 - len(reduced) : -2]
    left = op.operation.operands[0]
    shape = ir.MemRefType(left.type).shape
    place = place_of_dim(maps(op)[0], reduced[-1])
    return [*outer, shape[place]]


def along(
    op: Op, left: ir.Value, right: ir.Value, row: int, parts: list[int],
    ivs: list[ir.Value], sums: list[ir.Value], extent: int,
) -> list[ir.Value]:
    """The last reduced dimension: whole tile rows in a loop, then what is left."""
    dim = [d for d, k in enumerate(iterators(op)) if k == "reduction"][-1]
    whole = extent // STEP * STEP
    if whole:
        loop = scf.ForOp(index(0), index(whole), index(STEP), sums)
        with ir.InsertionPoint(loop.body):
            here = list(ivs)
            here[dim] = loop.induction_variable
            carried = list(loop.inner_iter_args)
            scf.yield_(step(op, left, right, row, parts, here, carried, STEP))
        sums = list(loop.results)
    if extent > whole:
        here = list(ivs)
        here[dim] = index(whole)
        sums = step(op, left, right, row, parts, here, sums, extent - whole)
    return sums


def step(
    op: Op, left: ir.Value, right: ir.Value, row: int, parts: list[int],
    ivs: list[ir.Value], sums: list[ir.Value], depth: int,
) -> list[ir.Value]:
    """Load the tiles of one step and multiply each pair of them."""
    distance = row_distance(left, maps(op)[0], row)
    panels = [
        load(
            address(right, maps(op)[1], ivs, v * COLUMNS * PAIR * 2),
            depth // PAIR, COLUMNS * PAIR * 2, row_distance_of(right),
        )
        for v in range(2)
    ]
    made: list[ir.Value] = []
    for part, rows in enumerate(parts):
        start = address(left, maps(op)[0], ivs, part * ROWS * distance)
        tile = load(start, rows, depth * 2, distance)
        made += [
            multiply(rows, depth * 2, sums[2 * part + v], tile, panels[v])
            for v in range(2)
        ]
    return made


def row_distance(buffer: ir.Value, indexing: ir.AffineMap, row: int) -> int:
    """Bytes from one row of the tile to the next."""
    if row < 0:
        return 64
    strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    steps = [
        (coefficient(e, row) or 0) * s
        for e, s in zip(indexing.results, strides, strict=True)
    ]
    return sum(steps) * 2


def row_distance_of(right: ir.Value) -> int:
    strides, _ = ir.MemRefType(right.type).get_strides_and_offset()
    return strides[-2] * 2


def address(
    buffer: ir.Value, indexing: ir.AffineMap, ivs: list[ir.Value], ahead: int
) -> ir.Value:
    """The address of an element, `ahead` bytes behind it, as a pointer."""
    from nanoloom.vector.access import add, apply, multiply

    kind = ir.MemRefType(buffer.type)
    strides, _ = kind.get_strides_and_offset()
    meta = memref.extract_strided_metadata(buffer)
    place = list(meta)[1]
    for expr, stride in zip(indexing.results, strides, strict=True):
        place = add(place, multiply(apply(expr, ivs), index(stride)))
    width = kind.element_type.width // 8  # type: ignore[attr-defined]
    base = memref.extract_aligned_pointer_as_index(buffer)
    total = add(add(base, multiply(place, index(width))), index(ahead))
    number = arith.index_cast(ir.IntegerType.get_signless(64), total)
    return llvm.inttoptr(ir.Type.parse("!llvm.ptr"), number)


def i16(value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(16), value)


def i64(value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(64), value)


def tile_type() -> ir.Type:
    return ir.Type.parse("!llvm.x86_amx")


def intrinsic(result: ir.Type | None, name: str, operands: list[ir.Value]) -> ir.Value:
    return llvm.call_intrinsic(result, f"llvm.x86.{name}.internal", operands, [], [])  # type: ignore[arg-type]


def zero(rows: int) -> ir.Value:
    return intrinsic(tile_type(), "tilezero", [i16(rows), i16(4 * COLUMNS)])


def load(start: ir.Value, rows: int, width: int, distance: int) -> ir.Value:
    """rows x width bytes, `distance` bytes apart."""
    operands = [i16(rows), i16(width), start, i64(distance)]
    return intrinsic(tile_type(), "tileloadd64", operands)


def multiply(
    rows: int, depth: int, sums: ir.Value, left: ir.Value, right: ir.Value
) -> ir.Value:
    operands = [i16(rows), i16(4 * COLUMNS), i16(depth), sums, left, right]
    return intrinsic(tile_type(), "tdpbf16ps", operands)


def store(
    sums: list[ir.Value], target: ir.Value, op: Op | None, row: int, height: int
) -> None:
    """Write the tile registers: into the result itself, or a block of whole tiles."""
    rank = ir.MemRefType(target.type).rank
    if op is None:
        indexing, count, at = ir.AffineMap.get_identity(rank), rank, 0
    else:
        indexing, count, at = maps(op)[2], maps(op)[2].n_dims, row
    distance = row_distance(target, indexing, at) * 2 if height > 1 else 128
    ivs = [index(0)] * count
    for part, rows in enumerate(heights(height)):
        for v in range(2):
            ahead = part * ROWS * distance + v * COLUMNS * 4
            start = address(target, indexing, ivs, ahead)
            operands = [
                i16(rows), i16(4 * COLUMNS), start, i64(distance), sums[2 * part + v],
            ]
            ir.Operation.create(
                "llvm.call_intrinsic", [], operands,
                {
                    "intrin": ir.StringAttr.get("llvm.x86.tilestored64.internal"),
                    "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([5, 0]),
                },
            )


def copy_out(
    op: Op, block: ir.Value, out: ir.Value, height: int, count: ir.Value | None
) -> None:
    """Copy the rows and columns of a block that are inside the result."""
    kind = ir.MemRefType(out.type)
    indexing = maps(op)[2]
    row = op.operation.attributes[MARK].value  # type: ignore[attr-defined]
    shift = index(0) if count is None else arith.subi(index(height), count)
    place = place_of_dim(indexing, row)
    dims = [ir.AffineDimExpr.get(d) for d in range(kind.rank)]
    rows = dims[place] if row >= 0 else ir.AffineConstantExpr.get(0)
    reading = ir.AffineMap.get(kind.rank, 0, [rows, dims[-1]])
    moved = memref.subview(
        block, [shift, 0], [height if count is None else count, 2 * COLUMNS], [1, 1]
    )
    identity = ir.AffineMap.get_identity(kind.rank)
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    made = linalg.GenericOp(
        [], [moved], [out],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in (reading, identity)]),
        ir.ArrayAttr.get([parallel] * kind.rank),
    )
    inner = made.regions[0].blocks.append(kind.element_type, kind.element_type)
    with ir.InsertionPoint(inner):
        linalg.YieldOp([inner.arguments[0]])


def forget_fill(op: Op, out: ir.Value) -> None:
    """Erase the zeros that were written where the sums go."""
    for other in list(op.operation.block.operations):
        if other.operation == op.operation:
            return
        operands = list(other.operation.operands)
        if is_generic(other) and not inputs(other) and operands == [out]:
            other.operation.erase()


__all__ = ["MARK", "extents", "lower", "use_panels"]
