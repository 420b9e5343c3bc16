"""What reads a product's result at other places, inside of the kernel that makes it.

    t = product, relu;  q = t in the middle of another number;  p = max of windows of q
    t = product, relu;  p = sum of t over all pixels;  y = p / 49
    t = product, relu;  y = t in another order of its axes
      ->  one kernel:  a task makes a block of the last one, of the points of t it reads

The tensor between is never whole in memory.  Whether that pays is a question of what
is computed twice, and of what a cache holds (cost/profit.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.cost.profit import pays
from nanoloom.fusion.candidate_nest import nest_of
from nanoloom.fusion.fuse import (
    Front,
    Owners,
    Reason,
    fuse_groups,
    only_reader,
    product,
)
from nanoloom.fusion.fuse_producer import SMALL_CACHE
from nanoloom.fusion.group import LIMIT, Group, group_of, users
from nanoloom.fusion.guarded_reads import guard, readers_of
from nanoloom.fusion.insert_in_place import is_insertion, source_of
from nanoloom.fusion.pad_op import border_around
from nanoloom.fusion.read_through_views import is_permutation, is_reduction
from nanoloom.ir.linalg_query import Kind, Op, base, inputs
from nanoloom.ir.mlir import ir, made_by
from nanoloom.nest.contraction import bits
from nanoloom.nest.fused_consumer import (
    PANEL_VECTORS,
    FusedConsumer,
    fused_consumer,
)
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.tasks import in_tasks
from nanoloom.target.facts import Target

SMALL_PANEL = 64  # columns, for any CPU
SHARED_BORDER = "what lies around it is read elsewhere, too"
NO_GAIN = "blocks of its reader would take more again than they spare"


def fuse_consumers(
    groups: list[Group],
    weights: Sequence[ir.Value],
    target: Target | None,
    *,
    permutes: bool,
    known: bool,
) -> list[Group]:
    """Join what reads products' results at other places, for nobody else, with them.

    weights: the arguments that are parameters, of which panels can be packed.
    permutes: another order of axes, too.  known: whether all sizes are: blocks that
    their number decides are of known ones alone.
    """

    def rule(group: Group, owner: Owners) -> Front | Reason | None:
        first = group.ops[0]
        if not is_reduction(first) and not is_permutation(first):
            return None
        if not inputs(first) or group.root is Kind.CONTRACTION:
            return None
        insertion = insertion_in_front(first)
        value = inputs(first)[0] if insertion is None else source_of(insertion)
        source = group_of(value, owner)
        if insertion is not None and len(group.ops) > 1:
            return None  # a border lies in a task, not at a tile of what follows
        if source is None or not suits(source, value, group):
            return None
        same = {inputs(first)[0]: value}
        nest = nest_of([*source.ops, *group.ops], weights, same)
        found = fused_consumer(nest)
        if found is None:
            return Reason(value, "no block of it is a block of what a product makes")
        if found.is_permutation and not permutes:
            return None
        why = loss(nest, found, target, known=known)
        if why:
            return Reason(value, why)
        between = () if insertion is None else is_padded(first, insertion, value)
        if between is None:
            return Reason(value, SHARED_BORDER)
        return Front((source,), between)

    return fuse_groups(groups, rule)


def suits(source: Group, value: ir.Value, group: Group) -> bool:
    """Whether a product's group makes a value for the first of a group alone."""
    if product(source) is None or value != source.ops[-1].operation.results[0]:
        return False
    if len(source.ops) + len(group.ops) > LIMIT or len(users(value)) != 1:
        return False
    read = inputs(group.ops[0])[0].type
    ranks = {ir.RankedTensorType(kind).rank for kind in (value.type, read)}
    return len(ranks) == 1 and (read != value.type or only_reader(source, group))


def loss(
    nest: LoopNest, found: FusedConsumer, target: Target | None, *, known: bool
) -> str:
    """Why a task's part of what is read does not stay in the cache, or why that does
    not pay; "" where it does."""
    if found.is_permutation:
        return ""
    cache, columns = SMALL_CACHE, SMALL_PANEL
    if target is not None:
        cache = target.caches
        columns = PANEL_VECTORS * target.lanes(bits("f32"))
    sizes = found.blocks(columns, cache)
    if found.is_scattered:
        return "small windows side by side along several axes read few rows together"
    if not found.fit(sizes, cache):
        return "what a block of its reader reads is more than half of the cache"
    if not any(map(found.overlap, found.names)):
        return ""
    if target is None or not known:
        return "its windows overlap, and its sizes are not known"
    paid = pays(nest, in_tasks(nest, found.last, sizes), target)
    return "" if paid else NO_GAIN


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
