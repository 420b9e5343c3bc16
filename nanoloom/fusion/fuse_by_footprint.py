"""What one group makes, in the tasks of the group that alone reads it, where it pays.

    t = largest of windows of x;    y = largest of windows of t, with its border
    t = a product, a convolution;   y = t / sum of a row of t: a softmax, a norm
    t = a product, a convolution;   y = largest of windows of t, or a sum of its rows
    t = a product, a convolution;   y = t in another order of its axes
      ->  one kernel: a task makes a block of y, and the part of t it reads

The tensor between is never whole in memory.  Legality is the affine footprint of what
is read, whatever reads it: of whole rows (nest/parts.py), or of panels of a product's
columns (nest/panel_parts.py).  Cost is what blocks compute again, and what they bring
into the cache again, against the bytes that stay there (cost/profit.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nanoloom.cost.profit import Profit, profit
from nanoloom.fusion.candidate_nest import nest_of
from nanoloom.fusion.fuse import (
    Front,
    Owners,
    Reason,
    fuse_groups,
    only_reader,
    product,
)
from nanoloom.fusion.group import LIMIT, Group, group_of, row_shaped, users
from nanoloom.fusion.guarded_reads import guard, readers_of
from nanoloom.fusion.insert_in_place import is_insertion, source_of
from nanoloom.fusion.pad_op import border_around
from nanoloom.fusion.read_through_views import is_permutation, is_reduction
from nanoloom.ir.linalg_query import (
    Kind,
    Op,
    base,
    inputs,
    is_contraction,
    is_generic,
)
from nanoloom.ir.loop_nest import alone
from nanoloom.ir.mlir import ir, made_by
from nanoloom.nest.contraction import bits
from nanoloom.nest.footprint import Sizes
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.panel_parts import PANEL_VECTORS, is_by_columns, panel_parts
from nanoloom.nest.parts import blocks, has_windows, reuses_panels, task_axes
from nanoloom.nest.tasks import in_tasks
from nanoloom.target.facts import Target

SHARED_BORDER = "what lies around it is read elsewhere, too"


@dataclass(frozen=True)
class Footprints:
    """The rule about what is joined.

    weights: the arguments that are parameters, of which panels can be packed.
    known: whether all sizes are: blocks that their number decides are of known ones
    alone.
    """

    weights: Sequence[ir.Value]
    target: Target
    known: bool

    def fuse(
        self, groups: list[Group], *, rows: bool = False, permutes: bool = False
    ) -> list[Group]:
        """Join what reads products' results, panel by panel, with them.

        rows: and reductions with what makes whole rows, or windows, of what they read.
        permutes: and another order of axes with the product that it is of.
        """

        def rule(group: Group, owner: Owners) -> Front | Reason | None:
            found: Front | Reason | None = None
            for value, insertion in read_of(group):
                source = group_of(value, owner)
                if source is None or source is group or not is_made(source):
                    continue
                joined = Joined(source, group, value, insertion, self)
                found = joined.front(rows=rows, permutes=permutes) or found
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
    given: Footprints

    def front(self, *, rows: bool, permutes: bool) -> Front | Reason | None:
        """What stands in front of the reader, or why nothing does; None where that is
        no question."""
        why, between = None, ()
        if self.is_read_once():
            why = self.refusal() or self.loss_in_panels(permutes=permutes)
        if why != "" and rows and self.is_read_by_rows():
            why = self.refusal() or self.loss_in_rows()
        if why == "" and self.insertion is not None:
            between = is_padded(self.reader.ops[0], self.insertion, self.value)
        if why is None or why or between is None:
            return None if why is None else Reason(self.value, why or SHARED_BORDER)
        return Front((self.source,), between)

    def is_read_once(self) -> bool:
        """Whether a product's group makes the value, for the reader's first alone."""
        first, once = self.reader.ops[0], len(users(self.value)) == 1
        if not once or product(self.source) is None or not is_read_elsewhere(first):
            return False
        if self.insertion is None:
            return inputs(first)[0] == self.value
        return rank(inputs(first)[0]) == rank(self.value)

    def is_read_by_rows(self) -> bool:
        """Whether a reduction reads whole rows of the value, or windows of what others
        than products make."""
        first = self.reader.ops[0]
        if self.reader.root is not Kind.REDUCTION or not is_windows(first):
            return self.insertion is None and is_by_rows(self.reader)
        others = self.source.root is not Kind.CONTRACTION
        return others and rank(inputs(first)[0]) == rank(self.value)

    def refusal(self) -> str:
        """Why a task of the reader cannot make what it reads; "" where it can."""
        made, ops = self.source.ops[-1], [*self.source.ops, *self.reader.ops]
        alone_reads = len(users(self.value)) == 1
        alone_reads = alone_reads or only_reader(self.source, self.reader)
        if self.value != made.operation.results[0] or not alone_reads:
            return "others read it, too, and each would make it again"
        fit = all(map(is_generic, ops)) and len(ops) < LIMIT
        return "" if fit else "one kernel would have too many operations"

    def apart(self) -> LoopNest:
        """Both as kernels of their own, whose stages follow each other row by row."""
        nest, count = self.nest(), len(self.source.ops)
        for part in (nest.stages[:count], nest.stages[count:]):
            last = part[-1]
            own = nest.of_stages(part, [write.buffer for write in last.writes])
            ones: Sizes = {last.names[d]: 1 for d in task_axes(own)}
            nest = in_tasks(nest, last, ones, part)
        return nest

    def nest(self) -> LoopNest:
        """Of both, without the border between them."""
        same = {inputs(self.reader.ops[0])[0]: self.value} if self.insertion else {}
        ops = [*self.source.ops, *self.reader.ops]
        return nest_of(ops, self.given.weights, same)

    def loss_in_panels(self, *, permutes: bool) -> str | None:
        """Why a task's part of what is read does not stay in the cache, or why that
        does not pay; "" where it does, None where that is no question."""
        nest = self.nest()
        found = panel_parts(nest, nest.stages[len(self.source.ops) - 1])
        if found is None:
            return "no block of it is a block of what a product makes"
        if found.is_permutation:
            return "" if permutes else None
        target = self.given.target
        columns, cache = PANEL_VECTORS * target.lanes(bits("f32")), target.caches
        sizes = found.blocks(columns, cache)
        if found.is_scattered:
            return "small windows side by side on several axes read few rows together"
        if not found.fit(sizes, cache):
            return "what a block of its reader reads is more than half of the cache"
        if not any(map(found.overlap, found.names)):
            return ""
        if not self.given.known:
            return "its windows overlap, and its sizes are not known"
        if any(stage.has_functions for stage in found.following):
            return "functions behind its windows read them in memory"
        fused = in_tasks(nest, found.last, sizes)
        made = profit(self.apart(), fused, target, found.idle)
        return "" if made.cycles > 0 else loss(made)

    def loss_in_rows(self) -> str | None:
        """The same for whole rows, and for windows of what is no product."""
        nest, target = self.nest(), self.given.target
        if not self.given.known or nest.last is None:
            return None
        kinds = {x.element for stage in nest.stages for x in stage.reads}
        if kinds != {"f32"} and not is_windows(self.reader.ops[0]):
            return "not all of its numbers are f32"
        sizes = blocks(nest)
        if not sizes:
            return "one task makes all of what reads it"
        fused = in_tasks(nest, nest.last, sizes)
        if not reuses_panels(fused, target):
            return "few rows of it would read all of the weights again"
        made = profit(nest, fused, target)
        return "" if made.cycles >= 0 else loss(made)


def loss(made: Profit) -> str:
    return (
        f"blocks of its reader would spare the cache {made.spared:,} B and compute "
        f"{made.again:,} points again"
    )


def rank(value: ir.Value) -> int:
    return ir.RankedTensorType(value.type).rank


def read_of(group: Group) -> Iterator[tuple[ir.Value, Op | None]]:
    """What a reduction reads first, or another order of axes, with what puts a border
    around it; then all that rows are made of."""
    first = group.ops[0]
    shown: list[ir.Value] = []
    if is_read_elsewhere(first):
        shown, insertion = inputs(first)[:1], insertion_in_front(first)
        yield shown[0] if insertion is None else source_of(insertion), insertion
    if is_by_rows(group):
        for value in dict.fromkeys(v for op in group.ops for v in inputs(op)):
            if value not in shown:
                yield value, None


def is_read_elsewhere(op: Op) -> bool:
    """Whether what an operation reads first is all reduced, or lies in another order:
    pools, rows, and filters of a channel each."""
    if not is_generic(op) or not inputs(op):
        return False
    sums = is_contraction(op) and is_by_columns(alone(op))
    return sums or is_reduction(op) or is_permutation(op)


def is_by_rows(group: Group) -> bool:
    """Whether all of a group's operations go over the same rows, none over windows."""
    plain = (
        is_generic(op) and row_shaped(op) and not is_windows(op) for op in group.ops
    )
    return group.root is Kind.REDUCTION and all(plain)


def is_windows(op: Op) -> bool:
    return is_reduction(op) and bool(inputs(op)) and has_windows(alone(op))


def is_made(source: Group) -> bool:
    """Whether a group reduces: others are in the loops of what reads them already."""
    product = source.root is Kind.CONTRACTION
    return product or any(map(is_windows, filter(is_generic, source.ops)))


def insertion_in_front(reader: Op) -> Op | None:
    """What puts a border around the tensor that is read; None for no border."""
    owner = made_by(base(inputs(reader)[0]))
    return owner.opview if owner and is_insertion(owner.opview) else None


def is_padded(reader: Op, insertion: Op, image: ir.Value) -> tuple[Op, ...] | None:
    """Let an operation read a border that is made around an image; None where it
    cannot."""
    if readers_of(insertion) != [(reader, 0)]:
        return None
    border = border_around(insertion, (reader, 0), image)
    rank = ir.RankedTensorType(image.type).rank
    if border is None or None in border.places or rank != len(border.shape):
        return None
    return (guard((reader, 0), border),)
