"""What is made point by point for a pool alone is made where the pool reads it.

    t = max(x * scale + shift, 0)      normalized, in front of the averages of DenseNet
    y[i] = sum of t[2 i + tap]         windows that do not overlap, or a whole image
      ->  y[i] = sum of max(x[2 i + tap] * scale + shift, 0)

Each number is read once at most, so nothing is made twice: t has no pass and no place
in memory, and what lies between windows is not made at all.  The arithmetic is the
same, number by number.  A border is none of t: around what is padded there is another
number, and t stays what its own kernel writes into it.
"""

from __future__ import annotations

from nanoloom.kernels.fuse_lhs_producer import is_lhs_producer
from nanoloom.kernels.fuse_product_chain import only_reader
from nanoloom.kernels.group import LIMIT, Group, group_of, users
from nanoloom.kernels.inline_operation import inline_operation, is_plain
from nanoloom.kernels.linalg_query import (
    Kind,
    Op,
    body,
    inputs,
    is_fill,
    is_generic,
    kind,
    maps,
    outputs,
    yielded,
)
from nanoloom.kernels.nest import alone
from nanoloom.mlir import ir
from nanoloom.nest.statement import Statement

MULTIPLIED = ("arith.mulf", "arith.muli")  # would make a product of a sum


def inline_into_pools(groups: list[Group]) -> list[Group]:
    """Let pools make what is made point by point for nobody else."""
    owner = {op.operation: group for group in groups for op in group.ops}
    gone: set[int] = set()
    for group in groups:
        for place, op in enumerate(group.ops):
            front = front_of(op, owner)
            if front is None or not only_reader(front, group):
                continue
            if len(front.ops) + len(group.ops) <= LIMIT:
                group.ops[place] = with_front(op, front)
                gone.add(id(front))
    return [group for group in groups if id(group) not in gone]


def front_of(pool: Op, owner: dict[ir.Operation, Group]) -> Group | None:
    """What makes the numbers of a pool, point by point."""
    if not is_generic(pool) or kind(pool) is not Kind.REDUCTION:
        return None
    begin = outputs(pool)[0].owner
    if len(pool.operation.results) != 1 or isinstance(begin, ir.Block):
        return None
    if not is_fill(begin.opview) or not is_plain(pool) or not inputs(pool):
        return None
    made = inputs(pool)[0]
    front = group_of(made, owner)
    if front is None or front is owner.get(pool.operation) or len(users(made)) != 1:
        return None
    if not is_lhs_producer(front) or not reads_points(front) or has_functions(front):
        return None
    if not reads_once(alone(pool)):
        return None
    return None if len(inputs(pool)) == 1 and multiplies(front) else front


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


def reads_points(group: Group) -> bool:
    """Whether a group reads an image, not only numbers that points of it share: those
    alone would not say how large it is."""
    made = {op.operation.results[0] for op in group.ops}
    return any(
        value not in made and len(indexing.results) == indexing.n_dims
        for op in group.ops
        for value, indexing in zip(inputs(op), maps(op), strict=False)
    )


def multiplies(group: Group) -> bool:
    """Whether a group ends with a product: what adds up one would become a product's
    kernel, which rounds once for both."""
    made = yielded(group.ops[-1])[0].owner
    return not isinstance(made, ir.Block) and made.name in MULTIPLIED


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
