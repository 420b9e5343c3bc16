"""Sums of products with half of the multiplications: Winograd's inner product.

    a0 b0 + a2 b2 = (a0 + b2) (a2 + b0) - a0 a2 - b0 b2

What is taken away is of a row alone, and of a column alone.  Reference loop:

    for r in rows: for c in columns: acc[r][c] -= sum of left[r][k] left[r][k + 2]
    for k in 0..K step 4: for r in rows: for c in columns: for g in 0..2:
        acc[r][c] += (left[r][k + g] + right[k + g + 2][c])
                   * (left[r][k + g + 2] + right[k + g][c])

An instruction multiplies two pairs of 16-bit numbers, and adds both products: with two
additions, and that to the sum, four steps are four instructions, as two products and
their additions were.  But additions run on more ports than products.  Bytes' sums fit
in 16 bits; all else is exact modulo 2^32.  A panel ends with what its columns take away
(weights/panels.py), rows' are of the copy that the tile reads.

Source: S. Winograd, A New Algorithm for Inner Product, IEEE Transactions on Computers
C-17 (1968).
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.errors import Error
from nanoloom.ir.access import add, as_index, constant_of, index, multiply
from nanoloom.ir.linalg_query import maps
from nanoloom.ir.mlir import arith, ir, made_by, vector
from nanoloom.linalg.builder.tensor_slices import bounds_of
from nanoloom.schedule.families import INT8_INNER
from nanoloom.target.instructions.choose import DotUse
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.nanokernel import k_groups
from nanoloom.vector.nanokernel.instructions import in_lanes, instruction, word_of
from nanoloom.vector.nanokernel.operands.convert_lhs import convert_lhs
from nanoloom.vector.nanokernel.operands.converted_rows import pieces
from nanoloom.vector.nanokernel.operands.packed_panel import PackedPanel
from nanoloom.vector.nanokernel.tile.operand_reuse import changes, tile_loops
from nanoloom.vector.nanokernel.tile.task import is_within
from nanoloom.vector.nanokernel.tile.tile import Tile, place_of, read_vector
from nanoloom.vector.temporaries import LINE
from nanoloom.vector.tile_points import with_value
from nanoloom.vector.widths import filled

PAIR = INT8_INNER.group
STEPS = PAIR * INT8_INNER.woven  # multiplied together
Halves = tuple[ir.Value, ir.Value]


def accumulate(tile: Tile, use: DotUse, signed: tuple[bool, bool]) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators.

    signed: whether the left operand's integers are (the panels' are wide).
    """
    if not tile.of_rows:
        copy_rows(tile, use, signed)
    element = ir.IntegerType.get_signless(16)
    wide = ir.VectorType.get([tile.lanes * PAIR], element)
    panel, depth = PackedPanel.of(tile, PAIR), tile.shape.reduced[-1]

    def left(row: k_groups.Row) -> Halves:
        one, other = (in_lanes(word_of(pair(row, g)), wide) for g in (0, PAIR))
        return one, other

    def right(ivs: list[ir.Value], number: ir.Value, count: int, v: int) -> Halves:
        del count  # zeros are behind
        first = multiply(number, index(INT8_INNER.woven))
        one, other = (
            panel.read(with_value(ivs, depth, add(first, index(g))), v) for g in (0, 1)
        )
        return one, other

    def product(sum_: ir.Value, left: Halves, right: Halves) -> ir.Value:
        factors = [arith.addi(left[0], right[1]), arith.addi(left[1], right[0])]
        return arith.addi(sum_, instruction(use.dot.function, sum_.type, factors))

    step = k_groups.Step(STEPS, ((left, k_groups.itself),), product, right=right)
    return k_groups.accumulate(tile, step, start(tile, panel, tile.of_rows))


def copy_rows(tile: Tile, use: DotUse, signed: tuple[bool, bool]) -> None:
    """Let a tile read a copy of its rows, made in front of loops over columns alone."""
    if not tile.plan.convert_lhs:
        raise Error(
            f"family {INT8_INNER.name} reads a copy of its rows: convert_lhs = "
            f"{tile.steps}"
        )
    element = ir.IntegerType.get_signless(16)
    with in_front(tile):
        convert_lhs(tile, element, signed=signed[0], apart=LINE // 2)
        tile.of_rows = tuple(own_products(tile, use))


def pair(row: k_groups.Row, first: int) -> ir.Value:
    """Two numbers of a group; zeros behind the last one."""
    if row.count >= first + PAIR:
        return read_vector(row.tile.left, row.place(first), PAIR, None)
    numbers = [row.number(first), row.number(first + 1)]
    element = ir.RankedTensorType(row.tile.left.type).element_type
    return vector.from_elements(ir.VectorType.get([PAIR], element), numbers)


def start(tile: Tile, panel: PackedPanel, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The sums before the first step, less what rows and columns add by themselves."""
    sums = k_groups.starts(tile)
    kind, vectors = ir.VectorType(sums[0].type), tile.plan.vectors
    ivs, depth = tile.ivs(index(0), index(0)), tile.shape.reduced[-1]
    ivs[depth] = index(INT8_INNER.groups(tile.shape.extents[depth]))
    columns = [vector.bitcast(kind, panel.read(ivs, v)) for v in range(vectors)]
    less = [vector.broadcast(kind, x) for x in rows]
    return [
        arith.subi(arith.addi(s, columns[i % vectors]), less[i // vectors])
        for i, s in enumerate(sums)
    ]


def in_front(tile: Tile) -> ir.InsertionPoint:
    """In front of loops over columns alone: what is made of rows there serves all."""
    front = tile.op.operation
    if tile.row_count is not None:
        tile.row_count = inside(tile, tile.row_count)
    known = [tile.left, *([] if tile.row_count is None else [tile.row_count])]
    for loop in reversed(tile_loops(tile.op)):
        around = front.parent
        assert around is not None
        if around.operation != loop.operation or any(changes(x, loop) for x in known):
            break
        front = loop.operation
    for value in known:
        move_out(value, front)
    return ir.InsertionPoint(front)


def inside(tile: Tile, count: ir.Value) -> ir.Value:
    """How many rows are inside the result, as the slice says that was cut for it."""
    value = tile.op.operation.operands[2]
    while (start := made_by(value, "linalg.generic")) is not None:
        value = start.operands[-1]
    cut, size = made_by(value, "tensor.extract_slice"), made_by(count, "tensor.dim")
    place = None if size is None else constant_of(size.operands[1])
    if cut is None or place is None:
        return count
    return as_index(bounds_of(cut)[1][place])


def move_out(value: ir.Value, front: ir.Operation) -> None:
    """What a value is made of to the front of a loop that it does not change with."""
    if not is_within(value, front):
        return
    owner = value.owner
    assert not isinstance(owner, ir.Block), "the loop's own values change with it"
    for operand in owner.operands:
        move_out(operand, front)
    owner.move_before(front)


def own_products(tile: Tile, use: DotUse) -> list[ir.Value]:
    """Of each row the sum over k of left[k] left[k + 2], of all groups."""
    *outer, depth = tile.shape.reduced
    word = ir.IntegerType.get_signless(32)
    kind = ir.VectorType.get([tile.lanes], word)
    width, extent = tile.lanes * PAIR, tile.shape.extents[depth]
    indexing, rows = maps(tile.op)[tile.shape.left], tile.row_indices

    def read(ivs: list[ir.Value], k: ir.Value, row: ir.Value, count: int) -> ir.Value:
        here = with_value(tile.at_row(ivs, row), depth, k)
        numbers = read_vector(tile.left, place_of(indexing, here), count, None)
        if count == width:
            return numbers
        element = ir.VectorType(numbers.type).element_type
        return vector.insert_strided_slice(
            numbers, filled(ir.VectorType.get([width], element), 0), [0], [1]
        )

    def through(
        dims: list[int], ivs: list[ir.Value], sums: list[ir.Value]
    ) -> list[ir.Value]:
        def inside(place: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
            return through(dims[1:], with_value(ivs, dims[0], place), now)

        def whole(k: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
            pairs = zip(now, rows, strict=True)
            return [own_product(use, s, read(ivs, k, row, width)) for s, row in pairs]

        if dims:
            return emit_loop((0, tile.shape.extents[dims[0]]), 1, sums, inside)
        end = extent // width * width
        sums = emit_loop((0, end), width, sums, whole) if end else sums
        for begin, count in groups(extent - end, width):
            k = index(end + begin)
            pairs = zip(sums, rows, strict=True)
            sums = [own_product(use, s, read(ivs, k, row, count)) for s, row in pairs]
        return sums

    start = [filled(kind, 0)] * len(rows)
    sums = through(outer, tile.ivs(index(0), index(0)), start)
    firsts = list(range(0, tile.lanes, 2))  # each group's sum is in two lanes
    return [
        vector.reduction(word, vector.CombiningKind.ADD, vector.shuffle(s, s, firsts))
        for s in sums
    ]


def own_product(use: DotUse, sum_: ir.Value, numbers: ir.Value) -> ir.Value:
    """A sum with the products of both halves of each group in a vector."""
    kind = ir.VectorType(sum_.type)
    words = vector.bitcast(kind, numbers)
    swapped = [lane ^ 1 for lane in range(kind.shape[0])]
    other = vector.bitcast(numbers.type, vector.shuffle(words, words, swapped))
    return arith.addi(sum_, instruction(use.dot.function, kind, [numbers, other]))


def groups(count: int, most: int) -> list[tuple[int, int]]:
    """Where vectors of whole groups begin, and how long they are; and one of a part.

    Of that a number has a factor if it is longer than a pair.
    """
    whole, rest = count // STEPS * STEPS, count % STEPS
    return pieces(whole, most) + [(whole, rest)] * (rest > PAIR)
