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
from nanoloom.vector.nanokernel.fma import vector_kind
from nanoloom.vector.nanokernel.instructions import instruction, word_of
from nanoloom.vector.nanokernel.operands.packed_panel import PackedPanel
from nanoloom.vector.nanokernel.reduction_loops import with_value
from nanoloom.vector.nanokernel.tile.instruction_order import in_order
from nanoloom.vector.nanokernel.tile.tile import Tile
from nanoloom.vector.widths import filled
from nanoloom.weights.panels import WORD

PAIR = 2 * WORD
MAJORITY = 0b11101000  # of three bits, by their number
BITS = 32
Values = list[ir.Value]


def accumulate(tile: Tile) -> Values:
    """Emit the loops; gives rows * vectors accumulators of i32."""
    pairs, kind = WordPairs(tile), vector_kind(tile)
    start, plan = k_groups.starts(tile), tile.plan
    zero, none = filled(kind, 0), arith.constant(kind.element_type, 0)
    sums = pairs.through(
        tile.shape.reduced,
        tile.ivs(index(0), index(0)),
        [zero] * len(start) + [none] * plan.rows,
    )
    less, made = pairs.less(), list[ir.Value]()
    for r, ones in enumerate(sums[len(start) :]):
        of_row = vector.broadcast(kind, ones)
        for v, beside in enumerate(less):
            place = r * plan.vectors + v
            twice = arith.shli(sums[place], filled(kind, 1))
            total = arith.addi(twice, arith.addi(beside, of_row))
            made.append(arith.addi(start[place], total))
    return made


class WordPairs(k_groups.Groups):
    """A tile's sums of majorities, and behind them those of its rows' own ones."""

    def __init__(self, tile: Tile) -> None:
        super().__init__(tile, PAIR, tile.row_indices)
        self.panel = PackedPanel.of(tile, PAIR)

    def products(
        self, ivs: Values, number: ir.Value, count: int, sums: Values
    ) -> Values:
        """Two words of every row and column, `count` bytes of them inside."""
        plan, kind = self.tile.plan, vector_kind(self.tile)
        here = with_value(ivs, self.depth, number)
        columns = [
            [
                vector.bitcast(kind, self.panel.word(here, v, word))
                for v in range(plan.vectors)
            ]
            for word in range(2)
        ]
        made, ones = list[ir.Value](), sums[plan.rows * plan.vectors :]
        for r in range(plan.rows):
            row = self.row(r, ivs, number, count)
            # Kept as vectors: LLVM would xor numbers and then broadcast them, which
            # takes the unit that counts.
            first, second = in_order(
                plan,
                [
                    k_groups.spread(half.together(), self.tile.lanes, kind.element_type)
                    for half in halves(row)
                ],
            )
            same = arith.xori(arith.xori(first, second), filled(kind, -1))
            now = sums[len(made) : len(made) + plan.vectors]
            added = [
                arith.addi(sum_, math.ctpop(majority(arith.xori(first, v), same, m)))
                for sum_, v, m in zip(now, *columns, strict=True)
            ]
            made += in_order(plan, added)
            ones[r] = arith.addi(ones[r], math.ctpop(differing(row)))
        return made + ones

    def less(self) -> Values:
        """What the columns' own ones take from every row."""
        tile, kind = self.tile, vector_kind(self.tile)
        ivs = tile.ivs(index(0), index(0))
        ivs[self.depth] = index(-(-tile.shape.extents[self.depth] // PAIR))
        return [
            vector.bitcast(kind, self.panel.word(ivs, v, 0))
            for v in range(tile.plan.vectors)
        ]


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
