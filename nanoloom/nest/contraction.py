"""What a schedule needs to know of a contraction: the roles of its axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from nanoloom.nest.statement import Statement


@dataclass(frozen=True)
class Contraction:
    """out[batch, m, n] += left[batch, m, k] * right[batch, k, n], any number of each.

    left, right: which of the stage's operands; the right one has the result's innermost
    axis n.  column: that axis, by its place among the stage's.  rows: the left
    operand's parallel axes.  shared: the right one's but n, which number its matrices;
    other_columns: those of them that left has not.  reduced: in loop order.
    contiguous: n is innermost in right.
    """

    left: int
    right: int
    column: int
    rows: tuple[int, ...]
    shared: tuple[int, ...]
    other_columns: tuple[int, ...]
    reduced: tuple[int, ...]
    extents: tuple[int, ...]
    result: tuple[int, ...]
    contiguous: bool

    def sizes(self, wanted: Mapping[int, int], *, own: bool) -> tuple[int, ...]:
        """Sizes of tiles, in the order of loops; 0 where a dimension has none.

        own: of the contraction's loops.  Those of what follows it go through its
        result, whose dimensions may be in another order.
        """
        dims = range(len(self.extents)) if own else self.result
        return tuple(wanted.get(d, 0) for d in dims)


def roles(stage: Statement) -> Contraction | None:
    """The roles of a contraction's axes, None if it does not fit the form."""
    one, other = stage.reads
    result = stage.writes[0].plain
    if None in result or not result:
        return None
    column = result[-1]
    assert column is not None
    if column in one.axes and column in other.axes:
        return None
    right = 0 if column in one.axes else 1
    mine, theirs = stage.reads[right], stage.reads[1 - right]
    if column not in mine.plain or not theirs.indices:
        return None

    def places(names: list[str]) -> tuple[int, ...]:
        return tuple(stage.place(name) for name in names)

    parallel = [axis for axis in result if axis is not None]
    extents = [e for e in stage.extents if isinstance(e, int)]
    return Contraction(
        1 - right,
        right,
        stage.place(column),
        places([a for a in parallel if a in theirs.axes and a not in mine.axes]),
        places([a for a in parallel if a in mine.axes and a != column]),
        places(
            [a for a in parallel if a not in theirs.axes | {column} and a in mine.axes]
        ),
        places([axis.name for axis in stage.axes if axis.is_reduction]),
        tuple(extents),
        places(parallel),
        mine.plain[-1] == column,
    )


def is_product(stage: Statement) -> bool:
    """Whether columns of a stage are sums of products with rows: not filters of
    one channel each."""
    return stage.is_contraction and roles(stage) is not None


def elements(stage: Statement, shape: Contraction) -> tuple[str, str, str]:
    """Element types of the left and right operand and of the sums.

    As MLIR writes them, but narrow integers by the sign they are extended with: s8, u8.
    """
    left, right = stage.reads[shape.left], stage.reads[shape.right]
    return left.element, right.element, stage.writes[0].element


def lhs_is_k_contiguous(stage: Statement, shape: Contraction) -> bool:
    """Whether the last reduced axis steps through the left operand's elements."""
    depth = stage.names[shape.reduced[-1]]
    *outer, last = stage.reads[shape.left].indices
    return last.factor(depth) == 1 and all(depth not in x.axes for x in outer)


# Rows that share a right operand along the sum, as few as one tile has, about.
# Measured on AVX2, of sums of 64: for 8 rows a copy that is turned takes 1.5 times as
# long as lanes along the sum, for 16 as long, and for more it pays.  From twice as many
# on it pays to weave an operand, too, or to have it in panels of twice the memory.
FEW_ROWS = 8


def lanes_along_k(stage: Statement, shape: Contraction) -> bool:
    """Whether the steps of a sum should be lanes of vectors.

    Both operands lie along it, and few rows share what turning the right one would
    cost: the query of the next word of a text, and all the keys before.
    """
    if set(elements(stage, shape)) not in ({"f32"}, {"f64"}) or not shape.reduced:
        return False
    along, rows = shape.reduced[-1], prod(shape.extents[d] for d in shape.rows)
    right = stage.reads[shape.right]
    return (
        not shape.contiguous
        and not shape.other_columns
        and right.lies_along(stage.names[along])
        and lhs_is_k_contiguous(stage, shape)
        and 0 < rows <= FEW_ROWS
        and 0 not in shape.extents
    )


def bits(element: str) -> int:
    """Of a number of an element type: 32 of f32, 8 of s8; 64 of an index."""
    digits = element.lstrip("bfisu")
    return int(digits) if digits.isdigit() else 64
