"""What one group makes, in the tasks of the group that alone reads it, where it pays.

    t = largest of windows of x;    y = largest of windows of t, with its border
    t = a product, a convolution;   y = t / sum of a row of t: a softmax, a norm
    t = a product, a convolution;   y = largest of windows of t, or a sum of its rows
    t = a product, a convolution;   y = t in another order of its axes
      ->  one kernel: a task makes a block of y, and the part of t it reads

The tensor between is never whole in memory.  Legality is the affine footprint of what
is read, whatever reads it: of whole rows (nest/parts.py), or of panels of a product's
columns (nest/panel_parts.py).  Cost is that of their nest (pair_losses.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
from nanoloom.fusion.pad_op import Border, border_around
from nanoloom.fusion.pair_losses import Losses, Pair
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
from nanoloom.nest.footprint import Sizes, footprint
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.panel_parts import is_by_columns
from nanoloom.nest.parts import has_windows
from nanoloom.nest.statement import Statement

SHARED_BORDER = "what lies around it is read elsewhere, too"
WIDE_BORDER = "a block of its reader may read nothing but what lies around it"


@dataclass(frozen=True)
class Footprints:
    """The rule about what is joined.

    weights: the arguments that are parameters, of which panels can be packed.
    """

    weights: Sequence[ir.Value]
    losses: Losses

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
        why: str | None = None
        between: tuple[Op, ...] = ()
        if self.is_read_once():
            why = self.refusal() or self.loss(rows=False, permutes=permutes)
        if why != "" and rows and self.is_read_by_rows():
            why = self.refusal() or self.loss(rows=True, permutes=permutes)
        if why == "" and self.insertion is not None:
            made = padded(self.reader.ops[0], self.insertion, self.value)
            why, between = (made, ()) if isinstance(made, str) else ("", made)
        if why:
            return Reason(self.value, why)
        return None if why is None else Front((self.source,), between)

    def is_read_once(self) -> bool:
        """Whether a product's group makes the value, for the reader's first alone.

        Of a border in another order a task may have nothing that the product makes.
        """
        first, once = self.reader.ops[0], len(users(self.value)) == 1
        if not once or product(self.source) is None or not is_read_elsewhere(first):
            return False
        if self.insertion is None:
            return inputs(first)[0] == self.value
        same = rank(inputs(first)[0]) == rank(self.value)
        return same and not is_permutation(first)

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

    def loss(self, *, rows: bool, permutes: bool) -> str | None:
        """Why one kernel does not pay; "" where it does, None where that is no
        question."""
        windows = is_windows(self.reader.ops[0])
        pair = Pair(self.nest(), len(self.source.ops), rows, permutes, windows)
        return self.given.losses.of(pair)

    def nest(self) -> LoopNest:
        """Of both, without the border between them."""
        same = {inputs(self.reader.ops[0])[0]: self.value} if self.insertion else {}
        ops = [*self.source.ops, *self.reader.ops]
        return nest_of(ops, self.given.weights, same)


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


def padded(reader: Op, insertion: Op, image: ir.Value) -> tuple[Op, ...] | str:
    """Let an operation read a border that is made around an image; why it cannot."""
    if readers_of(insertion) != [(reader, 0)]:
        return SHARED_BORDER
    border = border_around(insertion, (reader, 0), image)
    rank = ir.RankedTensorType(image.type).rank
    if border is None or None in border.places or rank != len(border.shape):
        return SHARED_BORDER
    if is_wider(border, alone(reader)):
        return WIDE_BORDER
    return (guard((reader, 0), border),)


def is_wider(border: Border, reader: Statement) -> bool:
    """Whether a point of what reads a padded tensor may read none of what is inside."""
    sizes: Sizes = {x.name: x.extent if x.is_reduction else 1 for x in reader.axes}
    read = reader.reads[0].indices
    sides = zip(read, border.shape, border.low, border.behind, strict=True)
    for index, extent, low, behind in sides:
        reach = footprint(index, sizes, extent)
        if isinstance(reach, int) and max(low, behind) >= reach:
            return True
    return False
