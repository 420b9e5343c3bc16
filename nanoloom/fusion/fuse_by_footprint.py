"""What one group makes, in the tasks of the group that alone reads it, where it pays.

    t = largest of windows of x;    y = largest of windows of t, with its border
    t = a product, a convolution;   y = t / sum of a row of t: a softmax, a norm
      ->  one kernel: a task makes a block of y, and the part of t it reads

Legality is the affine footprint of what is read (nest/parts.py), whatever reads it.
Cost is what blocks compute again, and what they bring into the cache again, against the
bytes that stay there (cost/profit.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nanoloom.cost.profit import pays
from nanoloom.fusion.candidate_nest import nest_of
from nanoloom.fusion.fuse import Front, Owners, Reason, fuse_groups, only_reader
from nanoloom.fusion.fuse_consumer import (
    NO_GAIN,
    SHARED_BORDER,
    insertion_in_front,
    is_padded,
)
from nanoloom.fusion.group import LIMIT, Group, group_of, row_shaped, users
from nanoloom.fusion.insert_in_place import source_of
from nanoloom.fusion.read_through_views import is_reduction
from nanoloom.ir.linalg_query import Kind, Op, inputs, is_generic
from nanoloom.ir.loop_nest import alone
from nanoloom.ir.mlir import ir
from nanoloom.nest.parts import blocks, has_windows, reuses_panels
from nanoloom.nest.tasks import in_tasks
from nanoloom.target.facts import Target


def fuse_by_footprint(
    groups: list[Group], weights: Sequence[ir.Value], target: Target | None
) -> list[Group]:
    """Join reductions, of known sizes, with what makes what they read.

    weights: the arguments that are parameters.  Without a target nothing is joined.
    """
    if target is None:
        return groups

    def rule(group: Group, owner: Owners) -> Front | Reason | None:
        found: Front | Reason | None = None
        for value, insertion in read_of(group):
            source = group_of(value, owner)
            if source is not None and source is not group and is_made(source):
                joined = Joined(source, group, value, insertion)
                found = joined.front(weights, target)
            if isinstance(found, Front):
                break
        return found

    return fuse_groups(groups, rule)


@dataclass(frozen=True)
class Joined:
    """A group that may be computed in the tasks of another one, which reads its value.

    insertion: what puts a border around that, None for none.
    """

    source: Group
    reader: Group
    value: ir.Value
    insertion: Op | None

    def front(self, weights: Sequence[ir.Value], target: Target) -> Front | Reason:
        """What stands in front of the reader, or why nothing does."""
        first = self.reader.ops[0]
        why = self.refusal() or self.loss(weights, target)
        if why:
            return Reason(self.value, why)
        if self.insertion is None:
            return Front((self.source,))
        between = is_padded(first, self.insertion, self.value)
        if between is None:
            return Reason(self.value, SHARED_BORDER)
        return Front((self.source,), between)

    def refusal(self) -> str:
        """Why a task of the reader cannot make what it reads; "" where it can."""
        source, group, value = self.source, self.reader, self.value
        ops = [*source.ops, *group.ops]
        alone_reads = len(users(value)) == 1 or only_reader(source, group)
        if value != source.ops[-1].operation.results[0] or not alone_reads:
            return "others read it, too, and each would make it again"
        if not all(map(is_generic, ops)) or len(ops) >= LIMIT:
            return "one kernel would have too many operations"
        windows = is_windows(group.ops[0])
        if windows and source.root is Kind.CONTRACTION:
            return "windows of what a product makes have blocks of their own"
        read = ir.RankedTensorType(inputs(group.ops[0])[0].type).rank
        if windows and read != ir.RankedTensorType(value.type).rank:
            return "it is read in another shape"
        kinds = {x.element for op in ops for x in alone(op).reads}
        return "" if windows or kinds == {"f32"} else "not all of its numbers are f32"

    def loss(self, weights: Sequence[ir.Value], target: Target) -> str:
        """Why that does not pay; "" where it does."""
        same = {inputs(self.reader.ops[0])[0]: self.value}
        ops = [*self.source.ops, *self.reader.ops]
        nest = nest_of(ops, weights, same if self.insertion is not None else {})
        last = nest.last
        sizes = {} if last is None else blocks(nest)
        if last is None or not sizes:
            return "one task makes all of what reads it"
        fused = in_tasks(nest, last, sizes)
        if not reuses_panels(fused, target):
            return "few rows of it would read all of the weights again"
        paid = pays(nest, fused, target)
        return "" if paid else NO_GAIN


def read_of(group: Group) -> Iterator[tuple[ir.Value, Op | None]]:
    """What a reduction reads, each once: the image of windows, with what puts a border
    around it, or all that rows are made of."""
    first = group.ops[0]
    if group.root is Kind.REDUCTION and is_windows(first):
        insertion = insertion_in_front(first)
        value = inputs(first)[0] if insertion is None else source_of(insertion)
        yield value, insertion
    elif group.root is Kind.REDUCTION and all(map(is_by_rows, group.ops)):
        for value in dict.fromkeys(v for op in group.ops for v in inputs(op)):
            yield value, None


def is_by_rows(op: Op) -> bool:
    return is_generic(op) and row_shaped(op) and not is_windows(op)


def is_windows(op: Op) -> bool:
    return is_reduction(op) and bool(inputs(op)) and has_windows(alone(op))


def is_made(source: Group) -> bool:
    """Whether a group reduces: others are in the loops of what reads them already."""
    product = source.root is Kind.CONTRACTION
    return product or any(map(is_windows, filter(is_generic, source.ops)))
