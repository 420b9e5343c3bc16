"""Bits that differ, of two words at once: one count for both (AVX-512's vpopcntd).

Reference loop, k in eights of bytes: words a and b of a row, v and w of a column:

    for k...: for r in rows: for c in columns:
        acc[r][c] += ones(a ^ v) + ones(b ^ w)

With p = a ^ v, q = b ^ w and m = v ^ w, each place of a full adder of the three has

    p + q + m = 2 * majority(p, q, m) + (p ^ q ^ m)

whose last term is a ^ b: no column has a part in it.  m is the column's alone, its ones
are added up while compiling.  So two words take an xor, a ternary operation, a count
and an addition, not two of each but the ternary one:

    acc[r][c] += 2 * ones(majority(p, ~(a ^ b), m)) + ones(a ^ b) - ones(m)

where q has given way to what is known of it: the majority is the same.
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.ir.access import add, index
from nanoloom.ir.mlir import arith, ir, math, vector
from nanoloom.target.instructions import x86
from nanoloom.vector.nanokernel import k_groups
from nanoloom.vector.nanokernel.instructions import instruction, word_of
from nanoloom.vector.nanokernel.operands.packed_panel import PackedPanel
from nanoloom.vector.nanokernel.reduction_loops import vector_kind
from nanoloom.vector.nanokernel.tile.instruction_order import in_order
from nanoloom.vector.nanokernel.tile.tile import Tile
from nanoloom.vector.tile_points import with_value
from nanoloom.vector.widths import filled
from nanoloom.weights.panels import WORD

PAIR = 2 * WORD
MAJORITY = 0b11101000  # of three bits, by their number
BITS = 32
Values = list[ir.Value]


def accumulate(tile: Tile) -> Values:
    """Emit the loops; gives rows * vectors accumulators of i32."""
    kind, plan, panel = vector_kind(tile), tile.plan, PackedPanel.of(tile, PAIR)
    depth, ivs = tile.shape.reduced[-1], tile.ivs(index(0), index(0))

    def words(ivs: Values, number: ir.Value, count: int, v: int) -> Values:
        del count
        here = with_value(ivs, depth, number)
        return [vector.bitcast(kind, panel.word(here, v, n)) for n in range(2)]

    def left(row: k_groups.Row) -> tuple[ir.Value, ir.Value]:
        # Kept as vectors: LLVM would xor numbers and then broadcast them, which takes
        # the unit that counts.
        wide = [
            k_groups.spread(half.together(), tile.lanes, kind.element_type)
            for half in halves(row)
        ]
        first, second = in_order(plan, wide)
        return first, arith.xori(arith.xori(first, second), filled(kind, -1))

    def product(sum_: ir.Value, left: Values, right: Values) -> ir.Value:
        (first, same), (v, m) = left, right
        ones = majority(arith.xori(first, v), same, m)
        return arith.addi(sum_, math.ctpop(ones))

    def alone(sum_: ir.Value, row: k_groups.Row) -> ir.Value:
        return arith.addi(sum_, math.ctpop(differing(row)))

    step = k_groups.Step(PAIR, ((left, list),), product, right=words, alone=alone)
    start, none = k_groups.starts(tile), arith.constant(kind.element_type, 0)
    begun = [filled(kind, 0)] * len(start) + [none] * plan.rows
    made = k_groups.Sums(tile, step, tile.row_indices)
    sums = made.through(tile.shape.reduced, ivs, begun)
    # What the columns' own ones take from every row.
    behind = with_value(ivs, depth, index(-(-tile.shape.extents[depth] // PAIR)))
    less = [vector.bitcast(kind, panel.word(behind, v, 0)) for v in range(plan.vectors)]
    of_rows = [vector.broadcast(kind, ones) for ones in sums[len(start) :]]
    beside = [arith.addi(x, ones) for ones in of_rows for x in less]
    twice = [arith.shli(x, filled(kind, 1)) for x in sums[: len(start)]]
    every = zip(start, twice, beside, strict=True)
    return [arith.addi(x, arith.addi(both, more)) for x, both, more in every]


def halves(row: k_groups.Row) -> tuple[k_groups.Row, k_groups.Row]:
    """A row's two words."""
    depth = row.tile.shape.reduced[-1]
    behind = with_value(row.ivs, depth, add(row.ivs[depth], index(WORD)))
    first = replace(row, group=WORD, count=min(row.count, WORD))
    return first, replace(first, ivs=behind, count=max(row.count - WORD, 0))


def differing(row: k_groups.Row) -> ir.Value:
    """Where a row's two words differ, as a number.

    Of all eight bytes at once: the words alone come from memory into all lanes.
    """
    i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (BITS, 2 * BITS))
    both = word_of(row.together())
    other = arith.shrui(both, arith.constant(i64, BITS))
    return arith.trunci(i32, arith.xori(both, other))


def majority(first: ir.Value, second: ir.Value, third: ir.Value) -> ir.Value:
    """What two of three say, place by place."""
    kind = ir.VectorType(first.type)
    says = arith.constant(kind.element_type, MAJORITY)
    (name,) = {x.function for x in x86.TERNARY if x.result == f"s32*{kind.shape[0]}"}
    return instruction(name, kind, [first, second, third, says])
