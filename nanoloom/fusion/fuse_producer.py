"""What is made point by point, or row by row, for one reader is made in its kernel.

    t = max(x * scale + shift, 0)      normalized, of an image

    y[i] = sum of t[2 i + tap]         windows that do not overlap, or a whole image
      ->  y[i] = sum of max(x[2 i + tap] * scale + shift, 0)

    y[f, i] = t[i, f]                  another order of axes
      ->  y[f, i] = max(x[i, f] * scale[f] + shift[f], 0)

    y = t w, with what follows it      a product: every panel of w reads t
      ->  a task makes its rows of t in its cache, once for all panels

How often a point is read decides where it is made: once, in the reader itself; by many
columns, in a block of rows (nest/lhs_producer.py).  Nothing is made twice, and t has no
pass and no place in memory.  The arithmetic is the same, number by number.  A border is
none of t: around what is padded there is another number, and t stays what its own
kernel writes into it.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.fusion.fuse import (
    Front,
    Owners,
    Reason,
    fuse_groups,
    only_reader,
    product,
)
from nanoloom.fusion.group import (
    LIMIT,
    Group,
    group_of,
    is_closed,
    row_shaped,
    users,
)
from nanoloom.fusion.inline_operation import inline_operation, is_plain
from nanoloom.fusion.read_through_views import is_permutation, is_reduction
from nanoloom.ir.linalg_query import (
    Kind,
    Op,
    base,
    body,
    inputs,
    is_generic,
    is_identity,
    is_pad,
    kind,
    map_dims,
    maps,
    yielded,
)
from nanoloom.ir.loop_nest import alone
from nanoloom.ir.mlir import ir, made_by
from nanoloom.nest.contraction import elements, lhs_is_k_contiguous, roles
from nanoloom.nest.lhs_producer import is_profitable
from nanoloom.nest.statement import Statement
from nanoloom.target.facts import Target

MULTIPLIED = ("arith.mulf", "arith.muli")  # would make a product of a sum


def inline_producers(groups: list[Group]) -> list[Group]:
    """Let sums, and other orders of axes, make what is made point by point for nobody
    else, and read once."""
    owner = {op.operation: group for group in groups for op in group.ops}
    gone: set[int] = set()
    for group in groups:
        for place, op in enumerate(group.ops):
            known = is_reduction(op) or is_permutation(op)
            if not known or not is_plain(op) or not inputs(op):
                continue
            front = producer_of(inputs(op)[0], group, owner)
            if front is not None and is_inlined(front, op):
                group.ops[place] = with_front(op, front)
                gone.add(id(front))
    return [group for group in groups if id(group) not in gone]


def fuse_producers(
    groups: list[Group], weights: Sequence[ir.Value], target: Target
) -> list[Group]:
    """Join products with what is made for nobody else, point by point or by sums of
    rows, where it pays.

    weights: the arguments that are parameters, of which panels can be packed.
    """

    def rule(group: Group, owner: Owners) -> Front | Reason | None:
        op = product(group)
        if op is None or any(kind(x) is not Kind.ELEMENTWISE for x in group.ops[1:]):
            return None
        left = read_by_rows(op, weights)
        front = None if left is None else producer_of(left, group, owner, by_rows=True)
        if left is None or front is None or not is_of_f32(front):
            return None
        shape = roles(alone(op))
        if shape is None or not is_profitable(shape, target.caches):
            return Reason(left, "each block of rows would read all of the weights")
        return Front((front,))

    return fuse_groups(groups, rule)


def producer_of(
    value: ir.Value, group: Group, owner: Owners, *, by_rows: bool = False
) -> Group | None:
    """What makes a value point by point, for one group alone; by_rows: or by sums of
    its rows."""
    front = group_of(value, owner)
    if front is None or front is group or not only_reader(front, group):
        return None
    few = len(front.ops) + len(group.ops) <= LIMIT
    made = is_pointwise(front) or (by_rows and is_rowwise(front))
    return front if few and made else None


def is_inlined(front: Group, op: Op) -> bool:
    """Whether an operation can make each number that it reads, and does so once.

    In another order of axes all that lies across its vectors is turned: one tensor.
    """
    made = front.ops[-1].operation.results[0]
    count = reads_of_points(front)
    if len(users(made)) != 1 or not count or has_functions(front):
        return False
    if is_permutation(op):
        return count == 1
    becomes_product = len(inputs(op)) == 1 and multiplies(front)
    return reads_once(alone(op)) and not becomes_product


def read_by_rows(op: Op, weights: Sequence[ir.Value]) -> ir.Value | None:
    """The left operand of a packed product that reads blocks of its rows."""
    stage = alone(op)
    shape = roles(stage)
    if (
        shape is None
        or 0 in shape.extents
        or base(inputs(op)[shape.right]) not in weights
    ):
        return None
    if None in map_dims(maps(op)[shape.left]) or not lhs_is_k_contiguous(stage, shape):
        return None
    if {*elements(stage, shape)} != {"f32"} or shape.shared or len(shape.reduced) > 1:
        return None
    return inputs(op)[shape.left]


def is_of_f32(group: Group) -> bool:
    return {x.element for op in group.ops for x in alone(op).writes} == {"f32"}


def is_pointwise(group: Group) -> bool:
    """Whether all of a group is arithmetic on the same points, along vectors.

    What reads a border, or other places, has tasks of its own; and it has one result.
    """
    if group.root is not Kind.ELEMENTWISE or not is_closed(group.ops):
        return False
    rank = len(alone(group.ops[-1]).axes)
    return rank > 1 and all(is_point(op, rank) for op in group.ops)


def is_rowwise(group: Group) -> bool:
    """Whether all of a group is arithmetic on rows, and sums of these: a normalization,
    a softmax.

    It has one result, of whole rows.
    """
    if group.root is not Kind.REDUCTION or not is_closed(group.ops):
        return False
    rank = len(alone(group.ops[-1]).axes)
    made = is_point(group.ops[-1], rank)
    return made and all(is_of_rows(op, rank) for op in group.ops)


def is_of_rows(op: Op, rank: int) -> bool:
    """Whether an operation makes points of rows, numbers of each, or sums them."""
    if not is_generic(op) or is_pad(op) or not row_shaped(op):
        return False
    stage, single = alone(op), len(op.operation.results) == 1
    if not single or not stage.lanewise or any(map(reads_pad, inputs(op))):
        return False
    points = all(
        read.plain == stage.names[: len(read.plain)]
        for read in stage.reads
        if len(read.plain) == rank
    )
    rows = len(stage.axes) in (rank - 1, rank)
    sums = not stage.is_reduction or stage.leading_parallel() == rank - 1
    return (
        rows and sums and points and all(None not in read.plain for read in stage.reads)
    )


def is_point(op: Op, rank: int) -> bool:
    """Whether an operation makes numbers where its loops are, of what lies along
    them."""
    if not is_generic(op) or kind(op) is not Kind.ELEMENTWISE or is_pad(op):
        return False
    if len(op.operation.results) != 1 or not is_identity(maps(op)[-1]):
        return False
    stage = alone(op)
    if not stage.lanewise or len(stage.axes) != rank:
        return False
    if any(map(reads_pad, inputs(op))):
        return False
    along = all(read.lies_along(stage.names[-1]) for read in stage.reads)
    return along and all(None not in read.plain for read in stage.reads)


def reads_pad(value: ir.Value) -> bool:
    owner = made_by(value)
    return owner is not None and is_pad(owner.opview)


def reads_once(pool: Statement) -> bool:
    """Whether no point of what a stage reads first is read by two of its own.

    Of an image of any size: windows lie apart by their steps, not at its end.
    """
    seen: list[str] = []
    for index in pool.reads[0].indices:
        reach = 0
        reduced = {a.name for a in pool.axes if a.is_reduction}
        inner = sorted(index.terms, key=lambda term: (term[0] not in reduced, term[1]))
        for axis, factor in inner:
            extent = pool.axes[pool.place(axis)].extent
            if index.other or factor <= reach or not isinstance(extent, int):
                return False
            reach += factor * (extent - 1)
            seen.append(axis)
    return sorted(seen) == sorted(pool.names)


def reads_of_points(group: Group) -> int:
    """How many images a group reads, beside numbers that points of one share: those
    alone would not say how large it is."""
    made = {op.operation.results[0] for op in group.ops}
    read = {
        value
        for op in group.ops
        for value, indexing in zip(inputs(op), maps(op), strict=False)
        if value not in made and len(indexing.results) == indexing.n_dims
    }
    return len(read)


def multiplies(group: Group) -> bool:
    """Whether a group ends with a product: what adds up one would become a product's
    kernel, which rounds once for both."""
    return made_by(yielded(group.ops[-1])[0], *MULTIPLIED) is not None


def has_functions(group: Group) -> bool:
    """Whether there are numbers enough in a group to fill the registers."""
    names = [x.operation.name for op in group.ops for x in body(op).operations]
    return any(name.startswith("math.") for name in names)


def with_front(pool: Op, front: Group) -> Op:
    """A pool that makes what it reads, the last operation of a group first."""
    for op in reversed(front.ops):
        number = inputs(pool).index(op.operation.results[0])
        pool = inline_operation(op, pool, number)
        op.operation.erase()
    return pool
