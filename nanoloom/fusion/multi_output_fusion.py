"""Groups with several results: what reads the same rows, and is read elsewhere as well.

    s = x + y              one kernel: a row of s is read where it has just been made,
    n = layernorm(s)       and written once for all others that read it

A group that is made row by row joins what is made in front of it, row by row, if its
last operation can write those results as well (multiple_results.py).  Where results
have another shape than the last one, they stay kernels of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from nanoloom.fusion.group import LIMIT, Group, group_of, row_shaped, users
from nanoloom.fusion.group_values import external_inputs, results_of
from nanoloom.fusion.multiple_results import can_pass
from nanoloom.ir.linalg_query import (
    VIEWS,
    Kind,
    Op,
    extents,
    inputs,
    is_generic,
    is_prefix,
    iterators,
    map_dims,
    maps,
)
from nanoloom.ir.mlir import ir
from nanoloom.nest.contraction import bits
from nanoloom.nest.granularity import FEWEST_TASKS, TASK_ELEMENTS
from nanoloom.target.facts import Cache

MADE_BY_ROWS = {Kind.ELEMENTWISE, Kind.REDUCTION}


def fuse_multiple_outputs(
    block: ir.Block, groups: list[Group], caches: Cache
) -> list[Group]:
    """Join groups of a block that share rows, in an order in which they can run.

    caches: which hold the rows of a task.
    """
    joining = MultiOutputFusion(
        {op.operation: group for group in groups for op in group.ops},
        {op.operation: place for place, op in enumerate(block.operations)},
        caches.resident,
    )
    for group in groups:
        while group.ops and (producer := joining.producer(group)) is not None:
            joining.join(producer, group)
    left = [group for group in groups if group.ops]
    return left if len(left) == len(groups) else joining.in_order(left)


@dataclass
class MultiOutputFusion:
    """The groups while they are joined.

    owner: the group of each operation.  place: of each operation in the block.
    room: bytes of a row, at most.
    """

    owner: dict[ir.Operation, Group]
    place: dict[ir.Operation, int]
    room: int

    def producer(self, group: Group) -> Group | None:
        """A group that another one can be joined with, which reads it."""
        read = [group_of(v, self.owner) for v in made_by_rows(group)]
        found = {id(g): g for g in read if g is not None and g is not group}
        return next((g for g in found.values() if self.may_join(g, group)), None)

    def may_join(self, producer: Group, group: Group) -> bool:
        if not made_by_rows(producer) or len(producer.ops) + len(group.ops) > LIMIT:
            return False
        *before, last = [*producer.ops, *group.ops]
        passed = results_of(before, last)
        if not passed or not all(can_pass(last, value) for value in passed):
            return False
        if not have_room(extents(last), min(producer.rows, group.rows), self.room):
            return False
        by_rows = all(reads_rows(op, producer) for op in group.ops)
        turned = any(map(is_transposed, (*producer.ops, *group.ops)))
        if not by_rows or turned or self.is_captured(passed):
            return False
        return not self.waits(group, producer)

    def is_captured(self, values: list[ir.Value]) -> bool:
        """Whether a body reads one of some values, at places that nobody knows.

        In another shape, too.
        """
        readers = [user.operation for value in values for user in users(value)]
        if any(reader not in self.place for reader in readers):
            return True
        shown = [r.results[0] for r in readers if r.name in VIEWS]
        return bool(shown) and self.is_captured(shown)

    def waits(self, group: Group, producer: Group) -> bool:
        """Whether a group needs a third one that needs the producer, or a view of it.

        What is shown or inserted in between is there behind the producer only.
        """
        first = self.place[producer.ops[0].operation]
        waiting = [g for g in self.sources(group) if g is not producer]
        waiting += self.shown(group)
        seen: set[int] = set()
        while waiting:
            each = waiting.pop()
            if each is producer:
                return True
            if id(each) in seen or self.place[each.ops[-1].operation] < first:
                continue
            seen.add(id(each))
            waiting += self.sources(each)
        return False

    def sources(self, group: Group) -> list[Group]:
        """The groups whose results one reads, through any views and insertions."""
        return self.makers(external_inputs(group))

    def shown(self, group: Group) -> list[Group]:
        """Those whose results it reads through views or insertions, not as they are."""
        makers = [value.owner for value in external_inputs(group)]
        views = [x for x in makers if not isinstance(x, ir.Block)]
        others = [x for x in views if x not in self.owner]
        return self.makers([value for each in others for value in each.operands])

    def makers(self, values: Sequence[ir.Value]) -> list[Group]:
        """The groups that some values come from, through any views and insertions."""
        waiting, seen = list(values), set[ir.Operation]()
        found: dict[int, Group] = {}
        while waiting:
            made = waiting.pop().owner
            if isinstance(made, ir.Block) or made in seen:
                continue
            seen.add(made)
            if made in self.owner:
                found[id(self.owner[made])] = self.owner[made]
            else:
                waiting += made.operands
        return list(found.values())

    def join(self, producer: Group, group: Group) -> None:
        """All of a producer in front of what reads it."""
        group.ops = sorted(
            [*producer.ops, *group.ops], key=lambda op: self.place[op.operation]
        )
        group.rows = min(group.rows, producer.rows)
        group.apart |= producer.apart
        if producer.root is Kind.REDUCTION:
            group.root = Kind.REDUCTION
        self.owner |= {op.operation: group for op in producer.ops}
        producer.ops = []

    def in_order(self, groups: list[Group]) -> list[Group]:
        """Each behind all that it reads, else as they are."""
        found: dict[int, Group] = {}

        def add(group: Group) -> None:
            if id(group) not in found:
                for source in self.sources(group):
                    add(source)
                found[id(group)] = group

        for group in groups:
            add(group)
        return list(found.values())


def made_by_rows(group: Group) -> list[ir.Value]:
    """What a group reads, if all of it is computed row by row; else nothing."""
    if group.root not in MADE_BY_ROWS:
        return []
    for op in group.ops:
        if not is_generic(op) or len(op.operation.results) != 1 or not row_shaped(op):
            return []
    return [value for op in group.ops for value in inputs(op)]


def have_room(sizes: list[int], rows: int, room: int) -> bool:
    """Whether threads find enough rows of these extents, each of them in a cache: or
    all of them are one task."""
    many = prod(sizes[:rows]) >= FEWEST_TASKS or prod(sizes) <= TASK_ELEMENTS
    row = prod(sizes[rows:]) * bits("f32") // bits("u8")
    return rows > 0 and many and row <= room


def is_transposed(op: Op) -> bool:
    """Whether an operand lies along another axis: squares of it are tasks, not rows."""
    along = len(iterators(op)) - 1
    read = [map_dims(indexing) for indexing in maps(op)[: len(inputs(op))]]
    return any(along in dims[:-1] and dims[-1] != along for dims in read)


def reads_rows(op: Op, producer: Group) -> bool:
    """Whether an operation reads what a group makes at its leading indices only."""
    made = {result for each in producer.ops for result in each.operation.results}
    pairs = zip(inputs(op), maps(op), strict=False)
    return all(is_prefix(indexing) for value, indexing in pairs if value in made)
